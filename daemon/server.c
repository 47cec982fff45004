/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/util.h"
#include "common/memory/cgroup.h"
#include "daemon/base/log.h"
#include "daemon/base/loop.h"
#include "daemon/base/slice.h"
#include "daemon/clients/refusal.h"
#include "daemon/clients/stray.h"
#include "daemon/clients/tally.h"
#include "daemon/memory/discard.h"
#include "daemon/memory/keeping.h"
#include "daemon/memory/pool.h"
#include "daemon/memory/sealed.h"
#include "daemon/recovery.h"
#include "daemon/requests/creation.h"
#include "daemon/requests/declared.h"
#include "daemon/requests/departure.h"
#include "daemon/requests/methods.h"
#include "daemon/requests/monitor.h"
#include "daemon/requests/permit.h"
#include "daemon/segments/ready.h"
#include "daemon/segments/segment_repair.h"
#include "daemon/segments/use.h"

/* A client holds a socket, a pidfd and a bell. A reply, which may have to be kept, has at most
 * as many. */
#define DESCRIPTORS_PER_CONNECTION 3
#define READY_DESCRIPTORS          512   /* at most, of objects that are made ahead */
#define DESCRIPTORS_OF_OURS        64    /* libuv, objects being made or freed */
#define SEALED_PART                4     /* of what is left for connections: a quarter */
#define DESCRIPTORS_AT_ONCE        16384 /* 128 KiB of the kernel's memory */
#define REPAIR_MS                  500   /* from one check of all segments to the next one */
#define REPAIR_MORE_MS             16    /* between two parts of a check */
#define LINGER_LOOK_MS             10
#define LINGER_MORE_MS             1
#define SLICE_NS                   250000

/* --- Connections --------------------------------------------------------- */

/* The functions up to on_take_back() handle events of a connection; connection.h describes each. */
static void on_call(struct connection *connection, const struct wire_call *call,
                    struct answer *answer)
{
    struct server *s = connection->owner;
    poll_ahead_note(&s->poll_ahead);
    methods_call(&s->state, connection, call, answer);
}

static void on_idle(uv_timer_t *timer);

static void start_idle_clock(struct server *s)
{
    if (s->idle_exit && s->state.tally.n_connections == 0 && !s->stopping)
        uv_timer_start(&s->idle_timer, on_idle, (uint64_t)s->idle_exit * 1000, 0);
}

static void forget_lingering(struct server *s, struct connection *connection)
{
    if (connection->lingers)
        TAILQ_REMOVE(&s->lingering, connection, lingering);
    connection->lingers = false;
}

/* Frees what the connection had. When the daemon ends, its clients live on, so their attachments
 * are only forgotten. If stray descriptors are left, the refund follows when their thread is done.
 */
static void on_closed(struct connection *connection)
{
    struct server *s = connection->owner;
    if (s->stopping)
        methods_abandon(connection);
    else
        methods_hung_up(&s->state, connection);
    LIST_REMOVE(connection, link);
    forget_lingering(s, connection);
    turns_cancel(&s->turns, &connection->turn);
    turns_gone(&s->turns, connection);
    connection->turn.who = NULL; /* a turn that ends now does not count as activity */
    throttle_cancel(&s->throttle, connection);
    if (!connection->strays)
        quota_refund(connection->payer, QUOTA_CONNECTIONS, 1);
    start_idle_clock(s);
}

static bool on_begin(struct connection *connection)
{
    struct server *s = connection->owner;
    return turns_begin(&s->turns, &connection->turn);
}

static void on_end(struct connection *connection)
{
    struct server *s = connection->owner;
    turns_end(&s->turns, &connection->turn);
}

static void on_again(struct connection *connection)
{
    struct server *s = connection->owner;
    turns_again(&s->turns, &connection->turn);
}

static void on_gone(struct connection *connection)
{
    struct server *s = connection->owner;
    methods_client_died(&s->state, connection);
}

static void on_lingers(struct connection *connection)
{
    struct server *s = connection->owner;
    if (connection->lingers)
        return;
    connection->lingers = true;
    TAILQ_INSERT_TAIL(&s->lingering, connection, lingering);
    if (!s->linger_alarm.is_set)
        alarm_set(&s->linger_alarm, LINGER_LOOK_MS, 0);
}

/* Looks again at connections whose clients have gone and whose last requests wait for a turn. One
 * that may linger longer comes back by on_lingers() to the end of the list: only the first n are
 * taken, as far as there is time. */
static void on_linger_alarm(struct alarm *alarm)
{
    struct server *s = alarm->data;
    struct connection *c;
    unsigned n = 0;
    TAILQ_FOREACH (c, &s->lingering, lingering)
        n++;
    int64_t until = slice_end(SLICE_NS);
    do {
        if (n-- == 0 || !(c = TAILQ_FIRST(&s->lingering)))
            return;
        forget_lingering(s, c);
        connection_end(c);
    } while (now_ns() < until);
    if (n)
        alarm_set(alarm, LINGER_MORE_MS, 0);
}

/* Without a limit on requests there is nothing to count, and the throttle is skipped. */
static bool on_may_ask(struct connection *connection)
{
    struct server *s = connection->owner;
    return (!connection->resumed && !quota_limits_requests(&s->state.quota)) ||
           throttle_may_ask(&s->throttle, connection, permit_who(&s->state, connection).is_admin);
}

static void on_expect(struct connection *connection, size_t n)
{
    const struct server *s = connection->owner;
    store_make_room(s->state.registry.home.store, n); /* for a layout */
}

/* Charges the user for a connection. Returns 0, -EDQUOT or -ENOMEM. */
static int charge(struct server *s, struct connection *c, struct quota_excess *ret_excess)
{
    return quota_charge_share(&s->state.quota, c->peer.uid, permit_who(&s->state, c).is_admin,
                              QUOTA_CONNECTIONS, s->state.max_connections, &c->payer, ret_excess);
}

static bool on_keep(struct connection *connection)
{
    struct quota_excess excess;
    return charge(connection->owner, connection, &excess) == 0;
}

static void on_take_back(struct connection *connection, const struct answer *answer)
{
    struct server *s = connection->owner;
    methods_cancel(&s->state, connection, answer);
}

static const struct connection_events events = {
    .call = on_call,
    .expect = on_expect,
    .prepare = methods_prepare,
    .unprepare = methods_unprepare,
    .closed = on_closed,
    .begin = on_begin,
    .end = on_end,
    .again = on_again,
    .drained = monitor_drained,
    .may_ask = on_may_ask,
    .cancel = creation_cancel,
    .gone = on_gone,
    .lingers = on_lingers,
    .keep = on_keep,
    .take_back = on_take_back,
};

/* --- Admitting ----------------------------------------------------------- */

/* Refuses a connection: the reply to its first request, whatever that is, will be this error. */
static void refuse_connection(struct connection *c, int r, const struct quota_excess *excess)
{
    struct answer answer = {0};
    if (r == -EDQUOT)
        refuse_quota(&answer, c->peer.uid, excess);
    else
        refuse_system(&answer, "a user cannot be charged", -r);
    tally_note(c, &answer);
    connection_refuse(c, &answer);
}

/* Makes a connection of an accepted socket. Returns the user who is charged for it, or NULL. */
static struct quota_user *on_admit(void *arg, int fd)
{
    struct server *s = arg;
    struct quota_excess excess;
    struct connection *c = connection_new(&s->loop, fd, &events, &s->state.tally, s);
    if (!c)
        return NULL;
    LIST_INSERT_HEAD(&s->connections, c, link);
    uv_timer_stop(&s->idle_timer);
    int r = charge(s, c, &excess);
    c->turn.payer = c->payer;
    if (r)
        refuse_connection(c, r, &excess);
    return c->payer;
}

static bool has_segments(const struct server *s)
{
    return registry_count(&s->state.registry) > 0;
}

/* --- From time to time --------------------------------------------------- */

static void on_repair(struct alarm *alarm)
{
    struct server *s = alarm->data;
    segment_repair_some(&s->state.registry, &s->repaired);
    int left = sealed_settle();
    keeping_report();
    if (has_segments(s) || left)
        alarm_set(alarm, s->repaired || left == SEALED_MORE ? REPAIR_MORE_MS : REPAIR_MS, 0);
}

/* Runs before the loop waits for events. The timer for repairs is started here and stops itself, so
 * that an idle daemon without segments never wakes up. */
static void on_counts(uv_prepare_t *counts)
{
    struct server *s = counts->data;
    meter_end_turn(&s->state.meter);
    if (has_segments(s) && !s->repair_alarm.is_set)
        alarm_set(&s->repair_alarm, REPAIR_MS, 0);
    turns_round(&s->turns);
    departures_round(&s->state.departures);
    notify_status(&s->notify,
                  (struct notify_status){.n_segments = registry_count(&s->state.registry),
                                         .n_clients = s->state.tally.n_connections});
    poll_ahead_before_wait(&s->poll_ahead, !discard_is_busy());
    slice_begin_turn(&s->loop);
    meter_begin_turn(&s->state.meter);
}

/* --- Beginning and end --------------------------------------------------- */

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Closes all handles, which ends uv_run(), as soon as no work runs on a thread: until then the
 * thread uses memory of the server. Called whenever such work is done. */
static void finish_stop(struct state *state)
{
    struct server *s = CONTAINER_OF(state, struct server, state);
    if (!s->stopping || state->n_jobs)
        return;
    stray_init(NULL);
    server_hold_signals(SIG_BLOCK); /* without their handlers they would end the process */
    uv_walk(&s->loop, close_handle, NULL);
}

/* Begins the end: closes the socket and all connections, and cancels work on threads. */
static void server_stop(struct server *s)
{
    struct connection *c;
    if (s->stopping)
        return;
    s->stopping = true;
    atomic_store(&s->state.declared.cancel, true);
    pool_stop();
    notify_stopping();
    door_close(&s->door);
    listener_close(&s->listener);
    if (!s->keeps)
        registry_end_attachments(&s->state.registry);
    while ((c = LIST_FIRST(&s->connections)))
        connection_close(c);
    departures_finish(&s->state);
    clients_abandon(&s->state.clients);
    finish_stop(&s->state);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct server *s = signal->data;
    if (s->stopping)
        return;
    if (number == SIGHUP) {
        reload_start(&s->reload);
        return;
    }
    s->keeps = number == SIGTERM;
    log_event(
        LOG_INFO, &(struct log_event){.kind = LOG_LEAVE, .reason = s->keeps ? "SIGTERM" : "SIGINT"},
        "%s", s->keeps ? "SIGTERM: ending, segments stay" : "SIGINT: ending, segments are removed");
    server_stop(s);
}

static void on_idle(uv_timer_t *timer)
{
    struct server *s = timer->data;
    /* without a client all segments that are left have lifetime manual */
    if (s->state.tally.n_connections == 0 && !has_segments(s)) {
        log_event(LOG_INFO, &(struct log_event){.kind = LOG_LEAVE, .reason = "idle"},
                  "idle for %u s: ending", s->idle_exit);
        server_stop(s);
    } else {
        start_idle_clock(s);
    }
}

/* Raises the soft limit to the hard one. Returns how many descriptors this process may have. */
static unsigned raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return DESCRIPTORS_OF_OURS;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur < 1000000 ? (unsigned)limit.rlim_cur : 1000000;
}

/* Lets the kernel enlarge this process's table of descriptors now. In a process with threads each
 * doubling waits for all processors, which takes 5 to 12 ms. */
static void enlarge_descriptor_table(unsigned n)
{
    unsigned most = n < DESCRIPTORS_AT_ONCE ? n : DESCRIPTORS_AT_ONCE;
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)most - 1);
    if (fd >= 0)
        close(fd);
}

/* Divides the descriptors among their uses, so that none can take those of another. A sixteenth
 * each is for segments that were attached lately, for watches, and for pidfds of clients without a
 * connection; of the first the pool has half, 512 at most. Of the rest a quarter is for sealed
 * objects, and all other are for connections. */
static void share_descriptors(struct server *s)
{
    unsigned n = raise_descriptor_limit();
    enlarge_descriptor_table(n);
    unsigned ours = n / 16 * 3 + DESCRIPTORS_OF_OURS, rest = n > 2 * ours ? n - ours : 0;
    s->max_ready = n / 32 < READY_DESCRIPTORS ? n / 32 : READY_DESCRIPTORS;
    s->state.registry.home.max_recent = (n / 16 - s->max_ready) / N_USE_DESCRIPTORS;
    s->state.registry.home.max_watches = n / 16 / 2;
    s->max_watched = n / 16;
    unsigned sealed = rest ? rest / SEALED_PART : n / 16;
    sealed_limit(sealed);
    s->state.max_connections = rest ? (rest - sealed) / DESCRIPTORS_PER_CONNECTION : ours;
}

static int start_signal(struct server *s, uv_signal_t *handle, int number)
{
    int r = uv_signal_init(&s->loop, handle);
    handle->data = s;
    return r ? r : uv_signal_start(handle, on_signal, number);
}

void server_hold_signals(int how)
{
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGTERM);
    sigaddset(&handled, SIGINT);
    sigaddset(&handled, SIGHUP);
    pthread_sigmask(how, &handled, NULL);
}

/* Makes declared segments before any client is served, by running the loop without the socket. */
static void make_declared(struct server *s)
{
    declared_start(&s->state);
    while (s->state.declared.n_pending)
        uv_run(&s->loop, UV_RUN_ONCE);
}

static int start_pool(struct server *s)
{
    int r = pool_init(&s->loop, &ready_maker, s->max_ready);
    pool_limit(s->state.config->pool_bytes);
    return r;
}

static int init_alarms(struct server *s)
{
    int r = throttle_init(&s->throttle, &s->loop, &s->state.quota);
    if (r == 0)
        r = discard_start();
    if (r == 0)
        r = turns_init(&s->turns, &s->loop);
    if (r == 0)
        r = notify_init(&s->notify, &s->loop);
    if (r == 0)
        r = alarm_init(&s->repair_alarm, &s->loop, on_repair, s);
    if (r == 0)
        r = alarm_init(&s->linger_alarm, &s->loop, on_linger_alarm, s);
    return r;
}

/* The door opens last, because clients may see only the complete state. */
int server_init(struct server *server, const struct listener *listener,
                const struct options *options, struct store *store, struct config *config)
{
    server->listener = *listener;
    server->idle_exit = options->idle_exit;
    LIST_INIT(&server->connections);
    TAILQ_INIT(&server->lingering);
    int r = loop_init(&server->loop);
    if (r)
        return r;
    state_init(&server->state, &server->loop, &server->turns, config);
    meter_init(&server->state.meter, &server->loop);
    server->state.registry.home.store = store;
    server->state.job_done = finish_stop;
    share_descriptors(server);
    discard_init(&server->loop);
    stray_init(&server->loop);
    cgroup_init("");
    stray_refuse(listener->fd);
    uv_timer_init(&server->loop, &server->idle_timer);
    uv_prepare_init(&server->loop, &server->counts);
    poll_ahead_init(&server->poll_ahead, &server->loop);
    server->idle_timer.data = server;
    reload_init(&server->reload, &server->state, options->config, options->config_given);
    server->counts.data = server;
    r = door_init(&server->door, &server->loop, &server->turns, listener->fd, on_admit, server);
    if (r == 0)
        r = init_alarms(server);
    if (r == 0)
        r = start_signal(server, &server->sigterm, SIGTERM);
    if (r == 0)
        r = start_signal(server, &server->sigint, SIGINT);
    if (r == 0)
        r = start_signal(server, &server->sighup, SIGHUP);
    if (r == 0)
        server_hold_signals(SIG_UNBLOCK);
    if (r == 0)
        r = clients_open(&server->state.clients, server->max_watched);
    if (r == 0)
        r = recovery_run(&server->state);
    if (r == 0)
        make_declared(server);
    if (r == 0 && !server->stopping)
        r = start_pool(server);
    if (r == 0 && !server->stopping)
        r = door_open(&server->door);
    if (r == 0 && !server->stopping)
        r = uv_prepare_start(&server->counts, on_counts);
    start_idle_clock(server);
    if (r) /* keeps the files by which clients prove their life, for the next daemon */
        clients_close(&server->state.clients, false);
    return r;
}

/* After the loop has ended, memory is freed in the order of its use: a segment refers to the store
 * and to its quota user. */
void server_run(struct server *server)
{
    reload_open(&server->reload);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    discard_init(NULL);
    if (server->keeps)
        registry_abandon(&server->state.registry);
    else
        registry_deinit(&server->state.registry);
    clients_close(&server->state.clients, !server->keeps);
    store_close(server->state.registry.home.store, !server->keeps);
    quota_deinit(&server->state.quota);
    close_fdp(&server->door.reserve);
    config_free(server->state.config);
    uv_loop_close(&server->loop);
}
