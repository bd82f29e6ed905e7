#include "working.h"

pawl_worker_options quick(const char *url)
{
    pawl_worker_options o = PAWL_WORKER_OPTIONS_INIT;
    o.url = url;
    o.slots = 4;
    o.drain = true;
    o.poll_interval_ms = 50;
    o.retry_base_ms = 1;
    o.retry_max_ms = 2;
    return o;
}

pawl_worker *make(struct lab *lab, const pawl_worker_options *o)
{
    pawl_worker *w = NULL;
    OK(pawl_worker_new(o, &w, &lab->err));
    return w;
}

void handle(struct lab *lab, pawl_worker *w, const char *kind, pawl_handler *fn, void *arg)
{
    OK(pawl_worker_handle(w, kind, fn, arg, NULL, &lab->err));
}

pawl_worker_report run(struct lab *lab, pawl_worker *w)
{
    pawl_worker_report r = PAWL_WORKER_REPORT_INIT;
    OK(pawl_worker_run(w, &r, &lab->err));
    return r;
}
