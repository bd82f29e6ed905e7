#include "clipboard.h"

#include "fd.h"
#include "helper.h"
#include "mem.h"
#include <fcntl.h>

enum { OSC52_MAX = 74994 }; /* characters of base64 that terminals are known to take */

static void base64(struct sv text, struct str *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < text.n; i += 3) {
        uint32_t v = 0;
        size_t n = text.n - i < 3 ? text.n - i : 3;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? (unsigned char)text.p[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            str_addc(out, k <= n ? digits[v >> (18 - 6 * k) & 63] : '=');
    }
}

static bool by_terminal(struct sv text)
{
    AUTO_STR struct str s = STR_INIT(OSC52_MAX + 16);
    AUTO_FD int tty = -1;
    if ((text.n + 2) / 3 * 4 > OSC52_MAX)
        return false;
    if (isatty(STDOUT_FILENO) != 1 && isatty(STDERR_FILENO) != 1)
        return false;
    tty = open("/dev/tty", O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (tty < 0)
        return false;
    str_adds(&s, "\033]52;c;");
    base64(text, &s);
    str_addc(&s, '\a');
    return fd_write_all(tty, s.p, s.len) == 0;
}

int clipboard_put(struct sv text, const char **out_how, struct pawl_err *err)
{
    static char wl[] = "wl-copy", x[] = "xclip", mac[] = "pbcopy";
    static char selection[] = "-selection", clipboard[] = "clipboard";
    static char *const programs[][4] = {{wl}, {x, selection, clipboard}, {mac}};
    if (by_terminal(text)) {
        *out_how = "the terminal";
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(programs); i++)
        if (helper_feed(programs[i], text)) {
            *out_how = programs[i][0];
            return 0;
        }
    err_set(err, PAWL_EFAILED,
            "no clipboard: not on a terminal, and neither wl-copy, xclip nor "
            "pbcopy works here");
    return err_hint(err, "without --copy, --json prints the same");
}
