/* The floor of fetching: libcurl's multi interface in a bare loop that throws the bytes away.
 *
 *   fetchfloor FILE PARALLEL
 *
 * gets every URL of the file, so many at a time, over connections that are used again. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t discard(char *p, size_t size, size_t n, void *arg)
{
    (void)p;
    (void)arg;
    return size * n;
}

static int next_url(FILE *f, CURLM *multi, CURL *easy)
{
    char line[8192];
    if (!fgets(line, sizeof(line), f))
        return 0;
    line[strcspn(line, "\n")] = '\0';
    curl_easy_setopt(easy, CURLOPT_URL, line);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    return curl_multi_add_handle(multi, easy) == CURLM_OK;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    FILE *f = fopen(argv[1], "r");
    int64_t parallel = strtoll(argv[2], NULL, 10);
    CURLM *multi = curl_multi_init();
    if (!f || !multi || parallel < 1)
        return 1;
    int running = 0, left;
    long long failed = 0;
    for (int64_t i = 0; i < parallel; i++)
        running += next_url(f, multi, curl_easy_init());
    while (running) {
        curl_multi_perform(multi, &left);
        for (CURLMsg *m; (m = curl_multi_info_read(multi, &left));) {
            CURL *easy = m->easy_handle;
            failed += m->data.result != CURLE_OK;
            curl_multi_remove_handle(multi, easy);
            running += next_url(f, multi, easy) - 1;
        }
        if (running)
            curl_multi_poll(multi, NULL, 0, 100, NULL);
    }
    fclose(f);
    curl_multi_cleanup(multi);
    return failed ? 1 : 0;
}
