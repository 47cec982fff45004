/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of walks, the test for overlap, and cursors; see walk.h. */
#include "client/whole/walk.h"

#include <inttypes.h>

/* --- The order of a walk ------------------------------------------------- */

void walk_init(struct walk *walk, const struct shmview_view *a, const struct shmview_view *b)
{
    const struct shmview_view *views[2] = {a, b};
    walk->ndim = 0;
    walk->n_views = b ? 2 : 1;
    for (unsigned v = 0; v < walk->n_views; v++) {
        walk->itemsize[v] = views[v]->itemsize;
        walk->data[v] = views[v]->data;
    }
    for (uint32_t d = 0; d < a->ndim; d++) {
        if (a->shape[d] == 1)
            continue;
        for (unsigned v = 0; v < walk->n_views; v++)
            walk->strides[v][walk->ndim] = views[v]->strides[d];
        walk->shape[walk->ndim++] = a->shape[d];
    }
    if (walk->ndim == 0) {
        walk->ndim = 1;
        walk->shape[0] = 1;
        for (unsigned v = 0; v < walk->n_views; v++)
            walk->strides[v][0] = (ptrdiff_t)walk->itemsize[v];
    }
}

/* Whether dimension d should be outside dimension e: it has the longer steps in the first view, or
 * the same steps there and longer ones in the second. */
static bool is_outer(const struct walk *walk, uint32_t d, uint32_t e)
{
    for (unsigned v = 0; v < walk->n_views; v++) {
        ptrdiff_t a = walk->strides[v][d], b = walk->strides[v][e];
        a = a < 0 ? -a : a;
        b = b < 0 ? -b : b;
        if (a != b)
            return a > b;
    }
    return false;
}

static void swap_dimensions(struct walk *walk, uint32_t d, uint32_t e)
{
    ptrdiff_t n = walk->shape[d];
    walk->shape[d] = walk->shape[e];
    walk->shape[e] = n;
    for (unsigned v = 0; v < walk->n_views; v++) {
        ptrdiff_t stride = walk->strides[v][d];
        walk->strides[v][d] = walk->strides[v][e];
        walk->strides[v][e] = stride;
    }
}

/* A dimension with a negative stride in the first view is walked from its other end in both views.
 * Insertion sort, because there are at most 8 dimensions, and it keeps the order of equal ones. */
void walk_sort(struct walk *walk)
{
    for (uint32_t d = 0; d < walk->ndim; d++) {
        bool down = walk->strides[0][d] < 0;
        for (unsigned v = 0; down && v < walk->n_views; v++) {
            walk->data[v] += (walk->shape[d] - 1) * walk->strides[v][d];
            walk->strides[v][d] = -walk->strides[v][d];
        }
    }
    for (uint32_t d = 1; d < walk->ndim; d++)
        for (uint32_t e = d; e > 0 && is_outer(walk, e, e - 1); e--)
            swap_dimensions(walk, e, e - 1);
}

/* Whether a step of the outer dimension continues where the inner one ends, in every view. */
static bool can_merge(const struct walk *walk, uint32_t outer, uint32_t inner)
{
    for (unsigned v = 0; v < walk->n_views; v++)
        if (walk->strides[v][outer] != walk->strides[v][inner] * walk->shape[inner])
            return false;
    return true;
}

void walk_merge(struct walk *walk)
{
    uint32_t last = 0; /* the last dimension that is kept */
    for (uint32_t d = 1; d < walk->ndim; d++) {
        if (can_merge(walk, last, d))
            walk->shape[d] *= walk->shape[last];
        else
            last++;
        walk->shape[last] = walk->shape[d];
        for (unsigned v = 0; v < walk->n_views; v++)
            walk->strides[v][last] = walk->strides[v][d];
    }
    walk->ndim = last + 1;
}

bool walk_is_contiguous(const struct walk *walk, unsigned view)
{
    return walk->strides[view][walk->ndim - 1] == (ptrdiff_t)walk->itemsize[view];
}

void walk_planes(const struct walk *walk, void (*run)(const struct plane *plane, void *arg),
                 void *arg)
{
    struct plane p = {.n = {1, walk->shape[walk->ndim - 1]}};
    uint32_t outer = walk->ndim < 2 ? 0 : walk->ndim - 2; /* dimensions outside of a plane */
    bool is_pair = walk->n_views == 2;
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0}, offsets[2] = {0};
    for (uint32_t d = outer; d < walk->ndim; d++) {
        uint32_t at = 2 - (walk->ndim - d);
        p.n[at] = walk->shape[d];
        p.to_strides[at] = walk->strides[0][d];
        p.from_strides[at] = is_pair ? walk->strides[1][d] : 0;
    }
    for (;;) {
        p.to = walk->data[0] + offsets[0];
        p.from = is_pair ? walk->data[1] + offsets[1] : NULL;
        run(&p, arg);
        uint32_t d = outer;
        while (d > 0 && ++index[d - 1] == walk->shape[d - 1])
            index[--d] = 0;
        if (d == 0)
            return;
        for (unsigned v = 0; v < walk->n_views; v++) {
            offsets[v] += walk->strides[v][d - 1];
            for (uint32_t e = d; e < outer; e++)
                offsets[v] -= walk->strides[v][e] * (walk->shape[e] - 1);
        }
    }
}

/* --- Overlap ------------------------------------------------------------- */

static ptrdiff_t gcd(ptrdiff_t a, ptrdiff_t b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        ptrdiff_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The bytes that the dimensions from inner on reach from one element, relative to it: from low up
 * to, but not including, high. */
struct extent {
    ptrdiff_t low, high;
};

static struct extent extent_of(const struct walk *walk, unsigned view, uint32_t inner)
{
    struct extent e = {0, (ptrdiff_t)walk->itemsize[view]};
    for (uint32_t d = inner; d < walk->ndim; d++) {
        ptrdiff_t reach = (walk->shape[d] - 1) * walk->strides[view][d];
        e.low += reach < 0 ? reach : 0;
        e.high += reach > 0 ? reach : 0;
    }
    return e;
}

/* Whether the two views are apart, judged by blocks. A block is what the inner dimensions reach;
 * the outer dimensions repeat it. All their steps are multiples of step, so each view has its
 * blocks at one place modulo step. If these places do not meet, no bytes do. This finds, for
 * example, that two columns of one matrix are apart. */
static bool are_apart(const struct walk *walk, uint32_t inner, ptrdiff_t distance)
{
    struct extent a = extent_of(walk, 0, inner), b = extent_of(walk, 1, inner);
    ptrdiff_t step = 0;
    b.low += distance;
    b.high += distance;
    for (uint32_t d = 0; d < inner; d++)
        step = gcd(gcd(step, walk->strides[0][d]), walk->strides[1][d]);
    if (step == 0)
        return a.high <= b.low || b.high <= a.low;
    ptrdiff_t gap = (b.low - a.low) % step;
    gap += gap < 0 ? step : 0;
    return gap >= a.high - a.low && step - gap >= b.high - b.low;
}

bool walk_overlaps(const struct walk *walk)
{
    /* subtracted as integers, because the views may be of different objects */
    ptrdiff_t distance = (ptrdiff_t)((uintptr_t)walk->data[1] - (uintptr_t)walk->data[0]);
    /* try each division into inner and outer dimensions; one that separates them is enough */
    for (uint32_t inner = 0; inner <= walk->ndim; inner++)
        if (are_apart(walk, inner, distance))
            return false;
    return true;
}

/* --- Elements in a row --------------------------------------------------- */

/* Merges the dimensions for this view alone, because it may have longer runs than both views
 * together. */
void cursor_init(struct cursor *cursor, const struct walk *walk, unsigned view)
{
    struct walk own = {
        .ndim = walk->ndim,
        .n_views = 1,
        .itemsize = {walk->itemsize[view]},
        .data = {walk->data[view]},
    };
    for (uint32_t d = 0; d < walk->ndim; d++) {
        own.shape[d] = walk->shape[d];
        own.strides[0][d] = walk->strides[view][d];
    }
    walk_merge(&own);
    *cursor = (struct cursor){
        .itemsize = own.itemsize[0],
        .base = own.data[0],
        .stride = own.strides[0][own.ndim - 1],
        .run = own.shape[own.ndim - 1],
        .ndim = own.ndim - 1,
    };
    for (uint32_t d = 0; d < cursor->ndim; d++) {
        cursor->shape[d] = own.shape[d];
        cursor->strides[d] = own.strides[0][d];
    }
}

void cursor_init_view(struct cursor *cursor, const struct shmview_view *view)
{
    if (!(view->flags & SHMVIEW_VIEW_INDIRECT)) {
        struct walk walk;
        walk_init(&walk, view, NULL);
        cursor_init(cursor, &walk, 0);
        return;
    }
    /* if the last dimension has a suboffset, each element must be located: runs have one element */
    uint32_t last = view->ndim - 1;
    bool has_runs = view->suboffsets[last] < 0;
    *cursor = (struct cursor){
        .itemsize = view->itemsize,
        .base = view->segment->data,
        .stride = has_runs ? view->strides[last] : (ptrdiff_t)view->itemsize,
        .run = has_runs ? view->shape[last] : 1,
        .ndim = has_runs ? last : view->ndim,
        .indirect = view,
    };
    for (uint32_t d = 0; d < cursor->ndim; d++)
        cursor->shape[d] = view->shape[d];
}

/* Finds the run at cursor->index, and checks that all of it lies in the segment. view_locate() has
 * checked only its first element. Returns 0 or an error. */
static int locate_run(struct cursor *cursor)
{
    const struct shmview_view *view = cursor->indirect;
    const struct shmview_segment *segment = view->segment;
    struct view_desc desc;
    struct view_fault fault;
    uint64_t offset;
    int64_t reach, last;
    view_describe(view, &desc);
    if (view_locate(&desc, segment->data, segment->size, cursor->index, &offset, &fault))
        return fail_view(NULL, &fault);
    if (__builtin_mul_overflow(cursor->run - 1, cursor->stride, &reach) ||
        __builtin_add_overflow((int64_t)offset, reach, &last) || last < 0 ||
        (uint64_t)last > segment->size - view->itemsize)
        return fail(SHMVIEW_ERR_BOUNDS,
                    "a row of %td elements that begins at byte %" PRIu64
                    " reaches outside the segment's %" PRIu64 " bytes",
                    cursor->run, offset, segment->size);
    cursor->offset = (ptrdiff_t)offset;
    return 0;
}

int cursor_look(struct cursor *cursor)
{
    if (cursor->left)
        return 0;
    for (uint32_t d = cursor->began ? cursor->ndim : 0; d-- > 0;) {
        cursor->offset += cursor->strides[d];
        if (++cursor->index[d] < cursor->shape[d])
            break;
        cursor->offset -= cursor->strides[d] * cursor->shape[d];
        cursor->index[d] = 0;
    }
    cursor->began = true;
    if (cursor->indirect) {
        int r = locate_run(cursor);
        if (r)
            return r;
    }
    cursor->at = cursor->base + cursor->offset;
    cursor->left = (size_t)cursor->run;
    return 0;
}

int cursor_read(struct cursor *cursor, void *to, size_t n)
{
    unsigned char *q = to;
    while (n) {
        int r = cursor_look(cursor);
        if (r)
            return r;
        size_t k = n < cursor->left ? n : cursor->left;
        bytes_gather(q, cursor->at, cursor->stride, k, cursor->itemsize);
        cursor_skip(cursor, k);
        q += k * cursor->itemsize;
        n -= k;
    }
    return 0;
}

int cursor_write(struct cursor *cursor, const void *from, size_t n)
{
    const unsigned char *p = from;
    while (n) {
        int r = cursor_look(cursor);
        if (r)
            return r;
        size_t k = n < cursor->left ? n : cursor->left;
        bytes_scatter(cursor->at, cursor->stride, p, k, cursor->itemsize);
        cursor_skip(cursor, k);
        p += k * cursor->itemsize;
        n -= k;
    }
    return 0;
}
