/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/monitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/name.h"
#include "common/base/util.h"
#include "common/wire/wire_events.h"
#include "daemon/base/alarm.h"
#include "daemon/base/slice.h"
#include "daemon/clients/refusal.h"
#include "daemon/requests/permit.h"
#include "daemon/segments/events.h"
#include "daemon/segments/phases.h"

#define SLICE_NS     250000
#define LOOK_MORE_MS 25 /* to the next look at phases, if one slice was too short */
#define TURN_EVENTS  8  /* sent to one monitor before the next one has its turn */

/* One connection that receives events. The connection owns it, by connection->monitor. */
struct monitor {
    struct monitors *of;
    struct connection *connection;
    struct quota_user *payer; /* the user who is charged for it */
    struct subscriber subscriber;
    size_t next_name; /* index of the subscriber's name to look at next, see phases_look_at() */
    TAILQ_ENTRY(monitor) link;
};

/* All monitors of an instance. It exists only while there is one, so that events cost the daemon
 * little without monitors. */
struct monitors {
    struct state *state;
    struct turn turn;   /* waits while there may be events to send */
    struct alarm clock; /* set while a monitor wants phases */
    unsigned n_phases;  /* monitors that want phases */
    struct phases phases;
    struct monitor *next_look;  /* the one whose names are looked at next; NULL: the first */
    TAILQ_HEAD(, monitor) list; /* the one that was served last comes last */
};

/* --- Rights -------------------------------------------------------------- */

/* Whether the user of a monitor may know an event. The access of a freed segment is not known any
 * longer, so only its last owner and administrators may know events of it. */
static bool may_know(const struct subscriber *subscriber, const struct event *e,
                     const struct segment *segment)
{
    const struct monitor *m = subscriber->owner;
    const struct who who = permit_who(m->of->state, m->connection);
    if (e->kind == SHMVIEW_EVENT_QUOTA)
        return e->uid == who.uid || who.is_admin;
    if (e->id == 0)
        return true;
    if (segment)
        return segment->allocated && policy_may_see(segment->access, &who);
    return who.is_admin || e->owner == who.uid;
}

/* --- Sending ------------------------------------------------------------- */

/* Converts the value for "unknown" of an event to that of a reply. */
static int64_t known(uint32_t number)
{
    return number == UINT32_MAX ? WIRE_ABSENT : (int64_t)number;
}

/* Sets the members that only one kind of event has. */
static void fill_facts(const struct event *e, bool is_admin, struct shmview_event *w)
{
    switch (e->kind) {
    case SHMVIEW_EVENT_CREATED:
        w->size = e->size;
        break;
    case SHMVIEW_EVENT_REMOVED:
        w->attachments = e->attachments;
        break;
    case SHMVIEW_EVENT_PHASE:
        w->generation = e->generation;
        w->switches = e->switches;
        w->layout = e->text;
        break;
    case SHMVIEW_EVENT_QUOTA:
        w->error = e->error;
        w->reason = e->text;
        break;
    case SHMVIEW_EVENT_RECOVERED:
        if (!is_admin)
            break; /* the figures are about segments of all users */
        w->segments = e->segments;
        w->attachments = e->attachments;
        w->deaths = e->deaths;
        w->lost = e->lost;
        break;
    default:
        break;
    }
}

/* Returns the event as the reply has it; strings are borrowed from e. */
static struct shmview_event describe(const struct event *e, bool is_admin)
{
    struct shmview_event w = WIRE_EVENT_NONE;
    w.serial = e->serial;
    w.time_us = e->time_us;
    w.kind = e->kind;
    if (e->id) {
        w.segment = e->name;
        w.id = e->id;
    }
    w.uid = known(e->uid);
    w.pid = e->pid;
    w.command = e->command;
    if (e->attachment)
        w.attachment = e->attachment;
    w.access = e->access;
    w.slot = known(e->slot);
    w.held = e->held;
    w.stream = e->stream;
    w.stream_slots = e->stream_slots;
    w.stream_role = e->stream_role;
    w.held_frames = e->held_frames;
    fill_facts(e, is_admin, &w);
    return w;
}

/* Returns an event for one monitor only, which is not in the ring: subscribed, lost. */
static struct shmview_event own_word(enum shmview_event_kind kind, uint64_t serial)
{
    struct shmview_event w = WIRE_EVENT_NONE;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    w.serial = serial;
    w.time_us = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
    w.kind = kind;
    return w;
}

static void tell(struct connection *c, const struct shmview_event *w)
{
    size_t n = 0;
    char *text = wire_event_text(w, &n);
    connection_stream(c, text, n);
}

/* Sends up to TURN_EVENTS events to one monitor. Sending may close its connection, which frees the
 * monitor. Returns whether there may be more to send now. */
static bool tell_some(struct monitor *m)
{
    struct connection *c = m->connection;
    struct subscriber *s = &m->subscriber;
    for (int i = 0; i < TURN_EVENTS; i++) {
        if (c->closing || c->out) /* the socket is full: monitor_drained() continues */
            return false;
        const struct event *e =
            s->n_lost ? NULL : events_next(&m->of->state->registry.home.events, s);
        struct shmview_event w;
        if (s->n_lost) {
            w = own_word(SHMVIEW_EVENT_LOST, s->next - 1);
            w.lost = s->n_lost;
            s->n_lost = 0;
        } else if (e) {
            w = describe(e, permit_who(m->of->state, c).is_admin);
        } else {
            return false;
        }
        tell(c, &w);
    }
    return !c->closing && !c->out;
}

/* Called when there is an event, or room in a socket: lets the monitors have a turn. */
static void wake(void *arg)
{
    struct monitors *all = arg;
    turns_again(all->state->turns, &all->turn);
}

/* Sends events to each monitor in turn, until the time is over. A monitor that was served goes to
 * the end of the list, so the next turn continues with the others. */
static void serve(struct turn *turn)
{
    struct monitors *all = CONTAINER_OF(turn, struct monitors, turn);
    int64_t end = slice_end(SLICE_NS);
    unsigned n = 0, n_more = 0;
    struct monitor *m;
    TAILQ_FOREACH (m, &all->list, link)
        n++;
    for (unsigned i = 0; i < n && (i == 0 || now_ns() < end); i++) {
        m = TAILQ_FIRST(&all->list);
        if (!m)
            return; /* sending has closed the last one, so `all` will be freed */
        TAILQ_REMOVE(&all->list, m, link);
        TAILQ_INSERT_TAIL(&all->list, m, link);
        n_more += tell_some(m);
        if (i + 1 < n && now_ns() >= end)
            n_more++; /* the next one may have something */
    }
    if (n_more && !TAILQ_EMPTY(&all->list))
        wake(all);
}

void monitor_drained(struct connection *connection)
{
    if (connection->monitor)
        wake(connection->monitor->of);
}

static bool wants_phases(const struct monitor *m)
{
    return !m->subscriber.kinds || m->subscriber.kinds >> (SHMVIEW_EVENT_PHASE - 1) & 1;
}

/* Looks at phases, ten times a second, for one slice at most. First it looks at the segments that
 * monitors name, beginning with the monitor that was not reached last time. Then it looks at all
 * segments, if a monitor wants those. In that case each of the two gets half of the time. If the
 * time does not suffice, the next look comes sooner. */
static void on_clock(struct alarm *clock)
{
    struct monitors *all = clock->data;
    const struct registry *registry = &all->state->registry;
    int64_t now = now_ns(), until = slice_end(SLICE_NS);
    struct monitor *m;
    unsigned n = 0;
    bool wants_all = false;
    TAILQ_FOREACH (m, &all->list, link) {
        n++;
        wants_all |= wants_phases(m) && m->subscriber.n_names == 0;
    }
    int64_t named_until = wants_all ? now + (until - now) / 2 : until;
    for (m = all->next_look; n && now_ns() < named_until; n--) {
        m = m ? m : TAILQ_FIRST(&all->list);
        const struct subscriber *s = &m->subscriber;
        if (wants_phases(m) && s->n_names)
            phases_look_at(&all->phases, registry, s->names, s->n_names, &m->next_name,
                           named_until);
        m = TAILQ_NEXT(m, link);
    }
    all->next_look = m;
    bool is_short = n || now_ns() >= named_until;
    if (wants_all)
        is_short |= !phases_look(&all->phases, registry, until);
    if (is_short)
        alarm_set(clock, LOOK_MORE_MS, PHASES_PERIOD_MS);
}

/* --- Beginning and end --------------------------------------------------- */

/* Frees `all` when libuv does not use its clock any longer. */
static void on_closed(uv_handle_t *handle)
{
    const struct alarm *clock = handle->data;
    free(clock->data);
}

/* Makes sure that state->monitors exists. Returns 0 or -errno. */
static int monitors_open(struct state *state)
{
    if (state->monitors)
        return 0;
    struct monitors *all = calloc(1, sizeof *all);
    int r = all ? alarm_init(&all->clock, state->loop, on_clock, all) : -ENOMEM;
    if (r) {
        free(all);
        return r;
    }
    all->state = state;
    TAILQ_INIT(&all->list);
    all->turn = (struct turn){.serve = serve, .payer = &state->turns->own};
    state->registry.home.events.wake = wake;
    state->registry.home.events.wake_arg = all;
    state->monitors = all;
    return 0;
}

static void monitors_close_if_empty(struct monitors *all)
{
    if (!TAILQ_EMPTY(&all->list))
        return;
    all->state->registry.home.events.wake = NULL;
    all->state->monitors = NULL;
    turns_cancel(all->state->turns, &all->turn);
    alarm_close(&all->clock, on_closed);
}

static void monitor_free(struct monitor *m)
{
    free(m->subscriber.names);
    quota_refund(m->payer, QUOTA_MONITORS, 1);
    free(m);
}

/* Returns a new monitor, which takes over the charge of payer; or NULL if memory is short, and the
 * charge is refunded. */
static struct monitor *monitor_new(struct connection *c, const struct wire_monitor *want,
                                   struct quota_user *payer)
{
    struct monitor *m = calloc(1, sizeof *m);
    if (!m) {
        quota_refund(payer, QUOTA_MONITORS, 1);
        return NULL;
    }
    m->connection = c;
    m->payer = payer;
    m->subscriber.kinds = want->kinds;
    m->subscriber.may_know = may_know;
    m->subscriber.owner = m;
    m->subscriber.names = names_copy(want->names, want->n_names);
    m->subscriber.n_names = want->n_names;
    if (m->subscriber.names)
        return m;
    monitor_free(m);
    return NULL;
}

static const struct segment *find_segment(void *arg, uint64_t id)
{
    return registry_find_id(arg, id);
}

/* Makes the connection a monitor. Returns 0; -EDQUOT with *ret_excess if there are too many
 * monitors; or another -errno. */
static int subscribe(const struct request *request, const struct wire_monitor *want,
                     struct quota_excess *ret_excess)
{
    struct state *state = request->state;
    struct connection *c = request->connection;
    struct quota_user *payer;
    int r = quota_charge_share(&state->quota, request->who.uid, request->who.is_admin,
                               QUOTA_MONITORS, LIMIT_MONITORS, &payer, ret_excess);
    if (r)
        return r;
    struct monitor *m = monitor_new(c, want, payer);
    if (!m)
        return -ENOMEM;
    r = monitors_open(state);
    if (r) {
        monitor_free(m);
        return r;
    }
    struct monitors *all = state->monitors;
    if (all->n_phases)
        on_clock(&all->clock); /* so that switches before this are not reported to the new one */
    uint64_t after = want->after == WIRE_ABSENT ? UINT64_MAX : (uint64_t)want->after;
    m->of = all; /* may_know() needs it for the events in the ring */
    r = events_subscribe(&state->registry.home.events, &m->subscriber, after, find_segment,
                         &state->registry);
    if (r) {
        monitor_free(m);
        monitors_close_if_empty(all);
        return r;
    }
    TAILQ_INSERT_TAIL(&all->list, m, link);
    c->monitor = m;
    c->streaming = true;
    if (wants_phases(m)) {
        if (all->n_phases++ == 0) {
            phases_begin(&all->phases, &state->registry);
            alarm_set(&all->clock, PHASES_PERIOD_MS, PHASES_PERIOD_MS);
        }
        on_clock(&all->clock); /* stores the phases of now, if the session is new */
    }
    if (m->subscriber.n_pending)
        wake(all);
    return 0;
}

void monitor_start(struct request *r, const union wanted *want)
{
    struct connection *c = r->connection;
    struct quota_excess excess = {.what = "monitors", .asked = 1};
    bool is_stream = c->more && !c->oneway;
    int error = is_stream ? subscribe(r, &want->monitor, &excess) : 0;
    free(want->monitor.names);
    if (!is_stream) {
        r->answer->error = REFUSAL_EXPECTED_MORE;
    } else if (error == -EDQUOT) {
        refuse_quota(r->answer, r->who.uid, &excess);
    } else if (error) {
        refuse_system(r->answer, "events cannot be monitored", -error);
    } else {
        struct shmview_event w =
            own_word(SHMVIEW_EVENT_SUBSCRIBED, r->state->registry.home.events.last);
        r->answer->pending = true;
        tell(c, &w);
    }
}

void monitor_end(struct connection *connection)
{
    struct monitor *m = connection->monitor;
    if (!m)
        return;
    struct monitors *all = m->of;
    connection->monitor = NULL;
    events_unsubscribe(&all->state->registry.home.events, &m->subscriber);
    if (all->next_look == m)
        all->next_look = TAILQ_NEXT(m, link);
    TAILQ_REMOVE(&all->list, m, link);
    if (wants_phases(m) && --all->n_phases == 0) {
        alarm_stop(&all->clock);
        phases_end(&all->state->registry);
    }
    monitor_free(m);
    monitors_close_if_empty(all);
}
