/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/line, /api/image, /api/grid, /api/histogram: the elements of one view, as a page shows
 * them. GET /api/npy: all of them as a file; with check=1, only whether it can be had now. POST
 * /api/set: changes one element.
 *
 * All take segment, and layout and view, or as; also field, slice, and lock=1. A line and an image
 * are bytes: the length of a JSON text as a 32-bit number and 4 bytes of zeroes, that text, filled
 * with spaces to a multiple of 8, and the numbers. Words are those of the machine, which has the
 * browser, or is little-endian like every browser's. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "web/api/api.h"
#include "web/memory/figures.h"
#include "web/memory/grid.h"
#include "web/memory/image.h"
#include "web/memory/line.h"
#include "web/memory/npy.h"

#define BUDGET_US_DEFAULT 2500
#define BUDGET_US_MOST    100000
#define ROW_ELEMENTS_MOST (1 << 22)

/* Elements that overlap may have so many times the bytes of their segment, or so many bytes. */
#define OVERLAP_MOST       64
#define OVERLAP_BYTES_FREE (UINT64_C(1) << 26)

/* --- Opening ------------------------------------------------------------- */

static void fail(struct reply *reply, const struct look *look, int r)
{
    if (look->error[0])
        reply_error(reply, r == LOOK_WRONG ? 400 : api_status(r), "%s", look->error);
    else
        api_fail(reply, r);
}

/* Whether all elements can be read in reasonable time. A stride of 0 lets a layout declare more of
 * them than a processor reads in years, and nothing could end such a request. */
static bool is_readable(const struct look *look)
{
    return look->view.nbytes <= OVERLAP_BYTES_FREE ||
           look->view.nbytes / OVERLAP_MOST <= shmview_size(look->held->segment);
}

/* Opens the view that the URL names. Returns false after making the reply an error. */
static bool open_view(const struct request *q, struct reply *reply, struct look *look)
{
    const char *lock = request_text(q, "lock");
    const struct look_at at = {.segment = request_text(q, "segment"),
                               .layout = request_text(q, "layout"),
                               .view = request_text(q, "view"),
                               .as = request_text(q, "as"),
                               .field = request_text(q, "field"),
                               .slice = request_text(q, "slice"),
                               .takes_lock = lock && strcmp(lock, "1") == 0};
    struct shmview_connection *connection = api_connect(q, reply);
    if (!connection || !api_may_work(q, reply))
        return false;
    if (!at.segment) {
        reply_error(reply, 400, "the parameter segment is missing");
        return false;
    }
    int r = look_open(api_backend(q), connection, &at, SHMVIEW_READ, look);
    if (r)
        fail(reply, look, r);
    else if (!is_readable(look))
        reply_error(reply, 400,
                    "elements of the view overlap so much that they are %llu bytes: "
                    "choose a slice",
                    (unsigned long long)look->view.nbytes);
    return r == 0 && is_readable(look);
}

/* Whether the view has as many dimensions; otherwise the reply is an error. */
static bool has_dimensions(struct reply *reply, const struct look *look, uint32_t n)
{
    if (look->view.ndim == n)
        return true;
    reply_error(reply, 400, "the view has %u dimensions here, not %u: choose a slice",
                look->view.ndim, n);
    return false;
}

/* Writes what all answers have about the view and how it was read, without the braces. */
static void put_state(struct text *t, const struct look *look)
{
    const struct shmview_view *v = &look->view;
    text_put(t, "\"format\":");
    text_json(t, v->format);
    text_print(t, ",\"itemsize\":%u,\"shape\":[", v->itemsize);
    for (uint32_t d = 0; d < v->ndim; d++)
        text_print(t, "%s%td", d ? "," : "", v->shape[d]);
    text_print(t, "],\"stale\":%s,\"change\":%u,\"state\":", look->is_stale ? "true" : "false",
               look->change);
    text_json(t, look_state_name(look->state));
    text_print(t, ",\"pid\":%u,\"command\":", look->pid);
    text_json(t, look->command);
}

/* Begins a body of bytes: the JSON text `head`, whose size comes first. */
static void put_head(struct reply *reply, struct text *head)
{
    while (head->n % 8)
        text_put(head, " ");
    const uint32_t words[2] = {(uint32_t)head->n, 0};
    text_add(&reply->body, words, sizeof words);
    text_add(&reply->body, head->bytes, head->n);
    reply->body.failed |= head->failed;
    reply->type = TYPE_BINARY;
}

static void charge(const struct request *q, int64_t since_ns)
{
    bucket_charge(&api_backend(q)->work, (double)(thread_ns() - since_ns) * 1e-9);
}

/* --- Reading ------------------------------------------------------------- */

void api_line(const struct request *q, struct reply *reply)
{
    CLEANUP_LOOK struct look look = {.held = NULL};
    CLEANUP_LINE struct line line = {.n = 0};
    CLEANUP_TEXT struct text head = {.bytes = NULL};
    int64_t columns = 1000, first = 0, budget = BUDGET_US_DEFAULT, since = thread_ns();
    if (!request_number(q, reply, "columns", 1, LINE_COLUMNS_MOST, &columns) ||
        !request_number(q, reply, "first", 0, LINE_COLUMNS_MOST, &first) ||
        !request_number(q, reply, "budget", 100, BUDGET_US_MOST, &budget) ||
        !open_view(q, reply, &look) || !has_dimensions(reply, &look, 1))
        return;
    int r = line_init(&line, &look, (size_t)columns, (size_t)first, budget * 1000);
    charge(q, since);
    if (r) {
        fail(reply, &look, r);
        return;
    }
    text_put(&head, "{");
    put_state(&head, &look);
    text_print(&head,
               ",\"n\":%" PRIu64 ",\"columns\":%zu,\"first\":%zu,\"read\":%zu,\"cost_us\":%" PRId64
               "}",
               line.n, line.columns, line.first, line.n_read, (thread_ns() - since) / 1000);
    put_head(reply, &head);
    text_add(&reply->body, line.low, line.n_read * sizeof *line.low);
    text_add(&reply->body, line.high, line.n_read * sizeof *line.high);
}

void api_image(const struct request *q, struct reply *reply)
{
    CLEANUP_LOOK struct look look = {.held = NULL};
    CLEANUP_IMAGE struct image image = {.pixels = NULL};
    CLEANUP_TEXT struct text head = {.bytes = NULL};
    int64_t rows = 512, columns = 512, range = 0, colors = 0, since = thread_ns();
    double low = (double)NAN, high = (double)NAN;
    if (!request_number(q, reply, "rows", 1, IMAGE_SIDE_MOST, &rows) ||
        !request_number(q, reply, "columns", 1, IMAGE_SIDE_MOST, &columns) ||
        !request_number(q, reply, "range", 0, 1, &range) ||
        !request_number(q, reply, "colors", 0, 1, &colors) ||
        !request_real(q, reply, "low", &low) || !request_real(q, reply, "high", &high) ||
        !open_view(q, reply, &look) || (!colors && !has_dimensions(reply, &look, 2)))
        return;
    if (colors && !image_has_colors(&look.view)) {
        reply_error(reply, 400,
                    "colours need uint8 elements and three dimensions, of which the last has 3 "
                    "elements: red, green and blue");
        return;
    }
    if (look.view.shape[1] > ROW_ELEMENTS_MOST / (colors ? 3 : 1)) {
        reply_error(reply, 400, "a row of an image has at most %d elements: choose a slice",
                    ROW_ELEMENTS_MOST);
        return;
    }
    if (isnan(low) || isnan(high))
        low = high = (double)NAN;
    int r = colors
                ? image_init_colors(&image, &look, (size_t)rows, (size_t)columns)
                : image_init(&image, &look, (size_t)rows, (size_t)columns, low, high, range != 0);
    charge(q, since);
    if (r) {
        fail(reply, &look, r);
        return;
    }
    text_put(&head, "{");
    put_state(&head, &look);
    text_print(&head, ",\"rows\":%zu,\"columns\":%zu,\"low\":", image.rows, image.columns);
    text_json_double(&head, image.low);
    text_put(&head, ",\"high\":");
    text_json_double(&head, image.high);
    text_put(&head, ",\"min\":");
    text_json_double(&head, image.min);
    text_put(&head, ",\"max\":");
    text_json_double(&head, image.max);
    text_print(&head, ",\"cost_us\":%" PRId64 "}", (thread_ns() - since) / 1000);
    put_head(reply, &head);
    text_add(&reply->body, image.pixels, image.rows * image.columns * image.channels);
}

void api_grid(const struct request *q, struct reply *reply)
{
    CLEANUP_LOOK struct look look = {.held = NULL};
    CLEANUP_TEXT struct text cells = {.bytes = NULL};
    int64_t row = 0, column = 0, rows = 40, columns = 10, wrap = 10, since = thread_ns();
    if (!request_number(q, reply, "row", 0, INT64_MAX / 65536, &row) ||
        !request_number(q, reply, "column", 0, INT64_MAX / 65536, &column) ||
        !request_number(q, reply, "rows", 1, GRID_CELLS_MOST, &rows) ||
        !request_number(q, reply, "columns", 1, GRID_CELLS_MOST, &columns) ||
        !request_number(q, reply, "wrap", 1, 4096, &wrap) || !open_view(q, reply, &look))
        return;
    struct grid grid = {.row = row,
                        .column = column,
                        .rows = (size_t)rows,
                        .columns = (size_t)columns,
                        .wrap = wrap};
    int r = grid_read(&grid, &look, &cells);
    charge(q, since);
    if (r) {
        fail(reply, &look, r);
        return;
    }
    struct text *t = &reply->body;
    text_put(t, "{");
    put_state(t, &look);
    text_print(t,
               ",\"row\":%" PRId64 ",\"column\":%" PRId64 ",\"rows\":%" PRId64
               ",\"columns\":%" PRId64 ",\"cells\":",
               grid.row, grid.column, grid.all_rows, grid.all_columns);
    text_add(t, cells.bytes, cells.n);
    t->failed |= cells.failed;
    text_put(t, "}\n");
}

void api_histogram(const struct request *q, struct reply *reply)
{
    CLEANUP_LOOK struct look look = {.held = NULL};
    struct figures f;
    int64_t since = thread_ns();
    if (!open_view(q, reply, &look))
        return;
    int r = figures_read(&f, &look);
    charge(q, since);
    if (r) {
        fail(reply, &look, r);
        return;
    }
    struct text *t = &reply->body;
    text_put(t, "{");
    put_state(t, &look);
    text_print(t, ",\"n\":%" PRIu64 ",\"nan\":%" PRIu64 ",\"infinite\":%" PRIu64 ",\"min\":",
               f.summary.n, f.summary.n_nan, f.n_infinite);
    text_json_double(t, f.summary.min);
    text_put(t, ",\"max\":");
    text_json_double(t, f.summary.max);
    text_put(t, ",\"sum\":");
    text_json_double(t, f.summary.sum);
    text_put(t, ",\"low\":");
    text_json_double(t, f.low);
    text_put(t, ",\"high\":");
    text_json_double(t, f.high);
    text_put(t, ",\"counts\":[");
    for (size_t i = 0; i < FIGURES_BINS; i++)
        text_print(t, "%s%" PRIu64, i ? "," : "", f.counts[i]);
    text_put(t, "]}\n");
}

void api_npy(const struct request *q, struct reply *reply)
{
    CLEANUP_LOOK struct look look = {.held = NULL};
    int64_t since = thread_ns(), check = 0;
    if (!request_number(q, reply, "check", 0, 1, &check) || !open_view(q, reply, &look))
        return;
    int r = npy_check(&look);
    if (r == 0 && !request_hold(q, reply, look.view.nbytes))
        return;
    if (r == 0 && check) {
        hold_end(q->held); /* the download follows at once */
        text_print(&reply->body, "{\"bytes\":%llu}\n", (unsigned long long)look.view.nbytes);
        return;
    }
    r = r ? r : npy_write(&look, &reply->body);
    charge(q, since);
    if (r) {
        fail(reply, &look, r);
        return;
    }
    /* names that exist have only letters, digits and . _ - */
    const char *view = request_text(q, "layout") ? request_text(q, "view") : NULL;
    snprintf(reply->save_as, sizeof reply->save_as, "%.100s%s%.64s.npy", look.held->name,
             view ? "-" : "", view ? view : "");
    reply->type = TYPE_BINARY;
}

/* --- Changing ------------------------------------------------------------ */

/* Reads an index of at most SHMVIEW_MAX_NDIM numbers. Returns false if it does not fit the view. */
static bool read_index(const json_t *list, const struct look *look, ptrdiff_t *ret)
{
    if (!json_is_array(list) || json_array_size(list) != look->view.ndim)
        return false;
    for (size_t d = 0; d < look->view.ndim; d++) {
        const json_t *number = json_array_get(list, d);
        if (!json_is_integer(number))
            return false;
        ret[d] = (ptrdiff_t)json_integer_value(number);
    }
    return true;
}

static const char *member(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

void api_set(const struct request *q, struct reply *reply)
{
    CLEANUP_LOOK struct look look = {.held = NULL};
    ptrdiff_t index[SHMVIEW_MAX_NDIM];
    json_auto_t *body =
        json_loadb(q->body ? q->body : "", q->body_bytes, JSON_REJECT_DUPLICATES, NULL);
    const struct look_at at = {.segment = member(body, "segment"),
                               .layout = member(body, "layout"),
                               .view = member(body, "view"),
                               .as = member(body, "as"),
                               .field = member(body, "field"),
                               .slice = member(body, "slice")};
    const char *value = member(body, "value");
    if (!at.segment || !value) {
        reply_error(reply, 400, "a change is a JSON object with segment, index and value");
        return;
    }
    struct shmview_connection *connection = api_connect(q, reply);
    if (!connection)
        return;
    int r = look_open(api_backend(q), connection, &at, SHMVIEW_WRITE, &look);
    if (r == 0 && !read_index(json_object_get(body, "index"), &look, index)) {
        reply_error(reply, 400, "index must be a list of %u numbers", look.view.ndim);
        return;
    }
    r = r ? r : grid_set(&look, index, value);
    if (r)
        fail(reply, &look, r);
    else
        text_put(&reply->body, "{}\n");
}
