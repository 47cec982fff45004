/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/phases.h"

#include <stdio.h>

#include "common/base/util.h"
#include "daemon/segments/control_peek.h"
#include "daemon/segments/events.h"

void phases_begin(struct phases *phases, struct registry *registry)
{
    struct segment_home *home = &registry->home;
    if (++home->last_session == 0) /* 0 marks segments that no session has seen */
        home->last_session = 1;
    *phases = (struct phases){
        .first_unseen = registry->last_id + 1,
        .session = home->last_session,
    };
    home->phases = phases;
}

void phases_end(struct registry *registry)
{
    registry->home.phases = NULL;
}

/* How many switches are between two generations. Generations wrap from UINT32_MAX to 1, because 0
 * means that there is no phase yet. */
static uint32_t switches_between(uint32_t before, uint32_t now)
{
    return now > before ? now - before : now - before - 1;
}

/* Looks at one segment, and adds an event if its phase is another one than at the last look. */
static void peek_phase(const struct phases *phases, struct segment *segment)
{
    static struct control_peek seen;
    if (!segment->allocated || !segment->lock)
        return;
    if (segment->layouts.n == 0)
        seen.control.phase = 0; /* a segment without layouts has no phase: saves the read */
    else if (control_peek(segment, &seen))
        return;
    uint32_t generation = (uint32_t)seen.control.phase;
    uint32_t layout = (uint32_t)(seen.control.phase >> 32);
    uint32_t before = segment->phase_seen;
    if (segment->phase_session != phases->session)
        before = segment->id < phases->first_unseen ? generation : 0;
    segment->phase_seen = generation;
    segment->phase_session = phases->session;
    if (generation == before)
        return;
    struct event *e = events_add(&segment->home->events, SHMVIEW_EVENT_PHASE, segment, ACTOR_NONE);
    e->generation = generation;
    e->switches = switches_between(before, generation);
    if (layout > 0 && layout <= segment->layouts.n)
        snprintf(e->text, sizeof e->text, "%s", segment->layouts.list[layout - 1].name);
}

void phases_note(struct segment *segment)
{
    if (segment->home->phases)
        peek_phase(segment->home->phases, segment);
}

void phases_look_at(struct phases *phases, const struct registry *registry,
                    const char *const *names, size_t n, size_t *next, int64_t until_ns)
{
    for (size_t i = 0; i < n && (i == 0 || now_ns() < until_ns); i++) {
        struct segment *s = registry_find(registry, names[*next]);
        *next = (*next + 1) % n;
        if (s && s->n_attachments)
            peek_phase(phases, s);
    }
}

bool phases_look(struct phases *phases, const struct registry *registry, int64_t until_ns)
{
    for (unsigned i = 1;; i++) {
        struct segment *s = registry_next(registry, phases->next);
        phases->next = s ? s->id : 0;
        if (!s)
            return true;
        if (s->n_attachments)
            peek_phase(phases, s);
        if (i % 16 == 0 && now_ns() > until_ns)
            return false;
    }
}
