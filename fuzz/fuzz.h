/* A fuzz target: must not crash, leak, hang or break its own claims for any bytes. Built with
 * -fsanitize=fuzzer by clang; its corpus is replayed by tests/unit/replay.c in every test run. */
#ifndef PAWL_FUZZ_H
#define PAWL_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
