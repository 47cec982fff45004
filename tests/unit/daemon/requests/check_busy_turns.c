/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that no turn of the loop takes more than a millisecond while connections, monitors, a
 * departure and work of the daemon are all busy, and that none of them starves. Time passes only
 * when somebody looks at the clock, so the result does not depend on the machine. */
#include "daemon/base/slice.h"
#include "daemon/requests/departure.h"

#include <time.h>

#include "unit/house.h"

#define LOOK_NS  INT64_C(10000) /* what one look at the clock takes */
#define WORK_NS  INT64_C(50000) /* one turn of the daemon's work */
#define MOST_NS  INT64_C(1000000)
#define SEGMENTS 200
#define ASKERS   5
#define PINGS    50
#define TURNS    2000

static struct house house;
static int64_t clock_ns = INT64_C(1000000000), began_ns, longest_ns;
static unsigned n_turns, n_worked;
static uv_prepare_t prepare;

/* Replaces that of the C library, also for libuv. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    clock_ns += LOOK_NS;
    *t = (struct timespec){.tv_sec = clock_ns / 1000000000, .tv_nsec = clock_ns % 1000000000};
    return 0;
}

static void on_prepare(uv_prepare_t *handle)
{
    (void)handle;
    if (n_turns++ && clock_ns - began_ns > longest_ns)
        longest_ns = clock_ns - began_ns;
    began_ns = clock_ns;
    slice_begin_turn(&house.loop);
}

static void work(struct turn *turn)
{
    clock_ns += WORK_NS;
    n_worked++;
    turns_again(&house.turns, turn);
}

static struct guest *admit_with_segments(void)
{
    struct guest *g = house_admit(&house);
    for (int i = 0; i < SEGMENTS; i++) {
        char parameters[128];
        snprintf(parameters, sizeof parameters, "{'name':'s%d','size':1,'access':'write'}", i);
        house_call(g, "Create", parameters);
    }
    return g;
}

static struct guest *admit_monitor(void)
{
    struct guest *g = house_admit(&house);
    house_send(g, "{'method':'io.shmview.Monitor','parameters':{},'more':true}");
    house_receive(g);
    return g;
}

static void ask_much(const struct guest *g)
{
    static const char ping[] = "{\"method\":\"io.shmview.Ping\"}";
    char text[PINGS * sizeof ping];
    for (int i = 0; i < PINGS; i++)
        memcpy(text + (size_t)i * sizeof ping, ping, sizeof ping);
    ssize_t n = send(g->fd, text, sizeof text, MSG_DONTWAIT | MSG_NOSIGNAL);
    ck_assert(n < 0 || n == (ssize_t)sizeof text);
}

/* Returns the number of bytes that there were. */
static size_t drain(const struct guest *g)
{
    char text[65536];
    size_t n = 0;
    for (ssize_t now; (now = recv(g->fd, text, sizeof text, MSG_DONTWAIT)) > 0;)
        n += (size_t)now;
    return n;
}

/* Runs the loop, with requests of all askers before each turn, until the departure has ended. */
static void run_busy(struct guest *monitor, struct guest *askers[ASKERS])
{
    size_t n_events = 0, n_replies[ASKERS] = {0};
    for (unsigned i = 0; i < TURNS && registry_count(&house.state.registry); i++) {
        for (int k = 0; k < ASKERS; k++) {
            n_replies[k] += drain(askers[k]);
            ask_much(askers[k]);
        }
        n_events += drain(monitor);
        house_run(&house);
    }
    ck_assert_uint_eq(registry_count(&house.state.registry), 0);
    ck_assert_uint_gt(n_events, 0);
    for (int k = 0; k < ASKERS; k++)
        ck_assert_uint_gt(n_replies[k], 0);
}

START_TEST(no_turn_is_long)
{
    struct quota_user payer;
    struct turn daily = {.serve = work, .payer = &payer};
    struct guest *askers[ASKERS];
    turns_own_user(&payer);
    house_open(&house);
    struct guest *dead = admit_with_segments(), *monitor = admit_monitor();
    for (int i = 0; i < ASKERS; i++)
        askers[i] = house_admit(&house);
    uv_prepare_init(&house.loop, &prepare);
    uv_prepare_start(&prepare, on_prepare);
    turns_again(&house.turns, &daily);
    house_leave(dead);
    run_busy(monitor, askers);
    turns_cancel(&house.turns, &daily);
    uv_close((uv_handle_t *)&prepare, NULL);
    slice_begin_turn(NULL);
    ck_assert_uint_gt(n_turns, 10);
    ck_assert_uint_gt(n_worked, n_turns / 8);
    ck_assert_int_gt(longest_ns, 0);
    ck_assert_int_le(longest_ns, MOST_NS);
    house_close(&house);
}
END_TEST

UNIT_MAIN("busy_turns", UNIT_TEST(no_turn_is_long))
