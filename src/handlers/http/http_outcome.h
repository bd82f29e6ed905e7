/* From an answer to the end of an attempt: pure but for the memory of its words. */
#ifndef PAWL_HANDLERS_HTTP_OUTCOME_H
#define PAWL_HANDLERS_HTTP_OUTCOME_H

#include "handler.h"
#include "http.h"

enum { ANSWER_MAX = 64 << 10 }; /* a body that may become the job's result */

/* `body`: what came of the answer's; `whole` is false if there was more than ANSWER_MAX. `words`
 * gets the error message; the result points into both. */
struct run_result http_outcome(const struct http_result *res, struct sv body, bool whole,
                               struct str *words);

#endif
