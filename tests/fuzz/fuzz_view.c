/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes as a description of a view, with any numbers, and a segment. view_check() must
 * decide as the model does, and view_locate() must agree with it about every corner of a view that
 * was accepted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "property/choices.h"
#include "property/model.h"

struct trial {
    struct formats formats;
    struct view_desc desc;
    struct memory memory;
};

static void die(const struct trial *t, const char *what, const char *text)
{
    const struct view_desc *d = &t->desc;
    fprintf(stderr, "%s (%s): size %" PRIu64 " format %s offset %" PRIu64 " ndim %u:", what, text,
            t->memory.size, d->item->text, d->offset, d->ndim);
    for (uint32_t i = 0; i < d->ndim && i < SHMVIEW_MAX_NDIM; i++)
        fprintf(stderr, " %" PRId64 "*(%" PRId64 ")[%" PRId64 "]", d->shape[i], d->strides[i],
                d->indirect ? d->suboffsets[i] : -1);
    fprintf(stderr, "\n");
    abort();
}

/* Returns a small number, or now and then any number. */
static int64_t number(struct choices *from)
{
    uint8_t head = choose_byte(from);
    if (head < 0xf0)
        return (int64_t)head - 0x40;
    return (int64_t)(choose_word(from) >> (head & 7) * 8);
}

static void trial_init(struct trial *t, struct choices *from)
{
    static const char *const formats[] = {"B", "h",  "i",           "d",    "g",       "3f",
                                          "x", "5s", "T{b:a:d:b:}", "=bid", "(2,3)>h", "Zd"};
    struct format_fault fault;
    memset(t, 0, sizeof *t);
    t->desc.item = formats_get(&t->formats, formats[choose(from, 0, 11)], &fault);
    t->desc.ndim = (uint32_t)choose(from, 0, 9);
    t->desc.offset = (uint64_t)number(from);
    bool leads = choose_byte(from) & 1;
    for (uint32_t d = 0; d < t->desc.ndim && d < SHMVIEW_MAX_NDIM; d++) {
        t->desc.shape[d] = number(from);
        t->desc.strides[d] = number(from);
        t->desc.suboffsets[d] = leads ? number(from) : -1;
        t->desc.indirect = t->desc.indirect || t->desc.suboffsets[d] >= 0;
    }
    t->memory.size = (uint64_t)number(from);
}

/* Fills the segment with arbitrary bytes if the view has suboffsets. No other view is read. */
static void memory_fill(struct trial *t, struct choices *from)
{
    if (!t->desc.indirect)
        return;
    t->memory.size %= 512;
    void *bytes = NULL;
    if (posix_memalign(&bytes, 64, t->memory.size ? t->memory.size : 1))
        abort();
    t->memory.bytes = bytes;
    for (uint64_t at = 0; at < t->memory.size; at++)
        t->memory.bytes[at] = choose_byte(from);
}

static void locate_corners(const struct trial *t)
{
    const struct view_desc *desc = &t->desc;
    for (uint32_t corner = 0; corner < 1u << desc->ndim; corner++) {
        int64_t index[SHMVIEW_MAX_NDIM] = {0};
        struct view_fault fault = {0};
        uint64_t at = 0;
        for (uint32_t d = 0; d < desc->ndim; d++)
            index[d] = corner >> d & 1 ? desc->shape[d] - 1 : 0;
        int r = view_locate(desc, t->memory.bytes, t->memory.size, index, &at, &fault);
        struct place wanted = place_find(desc, &t->memory, index);
        verdict errors =
            place_errors(&wanted, desc->item->itemsize, desc->item->align, t->memory.size);
        if (r == 0 && (errors || wanted.at != (wide)at))
            die(t, "found where it is not", "");
        if (r && (!(errors & (verdict)1 << fault.error) || !fault.text[0]))
            die(t, "not found", fault.text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trial t;
    struct choices from = {.bytes = data, .n = size};
    struct view_fault fault = {0};
    uint64_t nbytes = 0;
    trial_init(&t, &from);
    memory_fill(&t, &from);
    int r = view_check(&t.desc, t.memory.size, &nbytes, &fault);
    verdict expected = t.memory.size > INT64_MAX ? REFUSED(OVERFLOW) | REFUSED(INVALID)
                                                 : model_check(&t.desc, &t.memory);
    if (t.memory.size > INT64_MAX && t.desc.ndim <= SHMVIEW_MAX_NDIM)
        expected |= model_check(&t.desc, &t.memory) & ~ACCEPTED;
    if (!(expected >> (r ? fault.error : 0) & 1))
        die(&t, r ? "refused" : "accepted", fault.text);
    if (r == 0 && nbytes != shape_product(t.desc.shape, t.desc.ndim, false) * t.desc.item->itemsize)
        die(&t, "wrong number of bytes", "");
    if (r == 0 && nbytes > 0)
        locate_corners(&t);
    formats_deinit(&t.formats);
    free(t.memory.bytes);
    return 0;
}
