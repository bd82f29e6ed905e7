#include "payload.h"

#include "fd.h"
#include "json.h"

int payload_read(const char *arg, struct str *out, struct pawl_err *err)
{
    AUTO_JSON struct json doc = {0};
    int rc = 0;
    if (!strcmp(arg, "-"))
        rc = fd_read_all(STDIN_FILENO, "standard input", out, err);
    else if (arg[0] == '@')
        rc = file_read(arg + 1, out, err);
    else
        str_adds(out, arg);
    if (rc == 0 && out->overflow)
        rc = err_set(err, PAWL_EINPUT, "longer than %zu bytes", out->max);
    if (rc == 0)
        rc = json_parse(&doc, sv_trim(str_sv(out)), err);
    return rc < 0 ? err_wrap(err, "--payload") : 0;
}
