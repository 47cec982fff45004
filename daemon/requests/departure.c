/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/departure.h"

#include <stdlib.h>

#include "common/base/util.h"
#include "daemon/base/slice.h"
#include "daemon/requests/state.h"

/* What departures may use between two looks of the loop for events. */
#define SLICE_NS 250000

/* What one dead client had. */
struct departure {
    struct state *state;
    struct attachments attachments, announced; /* not announced yet; announced */
    struct created_segments created;
    bool has_presence;
    struct presence_key presence; /* removed at the end, if has_presence */
    TAILQ_ENTRY(departure) link;
};

static void on_slice(uv_idle_t *idle);

/* The callbacks of struct clients. */
static void on_death_of_survivor(struct client *c)
{
    departure_begin(CONTAINER_OF(c->clients, struct state, clients), &c->attachments, &c->created,
                    c);
}

static void on_unclaimed(struct clients *clients, struct attachments *attachments)
{
    struct created_segments none = LIST_HEAD_INITIALIZER(none);
    departure_begin(CONTAINER_OF(clients, struct state, clients), attachments, &none, NULL);
}

void departures_init(struct state *state)
{
    struct departures *all = &state->departures;
    TAILQ_INIT(&all->announcing);
    TAILQ_INIT(&all->ending);
    uv_idle_init(state->loop, &all->slices);
    all->slices.data = state;
    state->clients.loop = state->loop;
    state->clients.registry = &state->registry;
    state->clients.died = on_death_of_survivor;
    state->clients.unclaimed = on_unclaimed;
}

void departures_round(struct departures *departures)
{
    departures->used_ns = 0;
}

/* --- One step ------------------------------------------------------------ */

/* Removes a segment whose creator is dead. */
static void end_segment(struct state *state, struct segment *s)
{
    struct actor by = {.pid = (pid_t)s->holder.pid, .uid = s->holder.uid};
    LIST_REMOVE(s, created);
    s->has_creator = s->departing = false;
    registry_remove(&state->registry, s, by);
}

/* Adds a departure at the end of the list for what it needs next. */
static void put_back(struct departures *all, struct departure *d)
{
    struct departure_list *list = LIST_EMPTY(&d->attachments) ? &all->ending : &all->announcing;
    TAILQ_INSERT_TAIL(list, d, link);
}

static void remove_presence(const struct departure *d)
{
    if (d->has_presence)
        presence_remove(&d->state->clients.presence, d->presence);
}

static void forget(struct departure *d)
{
    remove_presence(d);
    free(d);
}

/* Does one step of a departure, which must be in no list: announces one attachment, or ends one, or
 * removes one segment. Returns whether nothing is left. */
static bool step(struct departure *d)
{
    struct attachment *a;
    struct segment *s;
    if ((a = LIST_FIRST(&d->attachments))) {
        attachment_announce(a);
        LIST_REMOVE(a, link);
        LIST_INSERT_HEAD(&d->announced, a, link);
    } else if ((a = LIST_FIRST(&d->announced))) {
        attachment_died(&d->state->registry, a);
    } else if ((s = LIST_FIRST(&d->created))) {
        end_segment(d->state, s);
    }
    return LIST_EMPTY(&d->attachments) && LIST_EMPTY(&d->announced) && LIST_EMPTY(&d->created);
}

/* Does steps until until_ns or until nothing is left; at least one. */
static void work(struct state *state, int64_t until_ns)
{
    struct departures *all = &state->departures;
    struct departure *d;
    do {
        d = TAILQ_FIRST(&all->announcing);
        struct departure_list *list = d ? &all->announcing : &all->ending;
        if (!d && !(d = TAILQ_FIRST(&all->ending)))
            break;
        TAILQ_REMOVE(list, d, link);
        if (step(d))
            forget(d);
        else
            put_back(all, d);
    } while (now_ns() < until_ns);
    if (TAILQ_EMPTY(&all->announcing) && TAILQ_EMPTY(&all->ending))
        uv_idle_stop(&all->slices);
    else
        uv_idle_start(&all->slices, on_slice);
}

/* The loop calls this between two looks for events. What departures that began after the last look
 * have used already is taken from the slice; one step is done all the same. */
static void on_slice(uv_idle_t *idle)
{
    struct state *state = idle->data;
    work(state, slice_end(SLICE_NS - state->departures.used_ns));
}

void departures_finish(struct state *state)
{
    work(state, INT64_MAX);
}

/* --- Beginning ----------------------------------------------------------- */

/* Moves all elements from one list to an uninitialised one in constant time. <sys/queue.h> has no
 * macro for that. */
#define MOVE_LIST(to, from, field)                                                                 \
    do {                                                                                           \
        LIST_INIT(to);                                                                             \
        if (!LIST_EMPTY(from)) {                                                                   \
            LIST_FIRST(to) = LIST_FIRST(from);                                                     \
            LIST_FIRST(to)->field.le_prev = &LIST_FIRST(to);                                       \
            LIST_INIT(from);                                                                       \
        }                                                                                          \
    } while (0)

void departure_begin(struct state *state, struct attachments *attachments,
                     struct created_segments *created, struct client *client)
{
    struct departures *all = &state->departures;
    struct departure here = {.state = state};
    bool is_any = !LIST_EMPTY(attachments) || !LIST_EMPTY(created);
    struct departure *d = is_any ? malloc(sizeof *d) : NULL;
    struct attachment *a;
    struct segment *s;
    if (!d) /* there is nothing to do, or no memory to do it later */
        d = &here;
    *d = here;
    MOVE_LIST(&d->attachments, attachments, link);
    attachments->n = 0;
    MOVE_LIST(&d->created, created, created);
    LIST_INIT(&d->announced);
    if (client)
        d->has_presence = client_depart(client, &d->presence);
    /* departure_settle() finds them by these marks */
    LIST_FOREACH (a, &d->attachments, link) {
        a->departed = true;
        a->of = NULL;
    }
    LIST_FOREACH (s, &d->created, created)
        s->departing = true;
    if (d == &here) {
        while (!step(d))
            continue;
        remove_presence(d);
        return;
    }
    put_back(all, d);
    int64_t start = now_ns();
    /* Many clients may die in one turn of the loop. Together their first slices get one slice. */
    work(state, all->used_ns < SLICE_NS ? slice_end(SLICE_NS) : start);
    all->used_ns += now_ns() - start;
}

/* --- Requests for a segment of a departure ------------------------------- */

struct segment *departure_settle(struct state *state, struct segment *segment)
{
    const struct departures *all = &state->departures;
    if (!segment || !segment->allocated ||
        (TAILQ_EMPTY(&all->announcing) && TAILQ_EMPTY(&all->ending)))
        return segment;
    uint64_t id = segment->id;
    struct attachment *a = segment->use ? LIST_FIRST(&segment->use->attachments) : NULL, *next;
    for (; a; a = next) {
        next = LIST_NEXT(a, sibling);
        if (a->departed)
            attachment_died(&state->registry, a); /* may free the segment with the last one */
    }
    segment = registry_find_id(&state->registry, id);
    if (!segment || !segment->departing)
        return segment;
    end_segment(state, segment);
    return registry_find_id(&state->registry, id);
}
