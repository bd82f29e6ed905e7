/* Feeds every file of a corpus folder to the fuzz target it is linked with, and every prefix of the
 * small ones. Prints TAP, one test a file. */
#include "fuzz.h"

#include "fd.h"
#include "mem.h"
#include <dirent.h>
#include <stdio.h>

enum { PREFIXES_UP_TO = 512 };

/* An exact copy, so that a sanitizer sees the first byte read beyond it. */
static void feed(const char *p, size_t n)
{
    uint8_t *copy = mem_alloc(n);
    if (n)
        memcpy(copy, p, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static int replay(const char *folder, const char *name)
{
    AUTO_STR struct str path = STR_INIT(STR_LINE);
    AUTO_STR struct str bytes = STR_INIT(STR_OUTPUT);
    str_addf(&path, "%s/%s", folder, name);
    if (file_read(str_cstr(&path), &bytes, NULL) < 0)
        return -1;
    feed(bytes.p, bytes.len);
    for (size_t n = 0; n < bytes.len && bytes.len <= PREFIXES_UP_TO; n++)
        feed(bytes.p, n);
    return 0;
}

int main(int argc, char **argv)
{
    struct dirent **files;
    int tests = 0, failed = 0, n = argc == 2 ? scandir(argv[1], &files, NULL, alphasort) : -1;
    if (n < 0) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < n; i++) {
        if (files[i]->d_name[0] != '.') {
            int rc = replay(argv[1], files[i]->d_name);
            printf("%sok %d - %s\n", rc < 0 ? "not " : "", ++tests, files[i]->d_name);
            failed += rc < 0;
        }
        free(files[i]);
    }
    free(files);
    printf("1..%d\n", tests);
    return failed || !tests;
}
