#include "digest.h"

#include "hash.h"
#include "job.h"

void key_digest(struct sv queue, struct sv key, unsigned char out[KEY_DIGEST_LEN])
{
    /* The length in front keeps ("ab","c") and ("a","bc") apart. */
    unsigned char buf[8 + NAME_MAX_BYTES + KEY_MAX_BYTES];
    unsigned char full[SHA256_LEN];
    uint64_t n = queue.n;
    memcpy(buf, &n, 8);
    memcpy(buf + 8, queue.p, queue.n);
    memcpy(buf + 8 + queue.n, key.p, key.n);
    sha256(sv_make((const char *)buf, 8 + queue.n + key.n), full);
    memcpy(out, full, KEY_DIGEST_LEN);
}

/* No name holds a NUL, so one between them keeps them apart. */
static int64_t names_digest(const struct sv *names, size_t n)
{
    char buf[3 * (NAME_MAX_BYTES + 1)];
    unsigned char full[SHA256_LEN];
    size_t len = 0;
    uint64_t id = 0;
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf[len++] = '\0';
        if (names[i].n)
            memcpy(buf + len, names[i].p, names[i].n);
        len += names[i].n;
    }
    sha256(sv_make(buf, len), full);
    for (int i = 0; i < 8; i++)
        id = id << 8 | full[i];
    return (int64_t)id;
}

int64_t class_digest(struct sv queue, struct sv kind)
{
    return names_digest((const struct sv[]){queue, kind}, 2);
}

int64_t lane_digest(struct sv queue, struct sv kind, struct sv host)
{
    return names_digest((const struct sv[]){queue, kind, host}, 3);
}

int64_t lock_digest(struct sv key)
{
    return names_digest(&key, 1);
}

int64_t gate_digest(struct sv limit, struct sv value)
{
    return names_digest((const struct sv[]){limit, value}, 2);
}
