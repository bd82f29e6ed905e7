/* Prints docs/config.md: the option table in words. */
#include "config.h"

#include "fd.h"

int main(void)
{
    AUTO_STR struct str out = STR_INIT(STR_OUTPUT);
    config_document(&out);
    return fd_write_all(STDOUT_FILENO, str_cstr(&out), out.len) < 0;
}
