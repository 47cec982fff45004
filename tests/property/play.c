/* SPDX-License-Identifier: Apache-2.0 */
#include "play.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <shmview/error.h>

#include "mirror.h"

#define MAX_MOVES 6

bool play_differs(struct play *play, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(play->wrong, sizeof play->wrong, format, arguments);
    va_end(arguments);
    return false;
}

bool play_agrees(struct play *play, verdict expected, int r, const struct view_fault *fault)
{
    if (r == 0)
        return expected & ACCEPTED
                   ? true
                   : play_differs(play, "accepted, but wrong (0x%" PRIx64 ")", expected);
    size_t n = strnlen(fault->text, sizeof fault->text);
    if (n == 0 || n == sizeof fault->text)
        return play_differs(play, "refused without a text");
    if (r != -1 || fault->error < 1 || fault->error > 63)
        return play_differs(play, "refused as %d, error %d", r, (int)fault->error);
    if (expected & (verdict)1 << fault->error)
        return true;
    return play_differs(play, "refused with error %d (%s), but 0x%" PRIx64 " is right",
                        (int)fault->error, fault->text, expected);
}

/* --- Locating ------------------------------------------------------------ */

#define UNTOUCHED 0x5a5a5a5a5a5a5a5a

static bool locate(struct play *play, const int64_t *index, verdict expected, wide at)
{
    const struct memory *memory = &play->c.memory;
    struct view_fault fault = {0};
    uint64_t found = UNTOUCHED;
    int r = view_locate(&play->c.desc, memory->bytes, memory->size, index, &found, &fault);
    if (!play_agrees(play, expected, r, &fault)) {
        tell_list(&play->c.story, "; locate", index, play->c.desc.ndim);
        return false;
    }
    if (r == 0 ? (wide)found != at : found != UNTOUCHED) {
        tell_list(&play->c.story, "; locate", index, play->c.desc.ndim);
        return play_differs(play, "found at %" PRIu64 ", not %" PRId64, found, (int64_t)at);
    }
    return true;
}

/* Locates one element on either side of each dimension, which must fail. */
static bool locate_outside(struct play *play)
{
    const struct model *m = play->now;
    for (uint32_t d = 0; d < 2 * m->ndim; d++) {
        int64_t index[SHMVIEW_MAX_NDIM] = {0};
        index[d / 2] = d % 2 ? -1 : m->shape[d / 2];
        if (!locate(play, index, REFUSED(BOUNDS) | (m->is_indirect ? REFUSED(MISALIGNED) : 0), 0))
            return false;
    }
    return true;
}

static bool locate_all(struct play *play)
{
    const struct model *m = play->now;
    int64_t index[SHMVIEW_MAX_NDIM] = {0};
    for (size_t i = 0; i < m->n; i++, index_next(index, m->shape, m->ndim)) {
        verdict errors = place_errors(&m->places[i], m->itemsize, m->align, play->c.memory.size);
        if (!locate(play, index, errors ? errors : ACCEPTED, m->places[i].at))
            return false;
        play->n_found += m->is_indirect && !errors;
    }
    return locate_outside(play);
}

/* --- Comparing ----------------------------------------------------------- */

static bool compare_shape(struct play *play)
{
    const struct view_desc *desc = &play->c.desc;
    const struct model *m = play->now;
    if (desc->ndim != m->ndim || memcmp(desc->shape, m->shape, m->ndim * sizeof *m->shape))
        return play_differs(play, "the shape is wrong: not %u dimensions of %" PRId64 "...",
                            m->ndim, m->shape[0]);
    if (desc->read_only != m->is_read_only)
        return play_differs(play, "read_only is %d", desc->read_only);
    if (desc->indirect != m->is_indirect)
        return play_differs(play, "indirect is %d", desc->indirect);
    if (desc->item->itemsize != m->itemsize || desc->item->align != m->align)
        return play_differs(play, "the element is %s of %u bytes", desc->item->text,
                            desc->item->itemsize);
    return true;
}

/* Checks that the strides of the description lead to the places of the model. */
static bool compare_places(struct play *play)
{
    const struct model *m = play->now;
    int64_t index[SHMVIEW_MAX_NDIM] = {0};
    for (size_t i = 0; i < m->n; i++, index_next(index, m->shape, m->ndim)) {
        struct place is = place_find(&play->c.desc, &play->c.memory, index);
        const struct place *want = &m->places[i];
        if (!is.lost == !want->lost && (is.lost || is.at == want->at))
            continue;
        tell_list(&play->c.story, "; element", index, m->ndim);
        return play_differs(play, "lies at %" PRId64 ", not %" PRId64, (int64_t)is.at,
                            (int64_t)want->at);
    }
    return true;
}

static bool compare_contiguity(struct play *play)
{
    static const char orders[] = "CFAX\0c";
    for (size_t i = 0; i < sizeof orders && play->now->has_list; i++) {
        bool is = view_is_contiguous(&play->c.desc, orders[i]);
        if (is != model_is_contiguous(play->now, orders[i]))
            return play_differs(play, "contiguous in order '%c': %d", orders[i], is);
    }
    return true;
}

bool play_compare(struct play *play)
{
    const struct model *m = play->now;
    struct view_fault fault = {0};
    uint64_t nbytes = UNTOUCHED;
    int r = view_check(&play->c.desc, play->c.memory.size, &nbytes, &fault);
    if (r)
        return play_differs(play, "does not hold: %s", fault.text);
    if ((wide)nbytes != shape_product(m->shape, m->ndim, false) * m->itemsize)
        return play_differs(play, "nbytes is %" PRIu64, nbytes);
    return compare_shape(play) && compare_places(play) && compare_contiguity(play) &&
           locate_all(play) && mirror_ask(play);
}

/* --- From the beginning -------------------------------------------------- */

/* Checks the description for the size of its segment, and for 8 and 1 bytes less and 1 more. The
 * size of the case comes last, because play->holds keeps its result. */
static bool play_check(struct play *play)
{
    static const int sizes[] = {-8, -1, 1, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct memory memory = play->c.memory;
        struct view_fault fault = {0};
        uint64_t nbytes = UNTOUCHED;
        memory.size += (uint64_t)sizes[i];
        if (memory.size > play->c.memory.size + 1)
            continue;
        int r = view_check(&play->c.desc, memory.size, &nbytes, &fault);
        play->holds = r == 0;
        if (sizes[i] == 0 && !mirror_make(play, r, &fault))
            return false;
        if (r && nbytes != UNTOUCHED)
            return play_differs(play, "nbytes is written");
        if (play_agrees(play, model_check(&play->c.desc, &memory), r, &fault))
            continue;
        tell(&play->c.story, "; check of %" PRIu64 " bytes", memory.size);
        return false;
    }
    return true;
}

/* Checks strides without gaps by their definition: each is the size of all that lies within one
 * step. */
static bool play_strides(struct play *play, char order)
{
    const struct view_desc *desc = &play->c.desc;
    struct view_fault fault = {0};
    int64_t strides[SHMVIEW_MAX_NDIM];
    verdict expected = ACCEPTED;
    if (desc->ndim > SHMVIEW_MAX_NDIM)
        return true;
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (desc->shape[d] < 0)
            expected = REFUSED(INVALID);
    if (expected == ACCEPTED &&
        shape_product(desc->shape, desc->ndim, true) * desc->item->itemsize > INT64_MAX)
        expected = REFUSED(OVERFLOW);
    int r = view_strides(desc->ndim, desc->shape, desc->item->itemsize, order, strides, &fault);
    if (!play_agrees(play, expected, r, &fault)) {
        tell(&play->c.story, "; strides in order %c", order);
        return false;
    }
    if (r || shape_product(desc->shape, desc->ndim, false) == 0)
        return true;
    for (uint32_t d = 0; d < desc->ndim; d++) {
        const int64_t *within = order == 'C' ? desc->shape + d + 1 : desc->shape;
        uint32_t n = order == 'C' ? desc->ndim - 1 - d : d;
        if (desc->shape[d] > 1 &&
            strides[d] != shape_product(within, n, false) * desc->item->itemsize)
            return play_differs(play, "stride %u of order '%c' is %" PRId64, d, order, strides[d]);
    }
    return true;
}

/* Casts a part of the segment to the format of the case. */
static bool play_cast(struct play *play, struct choices *from)
{
    struct view_desc desc = {.item = play->c.desc.item};
    uint64_t size = (uint64_t)choose(from, 0, 40), offset = (uint64_t)choose(from, 0, 41);
    uint64_t nbytes = choose_rarely(from, 4) ? UINT64_MAX : (uint64_t)case_number(from, 0, 41);
    uint64_t rest = offset < size ? size - offset : 0, n = nbytes == UINT64_MAX ? rest : nbytes;
    struct view_fault fault = {0};
    verdict errors = offset > size || n > rest ? REFUSED(BOUNDS) : 0;
    if (n % desc.item->itemsize)
        errors |= REFUSED(ILL_SIZED);
    if (offset % desc.item->align)
        errors |= REFUSED(MISALIGNED);
    if (n > INT64_MAX)
        errors |= REFUSED(OVERFLOW);
    int r = view_cast(&desc, offset, nbytes, size, &fault);
    bool is_right = r || (desc.ndim == 1 && desc.offset == offset && !desc.indirect &&
                          (uint64_t)desc.shape[0] == n / desc.item->itemsize &&
                          desc.strides[0] == desc.item->itemsize);
    if (play_agrees(play, errors ? errors : ACCEPTED, r, &fault) && is_right)
        return true;
    tell(&play->c.story, "; cast of %" PRIu64 " bytes from %" PRIu64 " on, of %" PRIu64, nbytes,
         offset, size);
    return play->wrong[0] ? false : play_differs(play, "another view is made");
}

bool play_case(struct play *play, struct choices *from)
{
    play->holds = false;
    play->wrong[0] = '\0';
    play->segment = NULL;
    play->n_found = 0;
    play->now = &play->models[0];
    play->next = &play->models[1];
    case_init(&play->c, from);
    play->is_indirect = play->c.desc.indirect;
    if (!play_strides(play, 'C') || !play_strides(play, 'F') || !play_check(play) ||
        !play_cast(play, from))
        return false;
    if (!play->holds)
        return true;
    model_fill(play->now, &play->c.desc, &play->c.memory);
    if (!play_compare(play))
        return false;
    for (int64_t n = choose(from, 3, MAX_MOVES); n > 0; n--)
        if (!play_move(play, from))
            return false;
    return true;
}

void play_deinit(struct play *play)
{
    mirror_deinit(play);
    case_deinit(&play->c);
}
