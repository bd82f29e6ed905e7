/* What travels between the worker, the zygote and a supervisor: native structs over SOCK_SEQPACKET
 * sockets, for one machine and one build (the zygote is embedded in the binary that talks to it).
 *
 * zygote -> worker:     WIRE_HELLO alone, once, when it is ready
 * worker -> zygote:     wire_spawn + body, or wire_lock; descriptors beside them
 * worker -> supervisor: wire_cancel on the job's control socket, whose end is the lifeline; after a
 *                       wire_exit that `stays`: the next wire_spawn, without a control descriptor
 * supervisor -> worker: wire_chunk + bytes of the job's descriptor 3, then one wire_exit + tail */
#ifndef PAWL_PROCESS_WIRE_H
#define PAWL_PROCESS_WIRE_H

#include "cause.h"
#include <stdatomic.h>
#include <stdint.h>

enum {
    WIRE_SOCKET_FD = 3, /* the zygote's descriptors at its start */
    WIRE_PAGE_FD = 4,
    WIRE_BODY_MAX = 32 << 10, /* larger bodies come in a memfd */
    WIRE_TAIL_MAX = 8 << 10,
    WIRE_CHUNK_MAX = 16 << 10,
    WIRE_FDS_MAX = 4,
};

/* Shared page, written by the worker only: CLOCK_BOOTTIME microseconds at which all jobs must be
 * dead; 0 while none is published. */
struct wire_page {
    _Atomic int64_t deadline_us;
};

enum wire_type { WIRE_HELLO = 1, WIRE_SPAWN, WIRE_LOCK, WIRE_CANCEL, WIRE_CHUNK, WIRE_EXIT };

enum wire_flag {
    WIRE_NO_NEW_PRIVS = 1,
    WIRE_HAS_LOG = 2,     /* log directory descriptor follows */
    WIRE_HAS_INPUT = 4,   /* stdin descriptor follows */
    WIRE_HAS_BODY_FD = 8, /* the body is in a memfd */
};

/* Descriptors in this order: [control], [log directory], [stdin], [body]. The body is n_argv +
 * n_env
 * + 2 NUL-terminated strings: log name, working directory ("": the worker's), argv, environment. */
struct wire_spawn {
    uint32_t type; /* WIRE_SPAWN */
    uint32_t flags;
    int64_t timeout_us, idle_us; /* < 0: none */
    int64_t grace_us;
    int64_t log_head, log_tail;
    uint32_t n_argv, n_env, body_len;
};

/* The descriptor beside it (or none) replaces the session's lock held so far. */
struct wire_lock {
    uint32_t type; /* WIRE_LOCK */
};

struct wire_cancel {
    uint32_t type;    /* WIRE_CANCEL */
    uint32_t at_once; /* no SIGTERM, no grace */
};

struct wire_chunk {
    uint32_t type; /* WIRE_CHUNK */
    uint32_t len;
};

struct wire_exit {
    uint32_t type;     /* WIRE_EXIT */
    uint32_t cause;    /* enum process_cause */
    uint32_t step;     /* enum process_step */
    int32_t error;     /* errno of that step */
    int32_t status;    /* of wait(2) */
    int32_t log_error; /* errno: the log is incomplete; 0: it is whole */
    int64_t log_bytes;
    int64_t user_us, system_us, max_rss_kib;
    uint32_t tail_len;
    uint32_t stays; /* the supervisor waits for another job on the same socket */
};

#endif
