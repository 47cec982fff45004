/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/methods.h"
#include "daemon/clients/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/clients/refusal.h"
#include "daemon/config/layout_check.h"
#include "daemon/requests/attach.h"
#include "daemon/requests/claim.h"
#include "daemon/requests/creation.h"
#include "daemon/requests/departure.h"
#include "daemon/requests/describe.h"
#include "daemon/requests/entrust.h"
#include "daemon/requests/grants.h"
#include "daemon/requests/monitor.h"
#include "daemon/requests/service.h"
#include "daemon/requests/stats.h"
#include "daemon/segments/events.h"
#include "daemon/segments/use.h"

/* --- io.shmview ---------------------------------------------------------- */

static void ping(struct state *state, struct connection *c, const json_t *parameters,
                 struct answer *answer)
{
    (void)state;
    (void)c;
    struct wire_fault fault;
    if (wire_read_none(parameters, &fault))
        refuse_parameter(answer, &fault);
}

static void refuse_not_found(struct answer *answer, const char *name)
{
    refuse(answer, SHMVIEW_ERR_NOT_FOUND, json_pack("{s:s}", "name", name), "no segment '%s'",
           name);
}

/* What the caller may not use does not exist for him. */
static bool may_see(const struct who *who, const struct segment *segment)
{
    return segment && segment->allocated && policy_may_see(segment->access, who);
}

/* Who has it already knows of it, though his right may be gone. */
static bool has_attached(const struct connection *c, const struct segment *segment)
{
    const struct attachment *a;
    LIST_FOREACH (a, &c->attachments, link)
        if (a->segment == segment)
            return true;
    return false;
}

/* id WIRE_ABSENT: by name. */
static struct segment *find(struct state *state, struct connection *c, const char *name, int64_t id,
                            struct answer *answer)
{
    struct segment *s = id == WIRE_ABSENT ? registry_find(&state->registry, name)
                                          : registry_find_id(&state->registry, (uint64_t)id);
    s = departure_settle(state, s);
    if (s && id == WIRE_ABSENT && !s->named)
        s = NULL;
    struct who who = grants_who(state, c);
    if (may_see(&who, s) || (s && has_attached(c, s)))
        return s;
    refuse_not_found(answer, name);
    return NULL;
}

/* Reads the one parameter "name" and finds the segment, or refuses. */
static struct segment *find_named(struct state *state, struct connection *c,
                                  const json_t *parameters, struct answer *answer)
{
    struct wire_fault fault;
    const char *name;
    if (wire_read_name(parameters, "name", &name, &fault)) {
        refuse_parameter(answer, &fault);
        return NULL;
    }
    return find(state, c, name, WIRE_ABSENT, answer);
}

static void attach(struct state *state, struct connection *c, const json_t *parameters,
                   struct answer *answer)
{
    struct wire_fault fault;
    struct wire_attach want;
    if (wire_read_attach(parameters, &want, &fault)) {
        refuse_parameter(answer, &fault);
        return;
    }
    struct segment *s = find(state, c, want.name, want.id, answer);
    struct who who = grants_who(state, c);
    if (s && !policy_may_attach(s->access, &who, want.access))
        refuse(answer, SHMVIEW_ERR_DENIED, NULL, "uid %u may not attach segment '%s' for access %s",
               who.uid, s->name, wire_access_name(want.access));
    else if (s)
        attach_segment(state, c, s, want.access, answer);
}

/* Reads the one parameter "attachment" and finds it, or refuses. */
static struct attachment *find_attachment(struct connection *c, const json_t *parameters,
                                          struct answer *answer)
{
    struct wire_fault fault;
    int64_t id;
    if (wire_read_int(parameters, "attachment", &id, &fault)) {
        refuse_parameter(answer, &fault);
        return NULL;
    }
    struct attachment *a = attachment_find(&c->attachments, (uint64_t)id);
    if (!a)
        refuse(answer, SHMVIEW_ERR_NOT_ATTACHED, json_pack("{s:I}", "attachment", id),
               "this connection has no attachment %" PRId64, id);
    return a;
}

static void detach(struct state *state, struct connection *c, const json_t *parameters,
                   struct answer *answer)
{
    struct attachment *a = find_attachment(c, parameters, answer);
    if (a)
        attachment_give_back(&state->registry, a);
}

static void watch(struct state *state, struct connection *c, const json_t *parameters,
                  struct answer *answer)
{
    int fd;
    struct attachment *a = find_attachment(c, parameters, answer);
    (void)state;
    if (!a)
        return;
    int r = attachment_watch(a, &fd);
    if (r == 0 && (fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
        r = -errno;
    if (r == -ENOLCK) {
        refuse(answer, SHMVIEW_ERR_DENIED, NULL, "attachment %" PRIu64 " has no lock slot", a->id);
    } else if (r == -EDQUOT) {
        refuse(
            answer, SHMVIEW_ERR_LIMIT, json_pack("{s:i}", "limit", LIMIT_WATCHES),
            "segment '%s' has %u watches; the limit is %d, and the last ones of a segment and of "
            "the daemon are for users that have fewer than are left",
            a->segment->name, a->segment->use->n_watches, LIMIT_WATCHES);
    } else if (r) {
        refuse_system(answer, "a segment cannot be watched", -r);
    } else {
        answer->fds.fd[answer->fds.n++] = fd;
        answer_with(answer, json_pack("{s:i, s:i}", "descriptors", 1, "event", 0));
    }
}

static void remove_segment(struct state *state, struct connection *c, const json_t *parameters,
                           struct answer *answer)
{
    struct segment *s = find_named(state, c, parameters, answer);
    struct who who = grants_who(state, c);
    if (s && !policy_manages(s->access, &who))
        refuse(answer, SHMVIEW_ERR_DENIED, NULL, "only its owner and administrators remove '%s'",
               s->name);
    else if (s)
        registry_remove(&state->registry, s);
}

static bool has_created(const struct connection *c, const struct segment *segment)
{
    const struct segment *s;
    LIST_FOREACH (s, &c->created, created)
        if (s == segment)
            return true;
    return false;
}

static void entrust_segment(struct state *state, struct connection *c, const json_t *parameters,
                            struct answer *answer)
{
    struct wire_fault fault;
    struct wire_entrust want;
    if (wire_read_entrust(parameters, &want, &fault)) {
        refuse_parameter(answer, &fault);
        return;
    }
    struct segment *s = find(state, c, want.name, WIRE_ABSENT, answer);
    if (!s)
        return;
    if (!has_created(c, s)) {
        refuse(answer, SHMVIEW_ERR_DENIED, NULL,
               "only who created '%s', with lifetime creator, can entrust it", s->name);
        return;
    }
    pid_t pid = (pid_t)want.pid;
    int r = peer_descends(c->peer.pid, pid) ? entrust(state, s, pid, c->peer.uid) : 1;
    if (r > 0)
        refuse(answer, SHMVIEW_ERR_DENIED, NULL,
               "process %d is no ancestor of process %d, or of another user: '%s' stays its "
               "creator's",
               pid, c->peer.pid, s->name);
    else if (r)
        refuse_system(answer, "a segment cannot be entrusted", -r);
}

static void set_access(struct state *state, struct connection *c, const json_t *parameters,
                       struct answer *answer)
{
    struct wire_fault fault;
    struct wire_set_access want;
    if (wire_read_set_access(parameters, &want, &fault)) {
        refuse_parameter(answer, &fault);
        return;
    }
    struct segment *s = find(state, c, want.name, want.id, answer);
    if (s)
        grants_set_access(state, c, s, &want.grant, answer);
    free(want.grant.acl);
}

static void list(struct state *state, struct connection *c, const json_t *parameters,
                 struct answer *answer)
{
    struct wire_fault fault;
    if (wire_read_none(parameters, &fault)) {
        refuse_parameter(answer, &fault);
        return;
    }
    static const char head[] = "{\"parameters\":{\"segments\":[";
    struct json_text text;
    struct segment *s, *next;
    struct who who = grants_who(state, c);
    size_t n = 0;
    json_text_begin(&text);
    json_text_add(&text, head, sizeof head - 1);
    HASH_ITER (by_name, state->registry.by_name, s, next) {
        if (!may_see(&who, s))
            continue;
        if (n++)
            json_text_add(&text, ",", 1);
        describe_in_list(s, &text);
    }
    json_text_add(&text, "]}}", 3);
    char *whole = json_text_end(&text, &n);
    answer_with_text(answer, whole, n);
}

static void describe(struct state *state, struct connection *c, const json_t *parameters,
                     struct answer *answer)
{
    struct wire_fault fault;
    struct wire_describe want;
    if (wire_read_describe(parameters, &want, &fault)) {
        refuse_parameter(answer, &fault);
        return;
    }
    struct segment *s = find(state, c, want.name, want.id, answer);
    if (s)
        describe_all(s, answer);
}

static bool check_layout(struct state *state, struct connection *c, const struct segment *s,
                         struct wire_layout *layout, struct formats *formats, struct answer *answer)
{
    struct layout_fault fault;
    struct who who = grants_who(state, c);
    if (!policy_may_attach(s->access, &who, SHMVIEW_WRITE)) {
        refuse(answer, SHMVIEW_ERR_DENIED, NULL, "uid %u may not write to segment '%s'", who.uid,
               s->name);
        return false;
    }
    if (!attachment_find_writer(&c->attachments, s)) {
        refuse(answer, SHMVIEW_ERR_DENIED, NULL,
               "a layout needs an attachment with access write on this connection");
        return false;
    }
    const struct layout *has = layouts_find(&s->layouts, layout->name);
    if (has) {
        bool same = strcmp(has->name, layout->name) == 0;
        refuse(answer, SHMVIEW_ERR_LAYOUT_EXISTS, json_pack("{s:s}", "layout", layout->name),
               "segment '%s' has a layout '%s' already%s", s->name, has->name,
               same ? "" : ", whose name has the same hash");
        return false;
    }
    if (s->layouts.n == LIMIT_LAYOUTS) {
        refuse(answer, SHMVIEW_ERR_LIMIT, json_pack("{s:i}", "limit", LIMIT_LAYOUTS),
               "segment '%s' has %d layouts, which is the limit", s->name, LIMIT_LAYOUTS);
        return false;
    }
    if (layout_check(layout, s->size, formats, &fault) == 0)
        return true;
    refuse(answer, fault.error, json_pack("{s:s}", fault.fact, fault.subject), "%s", fault.text);
    return false;
}

/* The layout is checked. */
static void add_layout(struct state *state, struct connection *c, struct segment *s,
                       const struct wire_layout *layout, struct answer *answer)
{
    size_t n = 0;
    CLEANUP_FREE char *text = wire_layout_text(layout, &n);
    if (!text) {
        refuse_system(answer, "a layout cannot be kept", ENOMEM);
        return;
    }
    if (!grants_layout(state, c, s, n, answer))
        return;
    int index = segment_add_layout(s, layout->name, text, n);
    if (index >= 0) {
        answer_with(answer, json_pack("{s:i}", "index", index));
        return;
    }
    quota_refund(s->payer, QUOTA_LAYOUT_BYTES, n);
    refuse_system(answer, "a layout cannot be kept", -index);
}

static void define_layout(struct state *state, struct connection *c, const json_t *parameters,
                          struct answer *answer)
{
    struct wire_fault fault;
    struct wire_define define;
    struct formats formats = {0};
    if (wire_read_define(parameters, &define, &fault)) {
        refuse_parameter(answer, &fault);
        return;
    }
    struct segment *s = find(state, c, define.name, define.id, answer);
    if (s && check_layout(state, c, s, &define.layout, &formats, answer))
        add_layout(state, c, s, &define.layout, answer);
    formats_deinit(&formats);
    free(define.layout.views);
}

/* --- The table ----------------------------------------------------------- */

static const struct method {
    const char *name;
    void (*run)(struct state *, struct connection *, const json_t *parameters, struct answer *);
} methods[] = {
    {"io.shmview.Ping", ping},
    {"io.shmview.Claim", claim_answer},
    {"io.shmview.Create", creation_start},
    {"io.shmview.Attach", attach},
    {"io.shmview.Detach", detach},
    {"io.shmview.Watch", watch},
    {"io.shmview.Remove", remove_segment},
    {"io.shmview.Entrust", entrust_segment},
    {"io.shmview.SetAccess", set_access},
    {"io.shmview.List", list},
    {"io.shmview.Describe", describe},
    {"io.shmview.DefineLayout", define_layout},
    {"io.shmview.Monitor", monitor_start},
    {"io.shmview.Stats", stats_tell},
    {"org.varlink.service.GetInfo", service_get_info},
    {"org.varlink.service.GetInterfaceDescription", service_get_interface_description},
};

static void refuse_method(const char *name, struct answer *answer)
{
    char interface[256];
    const char *dot = strrchr(name, '.');
    snprintf(interface, sizeof interface, "%.*s", dot ? (int)(dot - name) : 0, name);
    if (strcmp(interface, "io.shmview") == 0 || strcmp(interface, "org.varlink.service") == 0)
        refuse_varlink(answer, "org.varlink.service.MethodNotFound", "method", name);
    else
        refuse_varlink(answer, "org.varlink.service.InterfaceNotFound", "interface", interface);
}

void methods_call(struct state *state, struct connection *connection, const struct wire_call *call,
                  struct answer *answer)
{
    if (call->upgrade) {
        refuse_varlink(answer, "org.varlink.service.MethodNotImplemented", "method", call->method);
        return;
    }
    size_t i = 0;
    while (i < ARRAY_LEN(methods) && strcmp(methods[i].name, call->method) != 0)
        i++;
    if (connection->client && connection->client->presence == PRESENCE_OFFERED)
        client_settle(connection->client);
    events_by(connection->peer.pid, connection->peer.uid);
    if (i < ARRAY_LEN(methods))
        methods[i].run(state, connection, call->parameters, answer);
    else
        refuse_method(call->method, answer);
    tally_note(connection, answer);
    events_by(0, UINT32_MAX);
}

void methods_take_back(struct state *state, struct connection *connection,
                       const struct answer *answer)
{
    struct attachment *a = attachment_find(&connection->attachments, answer->attachment);
    struct segment *s = registry_find_id(&state->registry, answer->created);
    if (a)
        attachment_give_up(a);
    if (s)
        registry_remove(&state->registry, s);
}

void methods_forget(struct connection *connection)
{
    struct attachment *a;
    struct segment *s;
    bool has_any = !LIST_EMPTY(&connection->attachments) || !LIST_EMPTY(&connection->created);
    creation_cancel(connection);
    monitor_end(connection);
    while ((a = LIST_FIRST(&connection->attachments)))
        attachment_forget(a);
    while ((s = LIST_FIRST(&connection->created))) {
        LIST_REMOVE(s, created);
        s->has_creator = false;
    }
    client_free(STEAL(connection->client), has_any);
}

void methods_release(struct state *state, struct connection *connection)
{
    creation_cancel(connection);
    monitor_end(connection);
    if (client_lives(connection)) {
        client_survive(connection);
        return;
    }
    departure_begin(state, connection->peer.pid, connection->peer.uid, &connection->attachments,
                    &connection->created, STEAL(connection->client));
}

void methods_let_go(struct state *state, struct connection *connection)
{
    if (!client_lives(connection))
        departure_begin(state, connection->peer.pid, connection->peer.uid, &connection->attachments,
                        &connection->created, NULL);
}
