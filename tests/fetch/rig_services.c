/* Services of a run: each answers in a later turn of the loop, as the rig's script says. */
#include "rig_parts.h"

#include "hash.h"
#include <stdlib.h>

/* An answer on its way. */
struct later {
    struct timer timer;
    struct fake_run *of;
    enum { LATER_ADMIT, LATER_RECALL, LATER_PREVIOUS, LATER_KEPT } what;
    void (*fn)(void);
    void *arg;
    struct admission admission;
    struct str value;
    struct kept kept;
    char name[80], type[80];
};

static void deliver(struct timer *t)
{
    struct later *l = (struct later *)t;
    l->of->owed--;
    if (l->what == LATER_ADMIT)
        ((admission_fn *)l->fn)(l->arg, &l->admission);
    else if (l->what == LATER_RECALL)
        ((remembered_fn *)l->fn)(l->arg, l->value.len ? str_sv(&l->value) : SV_NONE);
    else if (l->what == LATER_PREVIOUS)
        ((previous_fn *)l->fn)(l->arg, rig.previous);
    else
        ((kept_fn *)l->fn)(l->arg, &l->kept);
    str_done(&l->value);
    free(l);
    rig_event();
}

static struct later *answer_later(struct fake_run *of, int what, void (*fn)(void), void *arg)
{
    struct later *l = mem_zalloc(1, sizeof(*l));
    l->timer.on_time = deliver;
    l->of = of;
    l->what = what;
    l->fn = fn;
    l->arg = arg;
    l->value = STR_INIT(1 << 20);
    assert_false(of->over);
    of->owed++;
    loop_timer_set(rig.loop, &l->timer, DUR_US(0));
    return l;
}

/* ---- bytes ---- */

struct sink {
    struct fake_run *of;
    struct str bytes;
    int writes;
};

static struct sink *fake_sink_open(struct run *r)
{
    struct sink *s = mem_zalloc(1, sizeof(*s));
    s->of = (struct fake_run *)r;
    s->bytes = STR_INIT(STR_OUTPUT);
    rig.sinks++;
    return s;
}

static int fake_sink_write(struct sink *s, struct sv bytes, struct pawl_err *err)
{
    str_add(&s->bytes, bytes);
    return ++s->writes == rig.full_at ? err_set(err, PAWL_EFULL, "no room") : 0;
}

static void fake_sink_drop(struct sink *s)
{
    str_done(&s->bytes);
    free(s);
    rig.sinks--;
}

static void fake_keep(struct sink *s, struct sv name, struct sv type, kept_fn *done, void *arg)
{
    struct later *l = answer_later(s->of, LATER_KEPT, (void (*)(void))done, arg);
    struct kept_body *k = &rig.kept;
    str_done(&k->bytes);
    k->bytes = s->bytes;
    snprintf(k->name, sizeof(k->name), SV_FMT, SV_ARG(name));
    snprintf(k->type, sizeof(k->type), SV_FMT, SV_ARG(type));
    l->kept = (struct kept){.rc = rig.keep_rc,
                            .message = "no room",
                            .what = {.name = sv_of(k->name),
                                     .type = type.p ? sv_of(k->type) : SV_NONE,
                                     .size = (int64_t)k->bytes.len,
                                     .stored = (int64_t)k->bytes.len,
                                     .place = SV("files/x")}};
    sha256(str_sv(&k->bytes), l->kept.what.sha256);
    free(s);
    rig.sinks--;
    rig.keeps++;
}

static void fake_keep_file(struct run *r, const char *path, struct sv name, struct sv type,
                           kept_fn *done, void *arg)
{
    (void)r, (void)path, (void)name, (void)type, (void)done, (void)arg;
    fail_msg("nothing here keeps files");
}

/* ---- questions ---- */

static void fake_admit(struct run *r, struct sv host, admission_fn *done, void *arg)
{
    struct later *l = answer_later((struct fake_run *)r, LATER_ADMIT, (void (*)(void))done, arg);
    size_t n = strlen(rig.admitted);
    snprintf(rig.admitted + n, sizeof(rig.admitted) - n, SV_FMT " ", SV_ARG(host));
    if ((size_t)rig.admits < rig.n_admissions)
        l->admission = rig.admissions[rig.admits];
    if (rig.strict_then)
        rig.config->fetch_allow_private = false;
    rig.admits++;
}

static void fake_pace(struct run *r, struct sv host, struct dur apart)
{
    (void)r;
    size_t n = strlen(rig.paced);
    snprintf(rig.paced + n, sizeof(rig.paced) - n, SV_FMT "=%lldms ", SV_ARG(host),
             (long long)apart.us / 1000);
}

/* What is remembered, one text for each key. */
static struct memory {
    char key[128];
    struct str value;
    struct dur ttl;
} memory[16];

static struct memory *memory_of(struct sv key)
{
    size_t i = 0;
    while (i < ARRAY_LEN(memory) - 1 && memory[i].key[0] && !sv_eq(sv_of(memory[i].key), key))
        i++;
    return &memory[i];
}

static void fake_recall(struct run *r, struct sv key, remembered_fn *done, void *arg)
{
    struct later *l = answer_later((struct fake_run *)r, LATER_RECALL, (void (*)(void))done, arg);
    rig.recalls++;
    str_add(&l->value, str_sv(&memory_of(key)->value));
}

static void fake_remember(struct run *r, struct sv key, struct sv value, struct dur ttl)
{
    struct memory *m = memory_of(key);
    (void)r;
    rig.remembers++;
    snprintf(m->key, sizeof(m->key), SV_FMT, SV_ARG(key));
    str_done(&m->value);
    m->value = STR_INIT(1 << 20);
    str_add(&m->value, value);
    m->ttl = ttl;
    snprintf(rig.remembered, sizeof(rig.remembered), "%s %llds " SV_FMT, m->key,
             (long long)ttl.us / 1000000, SV_ARG(value));
}

static void fake_previous(struct run *r, previous_fn *done, void *arg)
{
    answer_later((struct fake_run *)r, LATER_PREVIOUS, (void (*)(void))done, arg);
    rig.previouses++;
}

void rig_remember(const char *key, const char *value)
{
    fake_remember(NULL, sv_of(key), sv_of(value), DUR_S(60));
    rig.remembers = 0;
}

void rig_forget(void)
{
    for (size_t i = 0; i < ARRAY_LEN(memory); i++) {
        str_done(&memory[i].value);
        memory[i] = (struct memory){0};
    }
}

const struct run_services fake_services = {.sink_open = fake_sink_open,
                                           .sink_write = fake_sink_write,
                                           .sink_drop = fake_sink_drop,
                                           .keep = fake_keep,
                                           .keep_file = fake_keep_file,
                                           .admit = fake_admit,
                                           .pace = fake_pace,
                                           .recall = fake_recall,
                                           .remember = fake_remember,
                                           .previous = fake_previous};
