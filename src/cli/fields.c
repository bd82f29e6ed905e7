#include "fields.h"

#include "text.h"

void field_text(struct str *s, const char *name, struct sv value)
{
    if (!value.p)
        return;
    str_addf(s, "%-13s", name);
    text_safe(s, value, 0);
    str_addc(s, '\n');
}

void field_time(struct str *s, const char *name, struct wall t)
{
    AUTO_STR struct str text = STR_INIT(64);
    if (!t.us)
        return;
    wall_format(t, &text);
    field_text(s, name, str_sv(&text));
}

void field_dur(struct str *s, const char *name, struct dur d)
{
    AUTO_STR struct str text = STR_INIT(64);
    dur_format(d, &text);
    field_text(s, name, str_sv(&text));
}
