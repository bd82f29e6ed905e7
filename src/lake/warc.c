/* The text of WARC/1.1 records (ISO 28500:2017). */
#include "pack.h"

#include "mem.h"
#include <strings.h>

/* RFC 9562, version 4: groups of digits, of so many bytes each. */
static void format_id(unsigned char b[16], char out[RECORD_ID])
{
    static const size_t groups[] = {4, 2, 2, 2, 6};
    b[6] = (unsigned char)((b[6] & 15) | 0x40);
    b[8] = (unsigned char)((b[8] & 63) | 0x80);
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        hex_encode(b, groups[i], out);
        b += groups[i];
        out += 2 * groups[i];
        *out++ = '-';
    }
    out[-1] = '\0';
}

void record_id_new(struct record_ids *ids, char out[RECORD_ID])
{
    if (!ids->left) {
        rand_bytes(ids->random, sizeof(ids->random));
        ids->left = ARRAY_LEN(ids->random);
    }
    format_id(ids->random[--ids->left], out);
}

static void put_field(struct str *s, const char *name, struct sv value)
{
    str_adds(s, name);
    str_add(s, SV(": "));
    str_add(s, value);
    str_add(s, SV("\r\n"));
}

static void put_id(struct str *s, const char *name, const char *id)
{
    if (!id)
        return;
    str_adds(s, name);
    str_add(s, SV(": <urn:uuid:"));
    str_adds(s, id);
    str_add(s, SV(">\r\n"));
}

/* What no URI has is percent-encoded: nothing from a job breaks out of its line (I14). */
static void put_uri(struct str *s, const char *name, struct sv uri)
{
    static const char digits[] = "0123456789ABCDEF";
    if (!uri.p)
        return;
    str_adds(s, name);
    str_add(s, SV(": "));
    size_t end = uri.n < RECORD_URI ? uri.n : RECORD_URI;
    for (size_t i = 0, from = 0; i <= end; i++) {
        unsigned char c = i < end ? (unsigned char)uri.p[i] : 0;
        if (c > 0x20 && c < 0x7f && !strchr("\"<>\\^`{|}", c))
            continue;
        str_add(s, sv_make(uri.p + from, i - from));
        char code[3] = {'%', digits[c >> 4], digits[c & 15]};
        if (i < end)
            str_add(s, sv_make(code, 3));
        from = i + 1;
    }
    str_add(s, SV("\r\n"));
}

static void put_digest(struct str *s, const char *name, const unsigned char *sum)
{
    char hex[2 * SHA256_LEN + 1];
    if (!sum)
        return;
    hex_encode(sum, SHA256_LEN, hex);
    str_adds(s, name);
    str_add(s, SV(": sha256:"));
    str_add(s, sv_make(hex, 2 * SHA256_LEN));
    str_add(s, SV("\r\n"));
}

/* A media type goes as it is, if it is one line of visible ASCII. */
static void put_type(struct str *s, struct sv type)
{
    bool good = type.n > 0 && type.n < 1024;
    for (size_t i = 0; good && i < type.n; i++)
        good = type.p[i] >= 0x20 && type.p[i] < 0x7f;
    put_field(s, "Content-Type", good ? type : SV("application/octet-stream"));
}

static void put_refers(struct str *s, const struct warc_record *r)
{
    if (r->refers_id.p)
        put_field(s, "WARC-Refers-To", r->refers_id);
    if (r->refers_uri.p)
        put_uri(s, "WARC-Refers-To-Target-URI", r->refers_uri);
    if (r->refers_date.p)
        put_field(s, "WARC-Refers-To-Date", r->refers_date);
    put_field(s, "WARC-Profile", sv_of(r->profile));
}

void warc_head(const struct warc_record *r, struct str *out)
{
    str_add(out, SV("WARC/1.1\r\n"));
    put_field(out, "WARC-Type", sv_of(r->type));
    put_id(out, "WARC-Record-ID", r->id);
    str_add(out, SV("WARC-Date: "));
    wall_format(r->at, out);
    str_add(out, SV("\r\n"));
    if (r->file)
        put_field(out, "WARC-Filename", sv_of(r->file));
    put_uri(out, "WARC-Target-URI", r->uri);
    put_id(out, "WARC-Warcinfo-ID", r->info);
    put_id(out, "WARC-Concurrent-To", r->concurrent);
    if (r->address.p)
        put_field(out, "WARC-IP-Address", r->address);
    if (r->profile)
        put_refers(out, r);
    put_digest(out, "WARC-Block-Digest", r->block);
    put_digest(out, "WARC-Payload-Digest", r->payload);
    put_type(out, r->content_type);
    str_add(out, SV("Content-Length: "));
    str_addi(out, r->length);
    str_add(out, SV("\r\n\r\n"));
}

struct sv warc_info(struct record_ids *ids, char id[RECORD_ID], unsigned char sum[SHA256_LEN],
                    struct warc_record *out)
{
    const struct sv block = SV("software: pawl/" PAWL_VERSION "\r\n"
                               "format: WARC File Format 1.1\r\n"
                               "conformsTo: http://iipc.github.io/warc-specifications/"
                               "specifications/warc-format/warc-1.1/\r\n");
    sha256(block, sum);
    record_id_new(ids, id);
    *out = (struct warc_record){.type = "warcinfo",
                                .id = id,
                                .content_type = SV("application/warc-fields"),
                                .at = clock_wall(),
                                .block = sum,
                                .length = (int64_t)block.n};
    return block;
}

struct sv warc_field(struct sv head, const char *name)
{
    size_t n = strlen(name);
    for (struct sv rest = head; rest.p && rest.n;) {
        struct sv line = sv_cut(rest, '\n', &rest);
        if (line.n > n && line.p[n] == ':' && !strncasecmp(line.p, name, n))
            return sv_trim(sv_make(line.p + n + 1, line.n - n - 1));
    }
    return SV_NONE;
}
