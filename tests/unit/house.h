/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon without its socket: a loop, a registry, and connections whose other
 * ends the test holds.
 *
 *     house_open(&house);
 *     struct guest *g = house_admit(&house);
 *     json_t *p = house_call(g, "Create", "{'name':'a','size':1}");
 *     house_close(&house);
 *
 * JSON is written with ' for ". Every reply is compared with the .varlink text. */
#ifndef UNIT_HOUSE_H
#define UNIT_HOUSE_H

#include "unit/unit.h"

#include <sys/socket.h>

#include "common/base/util.h"
#include "daemon/requests/methods.h"
#include "daemon/requests/monitor.h"
#include "unit/turns.h"
#include "unit/varlink.h"
#include "varlink_text.h"

#define HOUSE_GUESTS  8
#define HOUSE_WAIT_NS 20000000000

struct house;

/* A client: the test's end of one connection. */
struct guest {
    struct house *house;
    struct connection *connection; /* NULL: closed */
    int fd;
    struct frame in;
    struct frame_descriptors fds; /* descriptors of the last reply */
    json_t *reply;                /* the last reply */
};

struct house {
    uv_loop_t loop;
    struct state state;
    struct turns turns; /* shared by all connections */
    struct guest guests[HOUSE_GUESTS];
    unsigned n_guests;
    unsigned n_turns; /* how often a connection asked for another turn */
    unsigned n_lingers, n_gone;
    TAILQ_HEAD(house_waiting, connection) waiting;
    /* replaces methods_call() if set */
    void (*call)(struct connection *, const struct wire_call *, struct answer *);
};

/* The first loop of a process opens a pipe that libuv keeps, which must not count as a leak. */
__attribute__((constructor)) static void house_warm_up(void)
{
    uv_loop_t loop;
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static inline struct guest *house_guest(struct house *house, const struct connection *c)
{
    for (unsigned i = 0; i < house->n_guests; i++)
        if (house->guests[i].connection == c)
            return &house->guests[i];
    return NULL;
}

static inline void house_on_call(struct connection *c, const struct wire_call *call,
                                 struct answer *answer)
{
    struct house *house = c->owner;
    if (house->call)
        house->call(c, call, answer);
    else
        methods_call(&house->state, c, call, answer);
}

static inline void house_on_closed(struct connection *c)
{
    struct house *house = c->owner;
    methods_hung_up(&house->state, c);
    if (c->turn.waits)
        TAILQ_REMOVE(&house->waiting, c, waiting);
    house_guest(house, c)->connection = NULL;
}

static inline void house_on_lingers(struct connection *c)
{
    ((struct house *)c->owner)->n_lingers++;
}

static inline void house_on_gone(struct connection *c)
{
    ((struct house *)c->owner)->n_gone++;
}

static inline void house_on_again(struct connection *c)
{
    struct house *house = c->owner;
    house->n_turns++;
    if (!c->turn.waits)
        TAILQ_INSERT_TAIL(&house->waiting, c, waiting);
    c->turn.waits = true;
}

static inline void house_on_take_back(struct connection *c, const struct answer *answer)
{
    struct house *house = c->owner;
    methods_cancel(&house->state, c, answer);
}

static inline void house_on_job_done(struct state *state)
{
    (void)state;
}

/* Returns the parameters of a success; the caller owns them. */
static inline json_t *house_parameters(const struct answer *answer)
{
    if (!answer->text)
        return answer->parameters ? json_incref(answer->parameters) : json_object();
    json_t *reply = json_loads(answer->text, 0, NULL);
    ck_assert_uint_eq(answer->text_bytes, strlen(answer->text) + 1);
    json_t *parameters = json_incref(json_object_get(reply, "parameters"));
    json_decref(reply);
    return parameters;
}

static inline void house_open(struct house *house)
{
    memset(house, 0, sizeof *house);
    ck_assert_int_eq(uv_loop_init(&house->loop), 0);
    struct config *config = config_new();
    ck_assert_ptr_nonnull(config);
    state_init(&house->state, &house->loop, &house->turns, config);
    house->state.job_done = house_on_job_done;
    TAILQ_INIT(&house->waiting);
    ck_assert_int_eq(turns_init(&house->turns, &house->loop), 0);
}

static inline struct guest *house_admit(struct house *house)
{
    static const struct connection_events events = {.call = house_on_call,
                                                    .prepare = methods_prepare,
                                                    .unprepare = methods_unprepare,
                                                    .closed = house_on_closed,
                                                    .again = house_on_again,
                                                    .drained = monitor_drained,
                                                    .take_back = house_on_take_back};
    int ends[2];
    struct guest *g = &house->guests[house->n_guests];
    ck_assert_uint_lt(house->n_guests, HOUSE_GUESTS);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    *g = (struct guest){.house = house, .fd = ends[0]};
    g->connection = connection_new(&house->loop, ends[1], &events, &house->state.tally, house);
    ck_assert_ptr_nonnull(g->connection);
    house->n_guests++;
    return g;
}

/* Runs the loop for all that the daemon can do now. */
static inline void house_run(struct house *house)
{
    struct connection *last = TAILQ_LAST(&house->waiting, house_waiting);
    for (struct connection *c; last && (c = TAILQ_FIRST(&house->waiting));) {
        TAILQ_REMOVE(&house->waiting, c, waiting);
        c->turn.waits = false;
        bool done = c == last;
        connection_take_turn(c);
        if (done)
            break;
    }
    turns_round(&house->turns);
    uv_run(&house->loop, UV_RUN_NOWAIT);
}

/* Closes the guest's end. */
static inline void house_leave(struct guest *g)
{
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
    frame_deinit(&g->in);
    frame_descriptors_close(&g->fds);
    json_decref(g->reply);
    g->reply = NULL;
}

/* Lets the guest leave, and ends all that ends with it. The daemon would do that in slices, of
 * which a busy machine needs several. */
static inline void house_end(struct guest *g)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    house_leave(g);
    while (g->connection && now_ns() < deadline)
        house_run(g->house);
    ck_assert_ptr_null(g->connection);
    departures_finish(&g->house->state);
}

/* Lets all guests leave, and asserts that nothing is left. */
static inline void house_close(struct house *house)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    for (unsigned i = 0; i < house->n_guests; i++)
        house_leave(&house->guests[i]);
    for (unsigned i = 0; i < house->n_guests; i++)
        while (house->guests[i].connection && now_ns() < deadline)
            house_run(house);
    end_turns(&house->turns);
    uv_run(&house->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&house->state.departures.slices, NULL);
    uv_run(&house->loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(house->state.n_jobs, 0);
    registry_deinit(&house->state.registry);
    quota_deinit(&house->state.quota);
    house->state.config = config_free(house->state.config);
    ck_assert_int_eq(uv_loop_close(&house->loop), 0);
}

/* Sends all bytes while the daemon receives them. */
static inline void house_send_bytes(struct guest *g, const char *bytes, size_t n)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (n && g->connection && now_ns() < deadline) {
        ssize_t sent = send(g->fd, bytes, n, MSG_NOSIGNAL);
        bytes += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
        if (sent < 0)
            house_run(g->house);
    }
}

static inline void house_send(struct guest *g, const char *text)
{
    const char *json = unit_json(text);
    house_send_bytes(g, json, strlen(json) + 1);
}

/* Waits for a message. Returns it, borrowed, or NULL if the daemon hung up. */
static inline const char *house_receive(struct guest *g)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    char *text;
    size_t n;
    while (!frame_next(&g->in, &text, &n)) {
        ck_assert_msg(now_ns() < deadline, "no reply");
        house_run(g->house);
        ssize_t r = frame_receive(&g->in, g->fd, LIMIT_REPLY_BYTES, &g->fds);
        if (r == 0 || r == -ECONNRESET)
            return NULL;
        ck_assert_msg(r > 0 || r == -EAGAIN, "%s", strerror((int)-r));
        if (r < 0)
            usleep(100);
    }
    return text;
}

/* Asserts that the daemon closes the connection without a further message. */
static inline void house_expect_end(struct guest *g)
{
    ck_assert_ptr_null(house_receive(g));
    ck_assert_ptr_null(g->connection);
}

/* Returns the .varlink text of the interface, and removes its name from *method. */
static inline const char *house_text_of(const char **method)
{
    const char *dot = strrchr(*method, '.');
    bool service = strncmp(*method, "org.varlink.service.", 20) == 0;
    *method = dot ? dot + 1 : *method;
    return service ? varlink_text_org_varlink_service : varlink_text_io_shmview;
}

/* Calls the method (of io.shmview if it has no dot) and waits. Returns the whole reply, borrowed
 * until the next one. */
static inline json_t *house_exchange(struct guest *g, const char *method, const char *parameters)
{
    char text[6000];
    snprintf(text, sizeof text, "{'method':'%s%s','parameters':%s}",
             strchr(method, '.') ? "" : "io.shmview.", method, parameters);
    json_decref(g->reply);
    frame_descriptors_close(&g->fds);
    house_send(g, text);
    const char *reply = house_receive(g);
    ck_assert_msg(reply, "the daemon hung up: %s", text);
    g->reply = json_loads(reply, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(g->reply, "no JSON: %s", reply);
    return g->reply;
}

/* Calls the method, which must succeed. Returns its parameters, borrowed. */
static inline json_t *house_call(struct guest *g, const char *method, const char *parameters)
{
    json_t *reply = house_exchange(g, method, parameters),
           *p = json_object_get(reply, "parameters");
    const char *error = json_string_value(json_object_get(reply, "error"));
    const char *reason = json_string_value(json_object_get(p, "reason"));
    ck_assert_msg(!error, "%s: %s: %s", method, error, reason ? reason : "");
    const char *idl = house_text_of(&method);
    varlink_check_reply(idl, method, p);
    return p;
}

/* Calls the method, which must be refused with this error and a reason that contains part. Returns
 * its parameters, borrowed. */
static inline json_t *house_refused(struct guest *g, const char *method, const char *parameters,
                                    const char *error, const char *part)
{
    json_t *reply = house_exchange(g, method, parameters),
           *p = json_object_get(reply, "parameters");
    const char *got = json_string_value(json_object_get(reply, "error")), *short_name = error;
    char wanted[128];
    ck_assert_msg(got, "%s %s is not refused", method, parameters);
    snprintf(wanted, sizeof wanted, "%s%s", strchr(error, '.') ? "" : "io.shmview.", error);
    const char *reason = json_string_value(json_object_get(p, "reason"));
    ck_assert_msg(strcmp(got, wanted) == 0, "%s %s: %s: %s", method, parameters, got,
                  reason ? reason : "");
    const char *idl = house_text_of(&short_name);
    varlink_check_error(idl, short_name, p);
    if (part[0])
        unit_assert_holds(reason ? reason : "", part);
    return p;
}

#define SERVICE "org.varlink.service."
#define INVALID SERVICE "InvalidParameter"

static inline json_int_t house_int(const json_t *p, const char *object, const char *member)
{
    const json_t *o = object ? json_object_get(p, object) : p;
    const json_t *v = json_object_get(o, member);
    ck_assert_msg(json_is_integer(v), "no integer %s", member);
    return json_integer_value(v);
}

#endif
