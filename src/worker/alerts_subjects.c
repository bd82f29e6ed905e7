/* What is told about: grouped by subject, held back after it was told, tried again when a target
 * failed. A subject that is not told yet keeps the cursor where it was before it was found, so that
 * nothing is lost with this process. */
#include "alerts_internal.h"

#include "hash.h"

#define RETRY_FIRST DUR_S(1)
#define RETRY_MAX   DUR_S(60)
#define GIVE_UP     DUR_S(600)
#define SLOW        DUR_S(1)

static uint64_t key_of(const struct happening *h)
{
    unsigned char digest[SHA256_LEN];
    uint64_t key;
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    str_adds(&s, h->alert->name);
    str_addc(&s, '\0');
    str_adds(&s, h->type);
    str_addc(&s, '\0');
    str_add(&s, h->text);
    sha256(str_sv(&s), digest);
    memcpy(&key, digest, sizeof(key));
    return key;
}

static struct subject *find(struct alerts *a, uint64_t key)
{
    for (size_t i = 0; i < a->n_subjects; i++)
        if (a->subjects[i].key == key)
            return &a->subjects[i];
    return NULL;
}

static void forget_pending(struct subject *s)
{
    free(s->message);
    free(s->sample);
    free(s->detail);
    s->message = s->sample = s->detail = NULL;
    s->count = 0;
}

static void subject_done(struct subject *s)
{
    forget_pending(s);
    free(s->body);
    free(s->text);
}

static void drop(struct alerts *a, int64_t n, const char *why)
{
    pthread_mutex_lock(&a->lock);
    a->dropped += n;
    if (!a->trouble[0])
        memcpy(a->trouble, why, strlen(why) + 1);
    pthread_mutex_unlock(&a->lock);
}

/* Those that have nothing to tell and may be told about again. */
static void tidy(struct alerts *a)
{
    struct boot now = clock_boot();
    size_t n = 0;
    for (size_t i = 0; i < a->n_subjects; i++) {
        struct subject *s = &a->subjects[i];
        if (s->count || s->body || s->not_before.us > now.us)
            a->subjects[n++] = *s;
        else
            subject_done(s);
    }
    a->n_subjects = n;
}

static struct subject *make(struct alerts *a, uint64_t key, const struct happening *h)
{
    if (a->n_subjects == SUBJECTS_MAX)
        tidy(a);
    if (a->n_subjects == SUBJECTS_MAX)
        return NULL;
    ARRAY_GROW(a->subjects, a->n_subjects, a->cap_subjects);
    struct subject *s = &a->subjects[a->n_subjects++];
    *s = (struct subject){
        .key = key, .alert = h->alert, .type = h->type, .text = mem_dup(h->text.p, h->text.n)};
    return s;
}

static char *dup_or_null(struct sv s)
{
    return s.p ? mem_dup(s.p, s.n) : NULL;
}

void subjects_add(struct alerts *a, const struct happening *h)
{
    uint64_t key = key_of(h);
    struct subject *s = find(a, key);
    if (!s)
        s = make(a, key, h);
    if (!s) {
        drop(a, h->count, "too many different things to tell");
        return;
    }
    int64_t count = s->count;
    int64_t first = count ? s->first : h->number, before = count ? s->before : h->before;
    forget_pending(s);
    s->count = count + h->count;
    s->first = first;
    s->before = before < h->before ? before : h->before;
    s->at = h->at;
    s->message = mem_dup(h->message.p, h->message.n);
    s->sample = dup_or_null(h->sample);
    s->detail = dup_or_null(h->detail);
}

void subjects_clear(struct alerts *a)
{
    for (size_t i = 0; i < a->n_subjects; i++)
        subject_done(&a->subjects[i]);
    a->n_subjects = 0;
}

int64_t subjects_kept(const struct alerts *a)
{
    int64_t kept = a->cursor.v;
    for (size_t i = 0; i < a->n_subjects; i++) {
        const struct subject *s = &a->subjects[i];
        if (s->count && s->before < kept)
            kept = s->before;
        if (s->body && s->body_before < kept)
            kept = s->body_before;
    }
    return kept;
}

/* ---- telling ---- */

static struct dur backoff(const struct subject *s, struct dur asked)
{
    int64_t us = RETRY_FIRST.us;
    for (int i = 1; i < s->tries && us < RETRY_MAX.us; i++)
        us *= 2;
    us = asked.us > us ? asked.us : us;
    return (struct dur){us < RETRY_MAX.us ? us : RETRY_MAX.us};
}

static void told(struct alerts *a, struct subject *s, struct boot now)
{
    a->told = true;
    free(s->body);
    s->body = NULL;
    s->not_before.us = now.us + s->alert->every.us;
}

/* A channel has ended its try. */
static void settle(struct alerts *a, struct channel *c, struct boot now)
{
    struct subject *s = find(a, c->subject);
    c->state = CHANNEL_FREE;
    if (!s || !s->body)
        return;
    if (c->ok) {
        told(a, s, now);
    } else if (now.us - s->body_since.us > GIVE_UP.us) {
        a->dropped++; /* the lock is held */
        told(a, s, now);
    } else {
        s->not_before.us = now.us + backoff(s, c->retry_after).us;
    }
}

static void begin_telling(struct alerts *a, struct subject *s, struct boot now)
{
    AUTO_STR struct str body = STR_INIT(ALERT_BODY_MAX);
    alert_body(a, s, &body);
    s->body = mem_dup(body.p, body.len);
    s->body_before = s->before;
    s->body_since = now;
    s->tries = 0;
    forget_pending(s);
}

static bool due(const struct subject *s, struct boot now, bool ending)
{
    if (!s->body && !s->count)
        return false;
    bool held = !s->body; /* and not one that failed */
    return now.us >= s->not_before.us || (held && ending);
}

static struct subject *next_due(struct alerts *a, const struct alert_conf *alert, struct boot now,
                                bool ending)
{
    for (size_t i = 0; i < a->n_subjects; i++) {
        struct subject *s = &a->subjects[(a->turn + i) % a->n_subjects];
        if (s->alert == alert && due(s, now, ending)) {
            a->turn += i + 1; /* each gets its turn */
            return s;
        }
    }
    return NULL;
}

static void fill(struct alerts *a, struct channel *c, struct boot now, bool ending)
{
    struct subject *s = next_due(a, c->alert, now, ending);
    if (!s)
        return;
    if (!s->body)
        begin_telling(a, s, now);
    s->tries++;
    c->subject = s->key;
    c->state = CHANNEL_READY;
    str_clear(&c->body);
    str_adds(&c->body, s->body);
}

void subjects_send(struct alerts *a, bool ending)
{
    struct boot now = clock_boot();
    bool any = false;
    for (size_t i = 0; i < a->o->config->n_alerts; i++) {
        struct channel *c = &a->channels[i];
        if (c->state == CHANNEL_ENDED)
            settle(a, c, now);
        if (c->state == CHANNEL_FREE)
            fill(a, c, now, ending);
        any = any || c->state == CHANNEL_READY;
    }
    if (any || a->dropped)
        loop_wake(a->o->loop);
}

/* A target that keeps others waiting is not waited for. */
static bool slow(const struct channel *c, struct boot now)
{
    return c->failing || (c->state == CHANNEL_SENDING && now.us - c->since.us > SLOW.us);
}

static bool anything_for(const struct alerts *a, const struct channel *c, struct boot now)
{
    for (size_t i = 0; i < a->n_subjects; i++)
        if (a->subjects[i].alert == c->alert && due(&a->subjects[i], now, true))
            return true;
    return c->state != CHANNEL_FREE;
}

bool subjects_idle(const struct alerts *a)
{
    struct boot now = clock_boot();
    for (size_t i = 0; i < a->o->config->n_alerts; i++)
        if (!slow(&a->channels[i], now) && anything_for(a, &a->channels[i], now))
            return false;
    return true;
}
