/* SPDX-License-Identifier: Apache-2.0 */
#include "play.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <shmview/view.h>

#include "common/views/view_ops.h"
#include "mirror.h"

/* The result of one operation in the library, and the results that are correct. */
struct move {
    verdict expected;
    int r, public_r;
    struct view_fault fault;
};

static struct origin origin_of(const struct play *play)
{
    return (struct origin){play->now, &play->c.desc, &play->c.memory};
}

/* --- Shapes -------------------------------------------------------------- */

/* Writes n as a product of ndim lengths. */
static void shape_split(struct choices *from, int64_t n, uint32_t ndim, int64_t *ret_shape)
{
    for (uint32_t d = 0; d + 1 < ndim; d++) {
        int64_t part = choose(from, 1, 6);
        while (part > 1 && n % part)
            part--;
        ret_shape[d] = part;
        n = n ? n / part : 0;
    }
    if (ndim)
        ret_shape[ndim - 1] = n;
}

static uint32_t shape_choose(const struct model *m, struct choices *from, int64_t *ret_shape)
{
    static const uint8_t dimensions[] = {1, 2, 3, 2, 3, 4, 0, 8};
    uint32_t ndim = dimensions[choose(from, 0, 7)];
    wide n = shape_product(m->shape, m->ndim, false);
    memset(ret_shape, 0, SHMVIEW_MAX_NDIM * sizeof *ret_shape);
    shape_split(from, n > INT64_MAX ? INT64_MAX : (int64_t)n, ndim, ret_shape);
    for (uint32_t d = 0; d < ndim; d++) {
        if (choose_rarely(from, 8))
            ret_shape[d] = -1;
        if (choose_rarely(from, 24))
            ret_shape[d] = case_number(from, -2, 6);
        uint32_t other = (uint32_t)choose(from, 0, ndim - 1);
        int64_t swapped = ret_shape[d];
        ret_shape[d] = ret_shape[other];
        ret_shape[other] = swapped;
    }
    if (n % 4 == 0 && choose_rarely(from, 32)) { /* the product is n modulo 2^64 */
        ret_shape[0] = 4;
        ret_shape[1] = ((int64_t)1 << 62) + (int64_t)(n / 4);
        return 2;
    }
    return choose_rarely(from, 64) ? 9 : ndim;
}

/* --- Moves --------------------------------------------------------------- */

static void do_recast(struct play *play, struct choices *from, struct move *move)
{
    struct origin of = origin_of(play);
    struct shmview_view *view = &play->view;
    const struct format *item = case_format(&play->c, from, 32);
    tell(&play->c.story, "; recast %s", item->text);
    move->expected = model_recast(&of, item, play->next);
    move->r = view_recast(&play->c.desc, item, &move->fault);
    move->public_r = shmview_view_recast(view, item->text, view);
    if (move->r == 0 && play->c.desc.item != item)
        play_differs(play, "another format is in its place");
}

static void do_reshape(struct play *play, struct choices *from, struct move *move)
{
    struct origin of = origin_of(play);
    struct shmview_view *view = &play->view;
    int64_t shape[SHMVIEW_MAX_NDIM];
    uint32_t ndim = shape_choose(play->now, from, shape);
    tell_list(&play->c.story, "; reshape", shape, ndim > SHMVIEW_MAX_NDIM ? 8 : ndim);
    tell(&play->c.story, " ndim %u", ndim);
    move->expected = model_reshape(&of, ndim, shape, play->next);
    move->r = view_reshape(&play->c.desc, ndim, shape, &move->fault);
    move->public_r = shmview_view_reshape(view, ndim, shape, view);
}

static int64_t bound_choose(struct choices *from, int64_t n)
{
    int64_t most = n < 100 ? n + 2 : 100;
    if (choose_rarely(from, 4))
        return INT64_MIN;
    return case_number(from, -most, most);
}

static uint32_t dimension_choose(const struct model *m, struct choices *from)
{
    int64_t beyond = m->ndim == 0 || choose_rarely(from, 32);
    return choose_rarely(from, 200) ? UINT32_MAX : (uint32_t)choose(from, 0, m->ndim - 1 + beyond);
}

static void do_slice(struct play *play, struct choices *from, struct move *move)
{
    static const int8_t steps[] = {1, -1, 2, -2, 1, 3, -3, 0};
    struct origin of = origin_of(play);
    struct shmview_view *view = &play->view;
    uint32_t d = dimension_choose(play->now, from);
    int64_t n = d < play->now->ndim ? play->now->shape[d] : 3;
    int64_t start = bound_choose(from, n), stop = bound_choose(from, n);
    int64_t step = steps[choose(from, 0, choose_rarely(from, 8) ? 7 : 6)];
    if (choose_rarely(from, 16))
        step = case_number(from, -5, 5);
    tell(&play->c.story, "; slice of %u %" PRId64 ":%" PRId64 ":%" PRId64, d, start, stop, step);
    move->expected = model_slice(&of, d, start, stop, step, play->next);
    move->r = view_slice(&play->c.desc, d, start, stop, step, &move->fault);
    move->public_r = shmview_view_slice(view, d, start, stop, step, view);
}

static void do_index(struct play *play, struct choices *from, struct move *move)
{
    struct origin of = origin_of(play);
    struct shmview_view *view = &play->view;
    uint32_t d = dimension_choose(play->now, from);
    int64_t n = d < play->now->ndim ? play->now->shape[d] : 3, most = n < 100 ? n : 100;
    int64_t i = choose_rarely(from, 8) ? case_number(from, -most - 1, most)
                                       : choose(from, most ? -most : 0, most ? most - 1 : 0);
    tell(&play->c.story, "; index of %u %" PRId64, d, i);
    move->expected = model_index(&of, d, i, play->next);
    move->r =
        view_index(&play->c.desc, d, i, play->c.memory.bytes, play->c.memory.size, &move->fault);
    move->public_r = shmview_view_index(view, d, i, view);
}

static void do_transpose(struct play *play, struct choices *from, struct move *move)
{
    struct origin of = origin_of(play);
    struct shmview_view *view = &play->view;
    uint32_t axes[SHMVIEW_MAX_NDIM] = {0};
    uint32_t ndim = play->now->ndim;
    bool is_reversal = choose_rarely(from, 4);
    for (uint32_t d = 0; d < ndim; d++)
        axes[d] = d;
    for (uint32_t d = 0; d < ndim; d++) {
        uint32_t other = (uint32_t)choose(from, 0, ndim - 1), swapped = axes[d];
        axes[d] = axes[other];
        axes[other] = swapped;
    }
    if (ndim && choose_rarely(from, 16))
        axes[choose(from, 0, ndim - 1)] = (uint32_t)case_number(from, 0, ndim);
    tell(&play->c.story, "; transpose%s", is_reversal ? "" : " to");
    for (uint32_t d = 0; d < ndim && !is_reversal; d++)
        tell(&play->c.story, " %u", axes[d]);
    move->expected = model_transpose(&of, is_reversal ? NULL : axes, play->next);
    move->r = view_transpose(&play->c.desc, is_reversal ? NULL : axes, &move->fault);
    move->public_r = shmview_view_transpose(view, is_reversal ? NULL : axes, view);
}

static void do_broadcast(struct play *play, struct choices *from, struct move *move)
{
    struct origin of = origin_of(play);
    struct shmview_view *view = &play->view;
    const struct model *m = play->now;
    int64_t shape[SHMVIEW_MAX_NDIM] = {0};
    uint32_t added = (uint32_t)choose(from, 0, 2), ndim = m->ndim + added;
    if (choose_rarely(from, 32))
        ndim = (uint32_t)choose(from, 0, 9);
    for (uint32_t d = 0; d < ndim && d < SHMVIEW_MAX_NDIM; d++) {
        int64_t was = d < added || d - added >= m->ndim ? 1 : m->shape[d - added];
        shape[d] = was == 1 ? case_number(from, 0, 3) : was;
        if (choose_rarely(from, 32))
            shape[d] = case_number(from, -1, 4);
    }
    tell_list(&play->c.story, "; broadcast", shape, ndim > SHMVIEW_MAX_NDIM ? 8 : ndim);
    tell(&play->c.story, " ndim %u", ndim);
    move->expected = model_broadcast(&of, ndim, shape, play->next);
    move->r = view_broadcast(&play->c.desc, ndim, shape, &move->fault);
    move->public_r = shmview_view_broadcast(view, ndim, shape, view);
}

/* --- Fields -------------------------------------------------------------- */

/* Returns the component with this name, which may be NULL, or UINT32_MAX if there is none. */
static uint32_t field_find(const struct format *item, const char *name)
{
    uint32_t found = UINT32_MAX, n_direct = 0;
    for (uint32_t i = 0; i < item->n_nodes; i++) {
        const struct format_node *node = &item->nodes[i];
        if (node->depth > 0)
            continue;
        n_direct++;
        bool is_it = name ? node->name_bytes && node->name_bytes == strlen(name) &&
                                memcmp(item->text + node->name_at, name, node->name_bytes) == 0
                          : node->name_bytes == 0;
        if (is_it && found == UINT32_MAX)
            found = i;
    }
    return name || n_direct == 1 ? found : UINT32_MAX;
}

static const char *name_choose(const struct format *item, struct choices *from, char *buffer,
                               size_t bytes)
{
    uint32_t at = item->n_nodes ? (uint32_t)choose(from, 0, item->n_nodes % 256) : 0;
    buffer[0] = '\0';
    if (at >= item->n_nodes)
        return choose_rarely(from, 2) ? NULL : buffer;
    const struct format_node *node = &item->nodes[at];
    if (node->name_bytes == 0)
        return NULL;
    snprintf(buffer, bytes, "%.*s%s", node->name_bytes, item->text + node->name_at,
             choose_rarely(from, 32) ? "?" : "");
    return buffer;
}

static void do_field(struct play *play, struct choices *from, struct move *move)
{
    struct origin of = origin_of(play);
    struct shmview_view *view = &play->view;
    char buffer[SHMVIEW_FORMAT_BYTES];
    const struct format *item = play->c.desc.item;
    const char *name = name_choose(item, from, buffer, sizeof buffer);
    uint32_t node = field_find(item, name);
    const struct format *wanted = NULL;
    tell(&play->c.story, "; field %s", name ? name : "NULL");
    move->expected = REFUSED(NOT_FOUND);
    if (node != UINT32_MAX) {
        wanted = formats_get_node(&play->c.formats, item, node);
        if (wanted)
            move->expected = model_field(&of, node, wanted, play->next);
    }
    move->r = view_field(&play->c.desc, &play->c.formats, name, &move->fault);
    move->public_r = shmview_view_field(view, name, view);
    if (move->r == 0 && wanted && strcmp(play->c.desc.item->text, wanted->text) != 0)
        play_differs(play, "the field is %s, not %s", play->c.desc.item->text, wanted->text);
}

/* --- One move ------------------------------------------------------------ */

static enum move_kind kind_choose(const struct play *play, struct choices *from)
{
    static const uint8_t kinds[] = {SLICE, INDEX,  RESHAPE, RECAST, TRANSPOSE, BROADCAST, RESHAPE,
                                    SLICE, RECAST, RESHAPE, SLICE,  TRANSPOSE, FIELD,     RECAST};
    if (play->c.desc.item->n_nodes > 1 && choose_rarely(from, 3))
        return FIELD;
    return kinds[choose(from, 0, sizeof kinds - 1)];
}

bool play_move(struct play *play, struct choices *from)
{
    static void (*const moves[N_MOVES])(struct play *, struct choices *, struct move *) = {
        [SLICE] = do_slice,   [INDEX] = do_index,         [RESHAPE] = do_reshape,
        [RECAST] = do_recast, [TRANSPOSE] = do_transpose, [BROADCAST] = do_broadcast,
        [FIELD] = do_field};
    struct view_desc before;
    struct move move = {0};
    enum move_kind kind = kind_choose(play, from);
    memcpy(&before, &play->c.desc, sizeof before);
    moves[kind](play, from, &move);
    if (play->wrong[0] || !play_agrees(play, move.expected, move.r, &move.fault))
        return false;
    if (move.r) {
        play->refused[kind]++;
        tell(&play->c.story, " (no)");
        if (memcmp(&before, &play->c.desc, sizeof before) != 0)
            return play_differs(play, "refused, but changed");
        return mirror_agrees(play, move.public_r, move.r, &move.fault);
    }
    play->accepted[kind]++;
    struct model *was = play->now;
    play->now = play->next;
    play->next = was;
    return mirror_agrees(play, move.public_r, move.r, &move.fault) && play_compare(play);
}
