/* SPDX-License-Identifier: Apache-2.0 */
#include "stress/block.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/util.h"
#include "stress/arena.h"
#include "stress/fate.h"

const char *const block_layouts[N_LAYOUTS] = {"plain", "inverted"};

static struct block *block_of(const struct shmview_segment *segment)
{
    return shmview_data(segment);
}

/* --- Phases -------------------------------------------------------------- */

static uint64_t phase_now(struct shmview_segment *segment)
{
    struct shmview_phase p;
    int r = shmview_phase_get(segment, &p);
    if (r) {
        report(VIOLATION_CALL, "shmview_phase: %d %s", r, shmview_error_text());
        return 0;
    }
    if (p.layout >= N_LAYOUTS || strcmp(p.name, block_layouts[p.layout]) != 0) {
        report(VIOLATION_PHASE, "layout %u is called '%s'", p.layout, p.name);
        return 0;
    }
    return (uint64_t)p.layout << 32 | p.generation;
}

/* --- Order --------------------------------------------------------------- */

/* Returns the expected value of every word, except for the index that is added to it. */
static uint64_t pattern(uint64_t sequence, uint64_t phase)
{
    uint64_t p = sequence * 0x9e3779b97f4a7c15u;
    return phase >> 32 ? ~p : p;
}

static int torn_at(const struct block *b)
{
    uint64_t p = pattern(b->sequence, b->phase);
    for (int i = 0; i < BLOCK_WORDS; i++)
        if (b->words[i] != p + (unsigned)i)
            return i;
    return -1;
}

static void write_words(struct block *b, int from, int to)
{
    uint64_t p = pattern(b->sequence, b->phase);
    for (int i = from; i < to; i++)
        b->words[i] = p + (unsigned)i;
}

static int define(struct shmview_segment *segment, const char *layout, const char *format)
{
    static const int64_t shape[] = {BLOCK_WORDS};
    struct shmview_view_spec view = {
        .name = "words",
        .format = format,
        .offset = offsetof(struct block, words),
        .ndim = 1,
        .shape = shape,
    };
    return shmview_define(segment, layout, &view, 1);
}

int block_create(struct shmview_segment *segment)
{
    struct block *b = block_of(segment);
    int r = define(segment, block_layouts[0], "uint64");
    if (r == 0)
        r = define(segment, block_layouts[1], "int64");
    if (r == 0)
        r = shmview_lock(segment);
    if (r)
        return r;
    r = shmview_switch(segment, block_layouts[0]);
    b->phase = phase_now(segment);
    write_words(b, 0, BLOCK_WORDS);
    int unlocked = shmview_unlock(segment);
    return r ? r : unlocked;
}

/* --- Exclusive ----------------------------------------------------------- */

/* The last owner left in order, so the block must be in order. */
static void expect_order(struct shmview_segment *segment)
{
    const struct block *b = block_of(segment);
    uint64_t phase = phase_now(segment);
    int torn = torn_at(b);
    if (b->token)
        report(VIOLATION_TWO_INSIDE, "entering, and the mark of %" PRIx64 " is there", b->token);
    if (torn >= 0)
        report(VIOLATION_TORN, "word %d of write %" PRIu64, torn, b->sequence);
    if (phase != b->phase)
        report(VIOLATION_PHASE, "data of %" PRIx64 " in phase %" PRIx64, b->phase, phase);
}

/* The last owner died inside: the phase may be one ahead of the data. */
static void expect_death(struct shmview_segment *segment)
{
    const struct block *b = block_of(segment);
    struct shmview_death death;
    uint64_t phase = phase_now(segment);
    uint32_t ahead = (uint32_t)phase - (uint32_t)b->phase;
    int r = shmview_owner_died(segment, &death);
    me_count(COUNT_OWNER_DIED);
    if (torn_at(b) >= 0)
        me_count(COUNT_TORN);
    if (ahead > 1 || (ahead == 0 && phase != b->phase))
        report(VIOLATION_PHASE, "data of %" PRIx64 " left in phase %" PRIx64, b->phase, phase);
    if (r)
        report(VIOLATION_CALL, "shmview_owner_died: %d %s", r, shmview_error_text());
    if (b->token)
        fate_note_latency(arena->killed_ns[token_incarnation(b->token) % INCARNATIONS_MAX]);
    fate_place(AT_REPAIRS);
}

void block_enter(struct shmview_segment *segment, int result)
{
    if (result == SHMVIEW_OWNER_DIED)
        expect_death(segment);
    else
        expect_order(segment);
    block_of(segment)->token = me_token();
}

void block_repair(struct shmview_segment *segment)
{
    struct block *b = block_of(segment);
    b->phase = phase_now(segment);
    block_write(segment);
}

void block_tear(struct shmview_segment *segment)
{
    struct block *b = block_of(segment);
    b->sequence++;
    write_words(b, 0, BLOCK_WORDS / 2);
    fate_place(AT_HALF_WRITTEN);
}

void block_write(struct shmview_segment *segment)
{
    struct block *b = block_of(segment);
    block_tear(segment);
    write_words(b, BLOCK_WORDS / 2, BLOCK_WORDS);
}

void block_switch(struct shmview_segment *segment)
{
    int r = shmview_switch(segment, block_layouts[me_random() % N_LAYOUTS]);
    if (r)
        report(VIOLATION_CALL, "shmview_switch: %d %s", r, shmview_error_text());
    fate_place(AT_SWITCHED_ONLY);
    block_of(segment)->phase = phase_now(segment);
    me_count(COUNT_SWITCHES);
    block_write(segment);
}

void block_leave(struct shmview_segment *segment)
{
    struct block *b = block_of(segment);
    if (b->token != me_token())
        report(VIOLATION_TWO_INSIDE, "leaving, and the mark is that of %" PRIx64, b->token);
    b->token = 0;
}

/* --- Shared -------------------------------------------------------------- */

static void expect_readable(struct shmview_segment *segment)
{
    const struct block *b = block_of(segment);
    uint64_t phase = phase_now(segment);
    int torn = torn_at(b);
    if (b->token)
        report(VIOLATION_TWO_INSIDE, "reading, and the mark of %" PRIx64 " is there", b->token);
    if (torn >= 0)
        report(VIOLATION_READER_TORN, "word %d of write %" PRIu64, torn, b->sequence);
    if (phase != b->phase)
        report(VIOLATION_PHASE, "reading data of %" PRIx64 " in phase %" PRIx64, b->phase, phase);
}

void block_read(struct shmview_segment *segment)
{
    const struct block *b = block_of(segment);
    uint64_t sequence = b->sequence;
    expect_readable(segment);
    fate_place(AT_HALF_READ);
    expect_readable(segment);
    if (b->sequence != sequence)
        report(VIOLATION_READER_MOVED, "write %" PRIu64 " while write %" PRIu64 " is read",
               b->sequence, sequence);
}

/* --- Optimistic ---------------------------------------------------------- */

static void copy_block(struct block *to, const struct block *from)
{
    to->token = from->token;
    to->sequence = from->sequence;
    to->phase = from->phase;
    for (int i = 0; i < BLOCK_WORDS; i++)
        to->words[i] = from->words[i];
}

bool block_read_unlocked(struct shmview_segment *segment)
{
    struct block copy;
    uint64_t version;
    int r = shmview_read_begin(segment, &version);
    if (r == -SHMVIEW_ERR_BUSY)
        return false;
    if (r) {
        report(VIOLATION_CALL, "shmview_read_begin: %d %s", r, shmview_error_text());
        return false;
    }
    copy_block(&copy, block_of(segment));
    uint64_t phase = phase_now(segment);
    if (shmview_read_validate(segment, version) != 1)
        return false;
    if (copy.token || torn_at(&copy) >= 0 || copy.phase != phase)
        report(VIOLATION_OPTIMISTIC,
               "mark %" PRIx64 ", torn at %d, data of %" PRIx64 " in phase %" PRIx64, copy.token,
               torn_at(&copy), copy.phase, phase);
    return true;
}
