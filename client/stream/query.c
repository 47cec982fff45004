/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of slots and readers for people. */
#include <string.h>

#include "client/stream/stream.h"

static void report_slot(struct shmview_stream *s, uint32_t f,
                        struct shmview_stream_slot_status *ret)
{
    struct shmview_stream_slot *words = slot_words(s, f);
    uint32_t owner = atomic_load(word(&words->owner));
    uint64_t number;
    *ret = (struct shmview_stream_slot_status){
        .time_ns = atomic_load_explicit((_Atomic int64_t *)&words->time_ns, memory_order_relaxed),
    };
    for (uint32_t k = 0; k < s->plan.n_stages; k++) {
        ret->sequence[k] = ring_shown(s, k, f, &number);
        if (ret->sequence[k])
            ret->state = SHMVIEW_SLOT_PUBLISHED;
    }
    if (!s->me || !owner || !is_alive(stream_lock(s), owner))
        return;
    bool is_kept = ret->state == SHMVIEW_SLOT_PUBLISHED;
    ret->state = is_kept ? SHMVIEW_SLOT_HELD : SHMVIEW_SLOT_LOANED;
    ret->n_holders = is_kept;
    client_facts(s, owner, &ret->pid, ret->command);
}

static void report_reader(struct shmview_stream *s, uint32_t i, struct shmview_slot *reader,
                          struct shmview_stream_reader_status *ret)
{
    uint32_t user = atomic_load(word(&reader->stream_user));
    *ret = (struct shmview_stream_reader_status){
        .slot = i,
        .stage = atomic_load_explicit(word(&reader->stream_stage), memory_order_relaxed),
        .next = atomic_load(word64(&reader->stream_next)),
        .missed = atomic_load_explicit(word64(&reader->stream_missed), memory_order_relaxed),
    };
    client_facts(s, user, &ret->pid, ret->command);
    ret->lag = reader_lag(s, reader);
    ret->n_held = reader_holds(s, reader, ret->holds);
}

/* Counts a reader in the slots that it holds. */
static void add_holder(const struct shmview_stream_reader_status *reader,
                       struct shmview_stream_slot_status *slots, size_t n)
{
    for (size_t f = 0; f < n; f++)
        if (reader->holds[f / 64] >> f % 64 & 1) {
            slots[f].n_holders++;
            slots[f].state = SHMVIEW_SLOT_HELD;
        }
}

int shmview_stream_query(struct shmview_stream *stream, struct shmview_stream_status *ret_status,
                         struct shmview_stream_slot_status *ret_slots, size_t n_slots,
                         struct shmview_stream_reader_status *ret_readers, size_t n_readers)
{
    struct shmview_stream *s = stream;
    struct shmview_stream_reader_status one;
    int r = s->me ? stream_enter(s) : 0;
    if (r)
        return r;
    *ret_status = (struct shmview_stream_status){
        .deaths = atomic_load(word(&s->header->deaths)),
    };
    for (uint32_t k = 0; k < s->plan.n_stages; k++) {
        uint64_t ended = atomic_load(word64(&s->stages[k].words->ended));
        ret_status->published[k] = ring_last(s, k);
        ret_status->has_ended[k] = ended && ended == ret_status->published[k] + 1;
    }
    n_slots = n_slots < s->plan.n_slots ? n_slots : s->plan.n_slots;
    for (uint32_t f = 0; f < n_slots; f++)
        report_slot(s, f, &ret_slots[f]);
    if (!s->me)
        return 0;
    uint32_t writer = atomic_load(word(&s->header->writer));
    if (writer && is_alive(stream_lock(s), writer))
        client_facts(s, writer, &ret_status->writer_pid, ret_status->writer_command);
    for (uint32_t i = 0; i < readers_high(s); i++) {
        struct shmview_slot *reader = reader_at(s, i);
        if (!reader)
            continue;
        report_reader(s, i, reader, &one);
        add_holder(&one, ret_slots, n_slots);
        if (ret_status->n_readers < n_readers)
            ret_readers[ret_status->n_readers] = one;
        ret_status->n_readers++;
    }
    return 0;
}
