/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/grid.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SET_WAIT_NS INT64_C(1000000000)
#define SHOWN_BYTES 32 /* of a string or a struct */

/* --- Reading ------------------------------------------------------------- */

struct window {
    const struct grid *grid;
    const struct shmview_view *view;
    unsigned char *bytes; /* of all cells, row by row */
};

/* Sets index to that of a cell. Returns false if there is none: the last row of a wrapped view. */
static bool index_of(const struct grid *g, const struct shmview_view *view, size_t i, size_t j,
                     ptrdiff_t *index)
{
    int64_t row = g->row + (int64_t)i, column = g->column + (int64_t)j;
    if (view->ndim == 2) {
        index[0] = row;
        index[1] = column;
    } else if (view->ndim == 1) {
        index[0] = row * g->wrap + column;
        return column < g->wrap && index[0] < view->shape[0];
    }
    return true;
}

static int copy_window(void *arg)
{
    const struct window *w = arg;
    unsigned char *to = w->bytes;
    for (size_t i = 0; i < w->grid->rows; i++)
        for (size_t j = 0; j < w->grid->columns; j++, to += w->view->itemsize) {
            ptrdiff_t index[2];
            if (!index_of(w->grid, w->view, i, j, index))
                continue;
            int r = shmview_get_bytes(w->view, index, to);
            if (r)
                return r;
        }
    return 0;
}

static void put_bytes(struct text *t, const unsigned char *bytes, size_t n)
{
    text_put(t, "\"");
    for (size_t i = 0; i < n && i < SHOWN_BYTES; i++)
        text_print(t, "%s%02x", i ? " " : "", bytes[i]);
    text_put(t, n > SHOWN_BYTES ? " ...\"" : "\"");
}

/* Returns how many decimal digits make a real number of so many bytes exact. */
static int digits(uint32_t bytes)
{
    return bytes > 8 ? 21 : bytes > 4 ? 17 : 9;
}

/* Writes one element as a JSON string, exactly. */
static void put_element(struct text *t, const struct shmview_view *view, const void *bytes)
{
    struct shmview_value v;
    shmview_value_load(view->dtype, view->itemsize, bytes, &v);
    switch (v.kind) {
    case SHMVIEW_VALUE_BOOL:
        text_put(t, v.i ? "\"true\"" : "\"false\"");
        break;
    case SHMVIEW_VALUE_INT:
        text_print(t, "\"%" PRId64 "\"", v.i);
        break;
    case SHMVIEW_VALUE_UINT:
        text_print(t, "\"%" PRIu64 "\"", v.u);
        break;
    case SHMVIEW_VALUE_REAL:
        text_print(t, "\"%.*Lg\"", digits(view->itemsize), v.z[0]);
        break;
    case SHMVIEW_VALUE_COMPLEX:
        text_print(t, "\"%.*Lg%+.*Lgj\"", digits(view->itemsize / 2), v.z[0],
                   digits(view->itemsize / 2), v.z[1]);
        break;
    case SHMVIEW_VALUE_BYTES:
        text_json_n(t, v.bytes, strnlen(v.bytes, v.n_bytes));
        break;
    default:
        put_bytes(t, bytes, view->itemsize);
    }
}

/* Cuts the window to the view. */
static void cut(struct grid *g, const struct shmview_view *v)
{
    g->all_rows = v->ndim == 2 ? v->shape[0] : 1;
    g->all_columns = v->ndim == 2 ? v->shape[1] : 1;
    if (v->ndim == 1) {
        g->all_columns = least(g->wrap, v->shape[0]);
        g->all_rows = (v->shape[0] + g->wrap - 1) / g->wrap;
    }
    g->row = least(g->row, g->all_rows);
    g->column = least(g->column, g->all_columns);
    g->rows = (size_t)least((int64_t)g->rows, g->all_rows - g->row);
    g->columns = (size_t)least((int64_t)g->columns, g->all_columns - g->column);
}

int grid_read(struct grid *g, struct look *look, struct text *ret)
{
    const struct shmview_view *v = &look->view;
    if (v->ndim > 2) {
        snprintf(look->error, sizeof look->error,
                 "a grid has at most two dimensions, the view has %u: choose a slice", v->ndim);
        return LOOK_WRONG;
    }
    cut(g, v);
    size_t cells = g->rows * g->columns;
    if (cells > GRID_CELLS_MOST || cells * v->itemsize > GRID_BYTES_MOST) {
        snprintf(look->error, sizeof look->error, "a grid has at most %d cells and %d bytes",
                 GRID_CELLS_MOST, GRID_BYTES_MOST);
        return LOOK_WRONG;
    }
    CLEANUP_FREE unsigned char *bytes = calloc(cells * v->itemsize + 1, 1);
    struct window w = {.grid = g, .view = v, .bytes = bytes};
    if (!bytes)
        return -SHMVIEW_ERR_NO_MEMORY;
    int r = look_read(look, copy_window, &w);
    if (r)
        return r;
    text_put(ret, "[");
    for (size_t i = 0; i < g->rows; i++) {
        text_put(ret, i ? ",\n[" : "[");
        for (size_t j = 0; j < g->columns; j++) {
            ptrdiff_t index[2];
            text_put(ret, j ? "," : "");
            if (index_of(g, v, i, j, index))
                put_element(ret, v, bytes + (i * g->columns + j) * v->itemsize);
            else
                text_put(ret, "null");
        }
        text_put(ret, "]");
    }
    text_put(ret, "]");
    return 0;
}

/* --- Setting ------------------------------------------------------------- */

/* A number to store. */
struct change {
    const struct shmview_view *view;
    const ptrdiff_t *index;
    struct shmview_value value;
};

/* Reads a number as exactly as the type needs. Returns false if text is none. */
static bool read_value(const struct shmview_view *view, const char *text, struct shmview_value *ret)
{
    char *end;
    int kind = shmview_dtype_kind(view->dtype);
    *ret = (struct shmview_value){.kind = SHMVIEW_VALUE_REAL};
    errno = 0;
    if (kind == SHMVIEW_VALUE_UINT && text[0] != '-') {
        ret->kind = SHMVIEW_VALUE_UINT;
        ret->u = strtoull(text, &end, 10);
    } else if (kind == SHMVIEW_VALUE_INT || kind == SHMVIEW_VALUE_UINT ||
               kind == SHMVIEW_VALUE_BOOL) {
        ret->kind = SHMVIEW_VALUE_INT;
        ret->i = strtoll(text, &end, 10);
    } else {
        ret->z[0] = strtold(text, &end);
        ret->z[1] = 0;
    }
    return text[0] && end > text && !*end && !errno &&
           (kind >= SHMVIEW_VALUE_BOOL && kind <= SHMVIEW_VALUE_REAL);
}

static int store(void *arg)
{
    const struct change *c = arg;
    void *p;
    int r = shmview_view_pointer(c->view, c->index, &p);
    return r ? r : shmview_value_store(c->view->dtype, c->view->itemsize, &c->value, p);
}

int grid_set(struct look *look, const ptrdiff_t *index, const char *text)
{
    struct change c = {.view = &look->view, .index = index};
    struct shmview_segment *segment = look->held->segment;
    if (!read_value(&look->view, text, &c.value)) {
        snprintf(look->error, sizeof look->error,
                 "'%.60s' is no number that fits the format \"%.60s\"", text, look->view.format);
        return LOOK_WRONG;
    }
    if (look->view.flags & SHMVIEW_VIEW_READ_ONLY) {
        snprintf(look->error, sizeof look->error, "the view is declared read-only");
        return -SHMVIEW_ERR_READ_ONLY;
    }
    int taken = shmview_view_lock(&look->view, SHMVIEW_EXCLUSIVE, shmview_deadline(SET_WAIT_NS));
    bool has_lock = taken != -SHMVIEW_ERR_NO_LOCK;
    if (has_lock && taken < 0)
        return taken;
    if (taken == SHMVIEW_OWNER_DIED) {
        shmview_unlock_not_repaired(segment);
        snprintf(look->error, sizeof look->error,
                 "the last owner died inside, and the bytes may be half written: a program that "
                 "knows them must repair them first");
        return LOOK_WRONG;
    }
    int r = look_guard(look, store, &c);
    if (has_lock)
        shmview_unlock(segment);
    if (has_lock && r == 0)
        shmview_notify(segment);
    return r;
}
