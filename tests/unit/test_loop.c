/* base: the event loop. */
#include "unit.h"

#include "fd.h"
#include "loop.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>

struct fixture {
    struct loop *loop;
    struct str calls; /* a letter for each callback */
};
static struct fixture f;

static int begin(void **state)
{
    (void)state;
    f = (struct fixture){.calls = STR_INIT(STR_LINE)};
    return loop_new(&f.loop, NULL);
}

static int end(void **state)
{
    (void)state;
    loop_free(f.loop);
    str_done(&f.calls);
    return 0;
}

struct named_timer {
    struct timer timer;
    char name;
};

static void note_time(struct timer *t)
{
    str_addc(&f.calls, ((struct named_timer *)t)->name);
}

static void stop_time(struct timer *t)
{
    note_time(t);
    loop_stop(f.loop);
}

static struct named_timer named(char name, void (*on_time)(struct timer *))
{
    return (struct named_timer){.timer.on_time = on_time, .name = name};
}

static void timers_run_in_order(void **state)
{
    (void)state;
    struct named_timer a = named('a', note_time), b = named('b', note_time),
                       c = named('c', stop_time), d = named('d', note_time);
    struct boot from = clock_boot();
    loop_timer_set(f.loop, &c.timer, DUR_MS(30));
    loop_timer_set(f.loop, &a.timer, DUR_MS(10));
    loop_timer_set(f.loop, &d.timer, DUR_MS(15));
    loop_timer_set(f.loop, &b.timer, DUR_MS(5));
    loop_timer_set(f.loop, &b.timer, DUR_MS(20)); /* moved */
    loop_timer_clear(f.loop, &d.timer);
    loop_timer_clear(f.loop, &d.timer); /* harmless */
    assert_code(loop_run(f.loop, NULL), 0);
    assert_str(&f.calls, "abc");
    assert_true(clock_boot().us - from.us >= 29000);
    assert_int_equal(a.timer.slot, 0);
}

enum { MANY = 500 };
static struct named_timer many[MANY];
static int64_t last_us;
static int ran;

static void in_order(struct timer *t)
{
    assert_true(t->at.us >= last_us);
    last_us = t->at.us;
    ran++;
}

/* A heap of many timers, a third cleared, a third moved: the rest run in order, each once. */
static void many_timers_run_in_order(void **state)
{
    (void)state;
    unsigned seed = 42;
    struct named_timer last = named('z', stop_time);
    last_us = ran = 0;
    for (int i = 0; i < MANY; i++) {
        seed = seed * 1103515245 + 12345;
        many[i] = named('m', in_order);
        loop_timer_set(f.loop, &many[i].timer, DUR_US(seed / 65536 % 20000));
    }
    for (int i = 0; i < MANY; i += 3) {
        loop_timer_clear(f.loop, &many[i].timer);
        if (i + 1 < MANY)
            loop_timer_set(f.loop, &many[i + 1].timer, DUR_US(i * 17 % 15000));
    }
    loop_timer_set(f.loop, &last.timer, DUR_MS(40));
    assert_code(loop_run(f.loop, NULL), 0);
    assert_int_equal(ran, MANY - (MANY + 2) / 3);
    assert_str(&f.calls, "z");
}

static struct named_timer again;

static void rearm(struct timer *t)
{
    note_time(t);
    if (f.calls.len == 5)
        loop_stop(f.loop);
    else
        loop_timer_set(f.loop, t, DUR_US(0));
}

static void a_timer_may_set_itself(void **state)
{
    (void)state;
    again = named('r', rearm);
    loop_timer_set(f.loop, &again.timer, DUR_US(-5));
    assert_code(loop_run(f.loop, NULL), 0);
    assert_str(&f.calls, "rrrrr");
    loop_timer_clear(f.loop, &again.timer);
}

struct named_watch {
    struct watch watch;
    int other_end;
    char name;
};
static struct named_watch *pair[2];

static struct named_watch *new_watch(char name, void (*on_event)(struct watch *, uint32_t))
{
    int fds[2];
    struct named_watch *w = mem_zalloc(1, sizeof(*w));
    assert_int_equal(pipe(fds), 0);
    *w = (struct named_watch){{fds[0], on_event, false}, fds[1], name};
    assert_int_equal(write(w->other_end, "x", 1), 1);
    assert_code(loop_watch(f.loop, &w->watch, EPOLLIN, NULL), 0);
    return w;
}

static void free_watch(struct named_watch *w)
{
    loop_unwatch(f.loop, &w->watch);
    close(w->watch.fd);
    close(w->other_end);
    free(w);
}

/* Both are readable in the same turn: whoever runs first removes and frees both. */
static void free_both(struct watch *w, uint32_t events)
{
    (void)w;
    assert_true(events & EPOLLIN);
    str_addc(&f.calls, 'w');
    free_watch(pair[0]);
    free_watch(pair[1]);
    loop_stop(f.loop);
}

static void a_callback_may_free_any_watch(void **state)
{
    (void)state;
    struct named_timer wait = named('t', stop_time);
    pair[0] = new_watch('a', free_both);
    pair[1] = new_watch('b', free_both);
    assert_code(loop_run(f.loop, NULL), 0);
    assert_str(&f.calls, "w");
    loop_timer_set(f.loop, &wait.timer, DUR_MS(5)); /* nothing comes later either */
    assert_code(loop_run(f.loop, NULL), 0);
    assert_str(&f.calls, "wt");
}

static void unwatch_other(struct watch *w, uint32_t events)
{
    (void)events;
    struct named_watch *self = (struct named_watch *)w;
    str_addc(&f.calls, 'u');
    loop_unwatch(f.loop, &pair[self == pair[0]]->watch);
    char c;
    assert_int_equal(read(w->fd, &c, 1), 1);
}

/* The one that ran first took the other away; added again the other one runs. */
static void a_watch_may_come_back(void **state)
{
    (void)state;
    struct named_timer wait = named('t', stop_time);
    pair[0] = new_watch('a', unwatch_other);
    pair[1] = new_watch('b', unwatch_other);
    loop_timer_set(f.loop, &wait.timer, DUR_MS(5));
    assert_code(loop_run(f.loop, NULL), 0);
    assert_str(&f.calls, "ut");
    for (int i = 0; i < 2; i++)
        assert_code(loop_watch(f.loop, &pair[i]->watch, EPOLLIN, NULL), 0); /* active: changes */
    loop_timer_set(f.loop, &wait.timer, DUR_MS(5));
    assert_code(loop_run(f.loop, NULL), 0);
    assert_str(&f.calls, "utut");
    free_watch(pair[0]);
    free_watch(pair[1]);
}

static void refuses_what_cannot_be_watched(void **state)
{
    (void)state;
    struct watch w = {.fd = 9999};
    struct pawl_err err = {0};
    assert_code(loop_watch(f.loop, &w, EPOLLIN, &err), PAWL_EIO);
    assert_false(w.active);
    assert_string_equal(err.msg, "cannot watch descriptor 9999: Bad file descriptor");
    loop_unwatch(f.loop, &w);
}

enum { WAKES = 1000 };
static atomic_int sent;

static void *waker(void *arg)
{
    for (int i = 0; i < WAKES; i++) {
        atomic_fetch_add(&sent, 1);
        loop_wake(arg);
    }
    return NULL;
}

static void on_wake(void *arg)
{
    int *seen = arg;
    *seen = atomic_load(&sent);
    if (*seen == WAKES)
        loop_stop(f.loop);
}

/* No wake-up is lost: after the last one the loop sees everything sent before it. */
static void wakes_from_another_thread(void **state)
{
    (void)state;
    pthread_t thread;
    int seen = 0;
    atomic_store(&sent, 0);
    loop_on_wake(f.loop, on_wake, &seen);
    assert_int_equal(pthread_create(&thread, NULL, waker, f.loop), 0);
    assert_code(loop_run(f.loop, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(seen, WAKES);
}

static void a_wake_before_the_run_counts(void **state)
{
    (void)state;
    int seen = 0;
    atomic_store(&sent, WAKES);
    loop_on_wake(f.loop, on_wake, &seen);
    loop_wake(f.loop);
    assert_code(loop_run(f.loop, NULL), 0);
    assert_int_equal(seen, WAKES);
}

#define LOOP_TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP_TEST(timers_run_in_order),       LOOP_TEST(many_timers_run_in_order),
        LOOP_TEST(a_timer_may_set_itself),    LOOP_TEST(a_callback_may_free_any_watch),
        LOOP_TEST(a_watch_may_come_back),     LOOP_TEST(refuses_what_cannot_be_watched),
        LOOP_TEST(wakes_from_another_thread), LOOP_TEST(a_wake_before_the_run_counts),
    };
    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
