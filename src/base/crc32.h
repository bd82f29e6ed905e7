/* The check sum of gzip, PNG and Ethernet. */
#ifndef PAWL_BASE_CRC32_H
#define PAWL_BASE_CRC32_H

#include "str.h"
#include <stdint.h>

/* Of what `crc` is the sum of, with these bytes behind it; that of nothing is 0. */
uint32_t crc32_add(uint32_t crc, struct sv bytes);

#endif
