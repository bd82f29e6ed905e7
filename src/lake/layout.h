/* Names in the lake: objects by hash, temporary files by chance, and the words for both that rows
 * and callers hold ("places"). Nothing else ever becomes a path (S27). */
#ifndef PAWL_LAKE_LAYOUT_H
#define PAWL_LAKE_LAYOUT_H

#include "artifact.h"
#include "str.h"
#include <stdbool.h>

enum {
    FOLDERS = 256,   /* below objects/, by the first byte of the hash */
    FOLDER_NAME = 3, /* "ab" and NUL */
    TEMP_NAME = 33,  /* 32 hex digits and NUL */
    OBJECT_NAME = 2 * SHA256_LEN + sizeof(".zst"), /* with NUL */
    PLACE_NAME = 9 + OBJECT_NAME,                  /* "files/ab/" in front */
};

struct place {
    bool temporary;
    enum codec codec;
    unsigned char sha256[SHA256_LEN]; /* not of temporary ones */
    char name[OBJECT_NAME];           /* in its folder */
};

void layout_folder(unsigned char first, char out[FOLDER_NAME]);
void layout_object(const unsigned char sha256[SHA256_LEN], enum codec c, char out[OBJECT_NAME]);
void layout_place(const unsigned char sha256[SHA256_LEN], enum codec c, char out[PLACE_NAME]);
/* The names of files; false: none of the lake's. */
bool layout_read_object(const char *name, struct place *out);
bool layout_read_temp(const char *name, struct place *out);
bool layout_read_place(struct sv text, struct place *out);

/* "text/html; charset=utf-8" is "text/html", "text/" followed by a star, or a star. */
bool layout_type_matches(struct sv type, const char *const *types, size_t n);

#endif
