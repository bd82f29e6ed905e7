/* A job that asks a server on this machine once: exit 0 for 2xx, 29 for 429 and 503, 1 for all
 * else. usage: hit PORT */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { THROTTLED = 29 };

int main(int argc, char **argv)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    char answer[64] = "";
    if (argc < 2)
        return 2;
    to.sin_port = htons((uint16_t)atoi(argv[1]));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        return 3;
    dprintf(fd, "GET / HTTP/1.0\r\n\r\n");
    if (recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL) < 12)
        return 4;
    int status = atoi(answer + 9);
    printf("status %d\n", status);
    return status / 100 == 2 ? 0 : status == 429 || status == 503 ? THROTTLED : 1;
}
