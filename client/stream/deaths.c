/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths of writers: a reader finds the id of a dead client where that of a writer stands.
 *
 * A writer that takes over from a dead one replaces that id. It leaves a mark in the header, so
 * that a reader which looks later learns of the death as well. One mark suffices for people: if two
 * writers die before a reader looks, it reports the second one.
 *
 * The id of one dead client may stand in several slots and in the mark, and in each of them at
 * another time. So a reader keeps the ids that it has reported, by their slots of the lock. */
#include <string.h>

#include "client/stream/stream.h"
#include "common/base/name.h"

/* The mark is text for people, and two writers may store it at once. So each of its words is
 * atomic. */
static void store_words(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++) {
        uint64_t value;
        memcpy(&value, (const char *)from + i * sizeof value, sizeof value);
        atomic_store_explicit(word64((uint64_t *)to + i), value, memory_order_relaxed);
    }
}

static void load_words(void *to, void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++) {
        uint64_t value = atomic_load_explicit(word64((uint64_t *)from + i), memory_order_relaxed);
        memcpy((char *)to + i * sizeof value, &value, sizeof value);
    }
}

void client_facts(const struct shmview_stream *s, uint32_t id, uint32_t *ret_pid,
                  char ret_command[16])
{
    struct shmview_slot copy, *slot;
    *ret_pid = 0;
    memset(ret_command, 0, 16);
    if ((id & SHMVIEW_SLOT_MASK) >= readers_high(s))
        return;
    slot = slot_at(stream_lock(s), id & SHMVIEW_SLOT_MASK);
    load_words(&copy, slot, offsetof(struct shmview_slot, stream_next));
    if (copy.id != id)
        return;
    *ret_pid = copy.pid;
    command_copy(ret_command, copy.command);
}

/* Whether the client still owns a slot of a stream with many writers. Those of an only writer were
 * taken over with its role. */
static bool owns_a_slot(const struct shmview_stream *s, uint32_t id)
{
    uint32_t f = has_many_writers(s) ? 0 : s->plan.n_slots;
    while (f < s->plan.n_slots && atomic_load(word(&slot_words(s, f)->owner)) != id)
        f++;
    return f < s->plan.n_slots;
}

/* Counts the dead writer with the last of its slots. Until then a reader finds its id in another
 * one, so the count need not announce the mark. */
void death_mark(struct shmview_stream *s, uint32_t dead)
{
    struct shmview_stream_mark mark = {.id = dead, .when_ns = (uint64_t)now_ns()};
    client_facts(s, dead, &mark.pid, mark.command);
    store_words(&s->header->mark, &mark, sizeof mark);
    if (!owns_a_slot(s, dead))
        atomic_fetch_add(word(&s->header->deaths), 1);
    STEP(AT_STREAM_MARKED);
}

/* Notes a death in the reader, to be reported. */
static void note(struct shmview_stream *s, const struct shmview_stream_mark *mark)
{
    struct reader *reader = &s->reader;
    reader->death = (struct shmview_death){
        .pid = mark->pid,
        .slot = mark->id & SHMVIEW_SLOT_MASK,
        .when_ns = (int64_t)mark->when_ns,
    };
    command_copy(reader->death.command, mark->command);
    reader->reported[mark->id & SHMVIEW_SLOT_MASK] = mark->id;
    reader->has_death = reader->is_due = true;
    STEP(AT_STREAM_NOTED);
}

/* Whether there is nothing to report of the client with this id: its death was reported, or that of
 * a later user of its slot of the lock. In that case it died before that look. The generations of a
 * slot wrap, so ids are compared by their difference, in the bits that an id has. */
static bool is_known(const struct shmview_stream *s, uint32_t id)
{
    uint32_t last = s->reader.reported[id & SHMVIEW_SLOT_MASK];
    return id == 0 || (last && ((last - id) & SHMVIEW_LOCK_OWNER) <= SHMVIEW_LOCK_OWNER / 2);
}

/* Notes the death of the client with this id, if it is dead. Returns whether there is something to
 * report. */
static bool note_if_dead(struct shmview_stream *s, uint32_t id)
{
    struct shmview_stream_mark mark = {.id = id};
    if (is_known(s, id) || is_alive(stream_lock(s), id))
        return false;
    mark.when_ns = (uint64_t)now_ns();
    client_facts(s, id, &mark.pid, mark.command);
    note(s, &mark);
    return true;
}

/* Looks for a dead writer in the words of the slots, from which nobody has taken over. */
static bool look_at_owners(struct shmview_stream *s)
{
    uint32_t f = 0;
    while (f < s->plan.n_slots && !note_if_dead(s, atomic_load(word(&slot_words(s, f)->owner))))
        f++;
    return f < s->plan.n_slots;
}

bool death_look_slowly(struct shmview_stream *s, uint32_t deaths)
{
    struct reader *reader = &s->reader;
    uint32_t taken_over = atomic_load(word(&s->header->deaths));
    struct shmview_stream_mark mark;
    if (taken_over != reader->taken_over) {
        reader->taken_over = taken_over;
        load_words(&mark, &s->header->mark, sizeof mark);
        if (!is_known(s, mark.id)) {
            note(s, &mark);
            return true; /* and look again at the next call */
        }
    }
    if (has_many_writers(s) ? look_at_owners(s)
                            : note_if_dead(s, atomic_load(word(&s->header->writer))))
        return true;
    reader->deaths = deaths;
    return false;
}

int shmview_stream_death(const struct shmview_stream *stream, struct shmview_death *ret_death)
{
    struct shmview_stream *s = (struct shmview_stream *)(uintptr_t)stream;
    struct shmview_death death;
    bool has_death = false;
    if (stream_is_own(s)) {
        claim_take(&s->reader.claim);
        has_death = s->reader.has_death;
        death = s->reader.death;
        claim_release(&s->reader.claim);
    }
    if (!has_death)
        return fail(SHMVIEW_ERR_NOT_FOUND, "no death of a writer of '%s' was reported",
                    s->segment->name);
    *ret_death = death;
    return 0;
}
