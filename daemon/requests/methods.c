/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/methods.h"
#include "daemon/clients/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/clients/refusal.h"
#include "daemon/requests/attach.h"
#include "daemon/requests/claim.h"
#include "daemon/requests/creation.h"
#include "daemon/requests/definition.h"
#include "daemon/requests/departure.h"
#include "daemon/requests/describe.h"
#include "daemon/requests/entrust.h"
#include "daemon/requests/freeze.h"
#include "daemon/requests/monitor.h"
#include "daemon/requests/own_memory.h"
#include "daemon/requests/permit.h"
#include "daemon/requests/service.h"
#include "daemon/requests/stats.h"

/* --- io.shmview ---------------------------------------------------------- */

/* Replies without parameters, so that a client can learn that the daemon works. */
static void ping(struct request *r, const union wanted *want)
{
    (void)r;
    (void)want;
}

/* Returns the attachment, or NULL after refusing the request. */
static struct attachment *find_attachment(const struct request *r, int64_t id)
{
    struct attachment *a = attachment_find(&r->connection->attachments, (uint64_t)id);
    if (!a)
        refuse(r->answer, SHMVIEW_ERR_NOT_ATTACHED, json_pack("{s:I}", "attachment", id),
               "this connection has no attachment %" PRId64, id);
    return a;
}

static void detach(struct request *r, const union wanted *want)
{
    struct attachment *a = find_attachment(r, want->attachment);
    if (a)
        attachment_detached(&r->state->registry, a);
}

/* Replies with a descriptor that becomes readable after a change. The client gets a duplicate,
 * because the attachment keeps its own for further calls of Watch. */
static void watch(struct request *r, const union wanted *want)
{
    int fd;
    struct answer *answer = r->answer;
    struct attachment *a = find_attachment(r, want->attachment);
    if (!a)
        return;
    int error = attachment_watch(a, &fd);
    if (error == 0 && (fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
        error = -errno;
    if (error == -ENOLCK) {
        refuse(answer, SHMVIEW_ERR_DENIED, NULL, "attachment %" PRIu64 " has no lock slot", a->id);
    } else if (error == -EDQUOT) {
        refuse(
            answer, SHMVIEW_ERR_LIMIT, json_pack("{s:i}", "limit", LIMIT_WATCHES),
            "segment '%s' has %u watches; the limit is %d, and the last ones of a segment and of "
            "the daemon are for users that have fewer than are left",
            a->segment->name, a->segment->use->n_watches, LIMIT_WATCHES);
    } else if (error) {
        refuse_system(answer, "a segment cannot be watched", -error);
    } else {
        answer->fds.fd[answer->fds.n++] = fd;
        answer_with(answer, json_pack("{s:i, s:i}", "descriptors", 1, "event", 0));
    }
}

static void remove_segment(struct request *r, const union wanted *want)
{
    struct segment *s = request_find(r, want->name, WIRE_ABSENT);
    if (s && !policy_manages(s->access, &r->who))
        refuse(r->answer, SHMVIEW_ERR_DENIED, NULL,
               "only the owner and administrators may remove '%s'", s->name);
    else if (s)
        registry_remove(&r->state->registry, s, connection_actor(r->connection));
}

/* Whether the segment ends with the client of this connection. */
static bool has_created(const struct connection *c, const struct segment *segment)
{
    const struct segment *s;
    LIST_FOREACH (s, &c->created, created)
        if (s == segment)
            return true;
    return false;
}

/* Ties a segment to another process, which must be an ancestor of the client or the client itself.
 * The client must have created the segment on this connection. */
static void entrust_segment(struct request *r, const union wanted *want)
{
    const struct peer *peer = &r->connection->peer;
    struct segment *s = request_find(r, want->entrust.name, WIRE_ABSENT);
    if (!s)
        return;
    if (!has_created(r->connection, s)) {
        refuse(r->answer, SHMVIEW_ERR_DENIED, NULL,
               "only the client that created '%s' with lifetime creator can entrust it", s->name);
        return;
    }
    pid_t pid = (pid_t)want->entrust.pid;
    int outcome =
        peer_descends(peer->pid, pid) ? entrust(r->state, s, pid, peer->uid) : ENTRUST_DENIED;
    if (outcome == ENTRUST_DENIED)
        refuse(r->answer, SHMVIEW_ERR_DENIED, NULL,
               "process %d is no ancestor of process %d, or belongs to another user: '%s' still "
               "ends with its creator",
               pid, peer->pid, s->name);
    else if (outcome < 0)
        refuse_system(r->answer, "a segment cannot be entrusted", -outcome);
}

static void freeze(struct request *r, const union wanted *want)
{
    struct attachment *a = find_attachment(r, want->freeze.attachment);
    if (a && want->freeze.done)
        freeze_done(r, a);
    else if (a)
        freeze_begin(r, a);
}

static void set_access(struct request *r, const union wanted *want)
{
    struct segment *s = request_find(r, want->set_access.name, want->set_access.id);
    if (s)
        permit_set_access(r, s, &want->set_access.grant);
    free(want->set_access.grant.acl);
}

/* How many segments one reply lists at most, and of how many it considers whether the user may see
 * them. A reply ends with the segment that makes it this long, because that of a hundred segments
 * with 32 entries of access each would take 0.8 ms of the loop. */
#define LIST_SEGMENTS 100
#define LIST_LOOKS    1000
#define LIST_BYTES    32768

/* Replies with segments that the user may see, without layouts, in the order of their ids. A
 * removed segment is not among them, because it has no name. A reply with `next` is not the last
 * one. */
static void list(struct request *r, const union wanted *want)
{
    static const char head[] = "{\"parameters\":{\"segments\":[";
    uint64_t after = (uint64_t)want->list.after;
    struct json_text text;
    const struct segment *s;
    size_t n = 0;
    json_text_begin(&text);
    json_text_add(&text, head, sizeof head - 1);
    for (unsigned i = 0; (s = registry_next(&r->state->registry, after)); i++) {
        if (n == LIST_SEGMENTS || i == LIST_LOOKS || text.n > LIST_BYTES)
            break;
        after = s->id;
        if (!s->named || !request_may_see(r, s))
            continue;
        if (n++)
            json_text_add(&text, ",", 1);
        describe_in_list(s, &text);
    }
    char tail[40];
    int tail_bytes = s ? snprintf(tail, sizeof tail, "],\"next\":%" PRIu64 "}}", after)
                       : snprintf(tail, sizeof tail, "]}}");
    json_text_add(&text, tail, (size_t)tail_bytes);
    char *whole = json_text_end(&text, &n);
    answer_with_text(r->answer, whole, n);
}

static void describe(struct request *r, const union wanted *want)
{
    const struct segment *s = request_find(r, want->describe.name, want->describe.id);
    if (s)
        describe_all(s, &want->describe, r->answer);
}

/* --- The table ----------------------------------------------------------- */

/* Readers of parameters. Each returns 0; or -1 with *fault, and then nothing in *ret is owned. */

static int read_none(const json_t *parameters, union wanted *ret, struct wire_fault *fault)
{
    (void)ret;
    return wire_read_none(parameters, fault);
}

static int read_name(const json_t *parameters, union wanted *ret, struct wire_fault *fault)
{
    return wire_read_name(parameters, "name", &ret->name, fault);
}

static int read_interface(const json_t *parameters, union wanted *ret, struct wire_fault *fault)
{
    return wire_read_name(parameters, "interface", &ret->name, fault);
}

static int read_attachment(const json_t *parameters, union wanted *ret, struct wire_fault *fault)
{
    return wire_read_int(parameters, "attachment", &ret->attachment, fault);
}

static int read_definition(const json_t *parameters, union wanted *ret, struct wire_fault *fault)
{
    ret->definition = definition_read(parameters, fault);
    return ret->definition ? 0 : -1;
}

#define READER(member, decode)                                                                     \
    static int read_##member(const json_t *parameters, union wanted *ret,                          \
                             struct wire_fault *fault)                                             \
    {                                                                                              \
        return decode(parameters, &ret->member, fault);                                            \
    }
READER(claim, wire_read_claim)
READER(create, wire_read_create)
READER(attach, wire_read_attach)
READER(list, wire_read_list)
READER(entrust, wire_read_entrust)
READER(set_access, wire_read_set_access)
READER(freeze, wire_read_freeze)
READER(describe, wire_read_describe)
READER(monitor, wire_read_monitor)
READER(stats, wire_read_stats_call)

#define DEFINE_LAYOUT "io.shmview.DefineLayout"

/* All methods. The order does not matter. */
static const struct method {
    const char *name;
    int (*read)(const json_t *parameters, union wanted *ret, struct wire_fault *fault);
    void (*run)(struct request *request, const union wanted *want);
} methods[] = {
    {"io.shmview.Ping", read_none, ping},
    {"io.shmview.Claim", read_claim, claim_answer},
    {"io.shmview.HandOver", read_none, own_memory_hand_over},
    {"io.shmview.Create", read_create, creation_start},
    {"io.shmview.Attach", read_attach, attach_named},
    {"io.shmview.Detach", read_attachment, detach},
    {"io.shmview.Watch", read_attachment, watch},
    {"io.shmview.Remove", read_name, remove_segment},
    {"io.shmview.Entrust", read_entrust, entrust_segment},
    {"io.shmview.SetAccess", read_set_access, set_access},
    {"io.shmview.Freeze", read_freeze, freeze},
    {"io.shmview.List", read_list, list},
    {"io.shmview.Describe", read_describe, describe},
    {DEFINE_LAYOUT, read_definition, definition_add},
    {"io.shmview.Monitor", read_monitor, monitor_start},
    {"io.shmview.Stats", read_stats, stats_tell},
    {"org.varlink.service.GetInfo", read_none, service_get_info},
    {"org.varlink.service.GetInterfaceDescription", read_interface,
     service_get_interface_description},
};

/* Refuses an unknown method, as Varlink requires: by its interface if that is unknown too. */
static void refuse_method(const char *name, struct answer *answer)
{
    char interface[256];
    const char *dot = strrchr(name, '.');
    snprintf(interface, sizeof interface, "%.*s", dot ? (int)(dot - name) : 0, name);
    if (strcmp(interface, "io.shmview") == 0 || strcmp(interface, "org.varlink.service") == 0)
        refuse_varlink(answer, REFUSAL_NO_METHOD, "method", name);
    else
        refuse_varlink(answer, REFUSAL_NO_INTERFACE, "interface", interface);
}

/* Takes the parameters of a scanned call. Returns false for any other call. */
static bool take_scanned(const struct wire_call *call, union wanted *ret)
{
    if (call->scanned == WIRE_SCANNED_ATTACH)
        ret->attach = call->attach;
    else if (call->scanned == WIRE_SCANNED_DETACH)
        ret->attachment = call->attachment;
    return call->scanned != WIRE_NOT_SCANNED;
}

/* Reads the parameters, unless that is done, and carries out one method. */
static void run(const struct method *method, struct state *state, struct connection *connection,
                const struct wire_call *call, struct answer *answer)
{
    struct wire_fault fault;
    union wanted want = {.definition = STEAL(connection->prepared)};
    if (!want.definition && !take_scanned(call, &want) &&
        method->read(call->parameters, &want, &fault)) {
        refuse_parameter(answer, &fault);
        return;
    }
    struct request request = {state, connection, permit_who(state, connection), answer};
    method->run(&request, &want);
}

void *methods_prepare(const struct wire_call *call)
{
    struct wire_fault fault;
    bool may = !call->upgrade && strcmp(call->method, DEFINE_LAYOUT) == 0;
    return may ? definition_read(call->parameters, &fault) : NULL;
}

void methods_unprepare(void *prepared)
{
    definition_free(prepared);
}

void methods_call(struct state *state, struct connection *connection, const struct wire_call *call,
                  struct answer *answer)
{
    if (call->upgrade) {
        refuse_varlink(answer, SHMVIEW_ERR_UNSUPPORTED, "method", call->method);
        return;
    }
    size_t i = 0;
    while (i < ARRAY_LEN(methods) && strcmp(methods[i].name, call->method) != 0)
        i++;
    /* a request after Claim shows that the client has dealt with its presence */
    if (connection->client && connection->client->presence == PRESENCE_OFFERED)
        client_settle(connection->client);
    if (i < ARRAY_LEN(methods))
        run(&methods[i], state, connection, call, answer);
    else
        refuse_method(call->method, answer);
    tally_note(connection, answer);
}

void methods_cancel(struct state *state, struct connection *connection, const struct answer *answer)
{
    struct attachment *a = attachment_find(&connection->attachments, answer->attachment);
    struct attachment *freezer = attachment_find(&connection->attachments, answer->freezing);
    struct segment *s = registry_find_id(&state->registry, answer->created);
    if (freezer)
        freeze_end(freezer);
    if (a)
        attachment_retract(a);
    if (s)
        registry_remove(&state->registry, s, connection_actor(connection));
}

void methods_abandon(struct connection *connection)
{
    struct attachment *a;
    struct segment *s;
    bool has_any = !LIST_EMPTY(&connection->attachments) || !LIST_EMPTY(&connection->created);
    creation_cancel(connection);
    monitor_end(connection);
    while ((a = LIST_FIRST(&connection->attachments)))
        attachment_abandon(a);
    while ((s = LIST_FIRST(&connection->created))) {
        LIST_REMOVE(s, created);
        s->has_creator = false;
    }
    client_free(STEAL(connection->client), has_any);
}

void methods_hung_up(struct state *state, struct connection *connection)
{
    creation_cancel(connection);
    monitor_end(connection);
    if (client_lives(connection)) {
        client_survive(connection);
        return;
    }
    departure_begin(state, &connection->attachments, &connection->created,
                    STEAL(connection->client));
}

void methods_client_died(struct state *state, struct connection *connection)
{
    if (!client_lives(connection))
        departure_begin(state, &connection->attachments, &connection->created, NULL);
}
