/* Words for tests of the worker with C handlers. Handlers run on other threads: they count, the
 * tests judge. */
#ifndef PAWL_TESTS_LIB_API_WORKING_H
#define PAWL_TESTS_LIB_API_WORKING_H

#include "lab.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* Four slots, drains, short intervals. */
pawl_worker_options quick(const char *url);
pawl_worker *make(struct lab *lab, const pawl_worker_options *o);
void handle(struct lab *lab, pawl_worker *w, const char *kind, pawl_handler *fn, void *arg);
pawl_worker_report run(struct lab *lab, pawl_worker *w);

#define TEST(f) cmocka_unit_test_setup_teardown(f, lab_setup, lab_teardown)

#endif
