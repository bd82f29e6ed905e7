/* What every unit test includes: cmocka in the order it wants, and checks on pawl's types. */
#ifndef PAWL_TESTS_UNIT_H
#define PAWL_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "err.h"
#include "mem.h"
#include "str.h"
#include <stdio.h>

#define assert_str(s, text) assert_string_equal(str_cstr(s), (text))
#define assert_sv(v, text)                                                                         \
    assert_true_msg(sv_eq((v), sv_of(text)), "\"%.*s\" is not \"%s\"", (int)(v).n,                 \
                    (v).p ? (v).p : "", (text))
#define assert_code(rc, code_) assert_int_equal((rc), (code_))
#define assert_true_msg(cond, ...)                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            print_error(__VA_ARGS__);                                                              \
            print_error("\n");                                                                     \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

#endif
