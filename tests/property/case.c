/* SPDX-License-Identifier: Apache-2.0 */
#include "case.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree.h"

/* --- The story ----------------------------------------------------------- */

void tell(struct story *story, const char *format, ...)
{
    size_t room = sizeof story->text - story->n;
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(story->text + story->n, room, format, arguments);
    va_end(arguments);
    if (n > 0)
        story->n += (size_t)n < room ? (size_t)n : room - 1;
}

void tell_list(struct story *story, const char *what, const int64_t *list, uint32_t n)
{
    tell(story, "%s[", what);
    for (uint32_t i = 0; i < n; i++)
        tell(story, "%s%" PRId64, i ? ", " : "", list[i]);
    tell(story, "]");
}

/* --- Numbers ------------------------------------------------------------- */

int64_t case_extreme(struct choices *from)
{
    static const int64_t edges[] = {
        INT64_MAX,
        INT64_MIN,
        INT64_MAX - 7,
        INT64_MIN + 1,
        INT64_MIN + 8,
        INT64_MAX / 2 + 1,
        INT64_MIN / 2,
        INT64_MAX / 8 + 1,
        (int64_t)1 << 32,
        UINT32_MAX,
        -((int64_t)1 << 32),
        (int64_t)1 << 31,
        (int64_t)1 << 59,
        -((int64_t)1 << 60),
        1000003,
        -4096,
    };
    if (choose_rarely(from, 4))
        return (int64_t)choose_word(from);
    return edges[choose(from, 0, sizeof edges / sizeof edges[0] - 1)];
}

int64_t case_number(struct choices *from, int64_t low, int64_t high)
{
    return choose_rarely(from, 64) ? case_extreme(from) : choose(from, low, high);
}

/* --- Formats ------------------------------------------------------------- */

const struct format *case_format(struct view_case *c, struct choices *from, uint32_t most)
{
    static const char *const plain[] = {"B", "h", "i", "d", "f", "q", "3f", "T{<h:a:2xi:b:}"};
    struct format_fault fault;
    if (choose_rarely(from, 2)) {
        char text[SHMVIEW_FORMAT_BYTES];
        struct tree tree;
        tree_generate(&tree, from);
        tree_write(&tree, text, sizeof text);
        const struct format *item = formats_get(&c->formats, text, &fault);
        if (item) /* the public call gets the canonical text, in which a struct has marks */
            item = formats_get(&c->formats, item->text, &fault);
        if (item && item->itemsize <= most)
            return item;
    }
    const struct format *item = formats_get(&c->formats, plain[choose(from, 0, 7)], &fault);
    return item->itemsize <= most ? item : formats_get(&c->formats, "B", &fault);
}

/* --- Segments ------------------------------------------------------------ */

/* Fills the memory, mostly with words that are offsets into it, so that suboffsets lead
 * somewhere. */
static void memory_fill(struct memory *memory, struct choices *from, struct story *story)
{
    tell(story, " words[");
    for (uint64_t at = 0; at < memory->size; at += sizeof(uint64_t)) {
        uint64_t word = (uint64_t)choose(from, 0, CASE_SEGMENT_BYTES / 8 - 1) * 8;
        uint64_t n = memory->size - at < sizeof word ? memory->size - at : sizeof word;
        if (choose_rarely(from, 16))
            word = (uint64_t)case_number(from, -1, CASE_SEGMENT_BYTES - 2);
        memcpy(memory->bytes + at, &word, n);
        tell(story, "%s%" PRIu64, at ? "," : "", word);
    }
    tell(story, "]");
}

static void memory_init(struct memory *memory, uint64_t size)
{
    void *bytes = NULL;
    if (posix_memalign(&bytes, 64, size ? size : 1))
        abort();
    *memory = (struct memory){.bytes = bytes, .size = size};
}

/* --- Descriptions -------------------------------------------------------- */

/* Packs the dimensions one within the other in some order, then widens or reverses some, or sets
 * their stride to 0. Returns the bytes that they span; *ret_first is the byte of that span at which
 * element [0, ..., 0] begins. */
static int64_t desc_nest(struct view_desc *desc, struct choices *from, int64_t *ret_first)
{
    int64_t align = desc->item->align, step = desc->item->itemsize, span = step;
    bool is_fortran = choose_rarely(from, 4), is_plain = choose_rarely(from, 2);
    *ret_first = 0;
    for (uint32_t k = 0; k < desc->ndim; k++) {
        uint32_t d = is_fortran ? k : desc->ndim - 1 - k;
        int64_t n = desc->shape[d], change = is_plain ? 0 : choose(from, 0, 15), stride = step;
        if (change == 15 || change == 14)
            stride += align * choose(from, 1, 2);
        if (change == 13)
            stride = 0;
        bool is_turned = change == 12 || change == 11;
        desc->strides[d] = is_turned ? -stride : stride;
        if (n < 2 && choose_rarely(from, 8))
            desc->strides[d] = case_number(from, -9, 9); /* a stride without meaning */
        if (n < 2)
            continue;
        span += stride * (n - 1);
        *ret_first += is_turned ? stride * (n - 1) : 0;
        step = stride ? stride * n : step;
    }
    return span;
}

/* Describes a view that just fits its segment, or now and then misses it by one byte. Returns the
 * size of the segment. */
static uint64_t desc_fit(struct view_desc *desc, struct choices *from)
{
    static const int8_t slacks[] = {0, 0, 0, 8, 16, 64, -1, 1};
    int64_t first, span = desc_nest(desc, from, &first);
    int64_t before = desc->item->align * choose(from, 0, 3);
    int64_t size = before + span + slacks[choose(from, 0, 7)];
    if (choose_rarely(from, 16))
        before += choose(from, -1, 1);
    desc->offset = (uint64_t)(before + first);
    return size < 0 ? 0 : size > CASE_SEGMENT_BYTES ? CASE_SEGMENT_BYTES : (uint64_t)size;
}

/* Describes a view with arbitrary numbers, mostly multiples of the alignment. */
static uint64_t desc_scatter(struct view_desc *desc, struct choices *from)
{
    int64_t unit = choose_rarely(from, 4) ? 1 : desc->item->align;
    desc->offset = (uint64_t)case_number(from, 0, 100 / unit) * (uint64_t)unit;
    for (uint32_t d = 0; d < desc->ndim; d++) {
        desc->strides[d] =
            (int64_t)((uint64_t)case_number(from, -24 / unit, 24 / unit) * (uint64_t)unit);
        if (choose_rarely(from, 16))
            desc->shape[d] = case_number(from, -2, 5);
    }
    return (uint64_t)choose(from, 0, 255);
}

/* Describes a view whose rows are found through offsets that the segment stores. */
static uint64_t desc_lead(struct view_desc *desc, struct choices *from)
{
    static const int8_t usual[] = {0, 0, 8, 16, -1, -1, -1, 4};
    int64_t unit = choose_rarely(from, 8) ? desc->item->align : CELL_BYTES, first;
    desc_nest(desc, from, &first);
    desc->offset = (uint64_t)choose(from, 0, 7) * CELL_BYTES;
    for (uint32_t d = 0; d < desc->ndim; d++) {
        int64_t n = desc->shape[d];
        desc->suboffsets[d] = usual[choose(from, 0, d ? 7 : 5)];
        if (choose_rarely(from, 32))
            desc->suboffsets[d] = case_number(from, -3, 70);
        desc->indirect = desc->indirect || desc->suboffsets[d] >= 0;
        if (desc->suboffsets[d] < 0 && !choose_rarely(from, 4))
            continue;
        desc->strides[d] = choose(from, -1, 2) * unit;
        if (d && choose_rarely(from, 16)) /* a sum that wraps around must not look valid */
            desc->strides[d] = case_extreme(from);
        else if (desc->strides[d] < 0 && n > 1)
            desc->offset += (uint64_t)(-desc->strides[d] * (n - 1));
    }
    return (uint64_t)choose(from, 0, 255) | 0xc0;
}

static void case_tell(struct view_case *c)
{
    struct story *s = &c->story;
    const struct view_desc *d = &c->desc;
    tell(s, " size %" PRIu64 " format %s offset %" PRIu64, c->memory.size, d->item->text,
         d->offset);
    uint32_t n = d->ndim > SHMVIEW_MAX_NDIM ? SHMVIEW_MAX_NDIM : d->ndim;
    tell_list(s, " shape", d->shape, n);
    tell_list(s, " strides", d->strides, n);
    if (d->indirect)
        tell_list(s, " suboffsets", d->suboffsets, n);
    tell(s, "%s ndim %u", d->read_only ? " read-only" : "", d->ndim);
}

void case_init(struct view_case *c, struct choices *from)
{
    static const uint8_t dimensions[] = {1, 2, 2, 3, 3, 1, 0, 4, 2, 3, 5, 6, 1, 7, 8, 9};
    static const uint8_t lengths[] = {2, 3, 1, 4, 2, 3, 0, 5, 2, 2, 1, 3, 6, 2, 1, 2};
    memset(c, 0, sizeof *c);
    struct view_desc *desc = &c->desc;
    desc->item = case_format(c, from, 64);
    desc->ndim = dimensions[choose(from, 0, 15)];
    desc->read_only = choose_rarely(from, 4);
    for (uint32_t d = 0; d < SHMVIEW_MAX_NDIM; d++) {
        desc->suboffsets[d] = -1;
        desc->shape[d] = d < desc->ndim ? lengths[choose(from, 0, desc->ndim > 4 ? 3 : 15)] : 0;
    }
    bool is_too_deep = desc->ndim > SHMVIEW_MAX_NDIM;
    desc->ndim = is_too_deep ? SHMVIEW_MAX_NDIM : desc->ndim;
    int64_t kind = choose(from, 0, 7);
    uint64_t size = kind < 4   ? desc_fit(desc, from)
                    : kind < 6 ? desc_lead(desc, from)
                               : desc_scatter(desc, from);
    desc->ndim += is_too_deep;
    memory_init(&c->memory, size);
    memory_fill(&c->memory, from, &c->story);
    case_tell(c);
}

void case_deinit(struct view_case *c)
{
    formats_deinit(&c->formats);
    free(c->memory.bytes);
}
