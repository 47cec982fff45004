/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that write rubbish into the words of a stream. The others get errors, wrong frames or
 * none, but no signal, and no call lasts. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <shmview/layout.h>

#include "support/raw.h"

#include "streams.h"

#define ROUNDS 24
#define STEPS  200

static struct shmview_stream *reader, *peek;

/* Opens a stream of two stages with a writer, a reader, and one that follows it with peek. The
 * rounds have all modes. */
static void open_round(int round)
{
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 4);
    spec.n_stages = 2;
    spec.mode = round % 2 ? SHMVIEW_LATEST : SHMVIEW_LOSSLESS;
    spec.flags = round % 4 < 2 ? SHMVIEW_MANY_WRITERS : 0;
    open_stream_of(&spec);
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &reader));
    OK(shmview_stream_open(conn, "s", SHMVIEW_PEEK, &peek));
    OK(shmview_stream_join(reader));
}

static void close_readers(void)
{
    shmview_stream_close_later(reader);
    OK(shmview_stream_close(peek));
}

static void close_round(void)
{
    shmview_stream_close_later(stream);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static uint64_t rubbish(void)
{
    uint64_t bits = (uint64_t)random() << 32 ^ (uint64_t)random() << (random() % 32);
    return random() % 3 ? bits & 0xffff : bits;
}

/* Makes each call once, without a wait. */
static void use_all(int i)
{
    struct shmview_frame frame;
    struct shmview_view v;
    struct shmview_stream_status status;
    struct shmview_stream_slot_status slots[4];
    struct shmview_stream_reader_status readers[4];
    if (shmview_stream_loan(stream, 0, &frame) == 0) {
        if (shmview_frame_view_at(&frame, 0, &v) == 0)
            memset(v.data, 1, v.nbytes);
        shmview_frame_publish(&frame);
    }
    for (int k = 0; k < 2; k++) {
        struct shmview_stream *r = k ? peek : reader;
        if ((i % 3 ? shmview_stream_take : shmview_stream_take_latest)(r, 0, &frame))
            continue;
        if (shmview_frame_view_at(&frame, 0, &v) == 0)
            ck_assert(v.nbytes <= LENGTH * 16);
        ck_assert_uint_le(frame.user_bytes, 64);
        shmview_frame_pass(&frame, 1, NULL);
        shmview_frame_release(&frame);
    }
    OK(shmview_stream_query(reader, &status, slots, 4, readers, 4));
}

/* A process with write access stores anything anywhere before the frames. */
START_TEST(rubbish_in_the_data)
{
    srandom(1);
    for (int round = 0; round < ROUNDS; round++) {
        open_round(round);
        struct shmview_segment *seg = client_attach(conn, "s", SHMVIEW_WRITE);
        uint64_t *words = shmview_data(seg);
        for (int i = 0; i < STEPS; i++) {
            for (int n = 0; n < 3; n++)
                words[(size_t)random() % (4096 / 8)] = rubbish();
            use_all(i);
        }
        struct shmview_stream *again;
        if (shmview_stream_open(conn, "s", SHMVIEW_READ, &again) == 0)
            OK(shmview_stream_close(again));
        OK(shmview_detach(seg));
        close_readers();
        close_round();
    }
}
END_TEST

#define SLOTS 8 /* of the lock, in which the readers have their words */

/* Stores rubbish into a gate, or into a word of a reader. */
static void spoil(struct shmview_control *control)
{
    struct shmview_slot *slot = (struct shmview_slot *)(void *)(control + 1) + random() % SLOTS;
    uint64_t value = rubbish();
    long where = random() % 8;
    if (where < SHMVIEW_STREAM_STAGES_MAX)
        atomic_store((_Atomic uint32_t *)&control->stream_readers[where], (uint32_t)value);
    atomic_store((_Atomic uint32_t *)&control->stream_writers, (uint32_t)value);
    if (where == 0)
        atomic_store((_Atomic uint32_t *)&slot->stream_user, (uint32_t)value);
    else if (where == 1)
        atomic_store((_Atomic uint32_t *)&slot->stream_stage, (uint32_t)value);
    else if (where == 2)
        atomic_store((_Atomic uint64_t *)&slot->stream_next, value);
    else
        atomic_store((_Atomic uint64_t *)&slot->stream_holds[where], value);
}

/* All slots but those that the stages keep can be loaned by a new writer. */
static void expect_all_slots(uint32_t n)
{
    struct shmview_frame frames[4];
    struct shmview_stream *next;
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &next));
    shmview_stream_close_later(stream);
    stream = next;
    for (uint32_t i = 0; i < n; i++)
        OK(shmview_stream_loan(stream, SOON, &frames[i]));
    for (uint32_t i = 0; i < n; i++)
        shmview_frame_discard(&frames[i]);
}

/* Attaches the stream without the library, and maps its control object. */
static struct shmview_control *map_control(struct raw *raw)
{
    raw_connect(raw, d.socket);
    json_decref(raw_call(raw, "Attach", "{'name':'s','access':'read'}"));
    ck_assert_uint_eq(raw->n_fds, 3);
    struct shmview_control *control =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, raw->fds[1], 0);
    ck_assert_ptr_ne(control, MAP_FAILED);
    return control;
}

static void unmap_control(struct raw *raw, struct shmview_control *control)
{
    munmap(control, 4096);
    raw_close_fds(raw);
    raw_close(raw);
}

/* A process with read access can store anything in the control object. Nothing of that outlives
 * the attachments that were there. */
START_TEST(rubbish_in_the_control_object)
{
    srandom(1);
    for (int round = 0; round < ROUNDS; round++) {
        struct raw raw;
        open_round(round);
        struct shmview_control *control = map_control(&raw);
        for (int i = 0; i < STEPS; i++) {
            spoil(control);
            use_all(i);
        }
        unmap_control(&raw, control);
        close_readers();
        expect_all_slots(round % 2 ? 2 : 4);
        close_round();
    }
}
END_TEST

/* Returns the id of the only client that has joined the stream. */
static uint32_t id_of_reader(void)
{
    struct raw raw;
    struct shmview_control *control = map_control(&raw);
    const struct shmview_slot *slots = (void *)(control + 1);
    uint32_t id = 0;
    for (int i = 0; i < SLOTS && id == 0; i++)
        id = slots[i].stream_user;
    unmap_control(&raw, control);
    ck_assert_uint_ne(id, 0);
    return id;
}

/* Stores an owner in the words of all slots, as a process with write access can. */
static void store_owner(uint32_t owner)
{
    struct shmview_segment *seg = client_attach(conn, "s", SHMVIEW_WRITE);
    const struct shmview_stream_header *header = shmview_data(seg);
    unsigned char *slots = (unsigned char *)shmview_data(seg) + header->slots_offset;
    for (uint32_t f = 0; f < header->n_slots; f++) {
        struct shmview_stream_slot *slot = (void *)(slots + f * header->slot_bytes);
        slot->owner = owner;
    }
    OK(shmview_detach(seg));
}

/* A reader owns no slot, even if all of them name it. */
START_TEST(slots_that_name_a_reader)
{
    open_stream(SHMVIEW_LATEST, 4);
    struct shmview_stream *victim = open_reader();
    store_owner(id_of_reader());
    OK(shmview_stream_close(victim));
    store_owner(0);
    close_stream();
}
END_TEST

/* The slots that a writer keeps free name nobody. */
START_TEST(free_slots_that_name_nobody)
{
    struct shmview_frame frame;
    open_stream(SHMVIEW_LATEST, 32); /* of which a loan frees four */
    OK(shmview_stream_loan(stream, 0, &frame));
    shmview_frame_discard(&frame);
    store_owner(0);
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(rubbish_in_the_data),
        SUITE_TEST(rubbish_in_the_control_object),
        SUITE_TEST(slots_that_name_a_reader),
        SUITE_TEST(free_slots_that_name_nobody),
        SUITE_END,
    };
    return suite_main("stream_hostile", tests);
}
