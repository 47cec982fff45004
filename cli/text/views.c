/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/views.h"

#include <inttypes.h>
#include <string.h>

#include "cli/draw/picture.h"

/* Columns, in the order of the table. The default ones come first. */
enum {
    LAYOUT,
    VIEW,
    TYPE,
    SHAPE,
    OFFSET,
    BYTES,
    CURRENT,
    FORMAT,
    STRIDES,
    ITEMSIZE,
    READONLY,
    BEGIN,
    END,
    N_COLUMNS,
};

static const struct column columns[N_COLUMNS] = {
    [LAYOUT] = {"LAYOUT", CELL_TEXT, true, "layout to which it belongs"},
    [VIEW] = {"VIEW", CELL_TEXT, true, "name of the view"},
    [TYPE] = {"TYPE", CELL_TEXT, true, "type of an element, or its format"},
    [SHAPE] = {"SHAPE", CELL_TEXT, true, "length of each dimension"},
    [OFFSET] = {"OFFSET", CELL_NUMBER, true, "byte of element [0, ..., 0]"},
    [BYTES] = {"BYTES", CELL_BYTES, true, "size of all elements together"},
    [CURRENT] = {"CURRENT", CELL_FLAG, true, "whether its layout is current"},
    [FORMAT] = {"FORMAT", CELL_TEXT, false, "format of an element"},
    [STRIDES] = {"STRIDES", CELL_TEXT, false, "bytes to the next element of each dimension"},
    [ITEMSIZE] = {"ITEMSIZE", CELL_NUMBER, false, "bytes of an element"},
    [READONLY] = {"READONLY", CELL_FLAG, false, "whether it was declared read-only"},
    [BEGIN] = {"BEGIN", CELL_NUMBER, false, "first byte that an element takes"},
    [END] = {"END", CELL_NUMBER, false, "byte after the last one"},
};

#define LIST_BYTES (SHMVIEW_MAX_NDIM * 21) /* 20 digits and signs each, and a comma or NUL */

/* Writes "3,4" to buffer, which has LIST_BYTES. Returns it. */
static const char *list_text(const int64_t *list, uint32_t n, char *buffer)
{
    size_t at = 0;
    buffer[0] = '\0';
    for (uint32_t i = 0; i < n; i++)
        at += (size_t)snprintf(buffer + at, LIST_BYTES - at, "%s%" PRId64, i ? "," : "", list[i]);
    return buffer;
}

/* Adds a row. Returns 0 or the exit status. */
static int add_view(struct table *table, const char *layout, bool is_current,
                    const struct shmview_view_description *v)
{
    char shape[LIST_BYTES], strides[LIST_BYTES];
    const struct cell cells[N_COLUMNS] = {
        [LAYOUT] = cell_text(layout),
        [VIEW] = cell_text(v->name),
        [TYPE] = cell_text(type_text(v)),
        [SHAPE] = cell_text(list_text(v->shape, v->ndim, shape)),
        [OFFSET] = cell_number((int64_t)v->offset),
        [BYTES] = cell_number((int64_t)v->nbytes),
        [CURRENT] = cell_number(is_current),
        [FORMAT] = cell_text(v->format),
        [STRIDES] = cell_text(list_text(v->strides, v->ndim, strides)),
        [ITEMSIZE] = cell_number(v->itemsize),
        [READONLY] = cell_number((v->flags & SHMVIEW_VIEW_READ_ONLY) != 0),
        [BEGIN] = cell_number((int64_t)v->begin),
        [END] = cell_number((int64_t)v->end),
    };
    return table_add(table, cells);
}

int views_table(struct context *c, const struct table_options *how, struct table **ret_table,
                int *ret_status)
{
    return table_new(c, how, "views", columns, N_COLUMNS, ret_table, ret_status);
}

int views_print(struct table *table, const struct shmview_description *d, const char *current)
{
    for (size_t i = 0; i < d->n_layouts; i++) {
        const struct shmview_layout_description *l = d->layouts[i];
        bool is_current = current[0] && strcmp(l->name, current) == 0;
        for (size_t k = 0; k < l->n_views; k++) {
            int status = add_view(table, l->name, is_current, l->views[k]);
            if (status)
                return status;
        }
    }
    return table_print(table);
}
