/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <string.h>

static struct shmview_view_spec spec_of(const json_t *request, struct spec_room *room)
{
    uint32_t ndim, unused;
    struct shmview_view_spec spec = {
        .name = text_of(request, "name"),
        .format = text_of(request, "format"),
        .offset = (uint64_t)number_of(request, "offset", 0),
        .flags = truth_of(request, "readonly", false) ? SHMVIEW_VIEW_READ_ONLY : 0,
        .shape = numbers_of(request, "shape", room->shape, &ndim),
        .strides = numbers_of(request, "strides", room->strides, &unused),
        .suboffsets = numbers_of(request, "suboffsets", room->suboffsets, &unused)};
    spec.ndim = ndim;
    return spec;
}

void specs_of(const json_t *request, struct view_specs *ret)
{
    const json_t *views = json_object_get(request, "views");
    ret->n = json_array_size(views);
    if (ret->n > MAX_VIEWS)
        refuse("too many views", text_of(request, "name"));
    for (size_t i = 0; i < ret->n; i++)
        ret->specs[i] = spec_of(json_array_get(views, i), &ret->rooms[i]);
}

static int run_define(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct view_specs views;
    (void)ret_value;
    specs_of(request, &views);
    return shmview_define(segment_of(driver, request), text_of(request, "layout"), views.specs,
                          views.n);
}

/* --- Views ------------------------------------------------------------------ */

/* If r is 0, keeps *made under the name in the request. Returns r. */
static int keep(struct driver *driver, const json_t *request, int r,
                const struct shmview_view *made)
{
    if (r == 0)
        *new_view(driver, request) = *made;
    return r;
}

static int run_view(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct spec_room room;
    struct shmview_view made;
    struct shmview_view_spec spec = spec_of(request, &room);
    struct shmview_segment *segment = segment_of(driver, request);
    (void)ret_value;
    int r = spec.shape ? shmview_view_make(segment, &spec, &made)
                       : shmview_view_cast(segment, spec.format, spec.offset, SHMVIEW_REST, &made);
    return keep(driver, request, r, &made);
}

static int run_open(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_view made;
    (void)ret_value;
    int r = shmview_view_open(segment_of(driver, request), text_of(request, "layout"),
                              text_of(request, "name"), &made);
    return keep(driver, request, r, &made);
}

static int run_slice(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_view made;
    (void)ret_value;
    int r = shmview_view_slice(
        view_of(driver, request, "of"), (uint32_t)number_of(request, "dimension", 0),
        number_of(request, "start", SHMVIEW_OMIT), number_of(request, "stop", SHMVIEW_OMIT),
        number_of(request, "step", SHMVIEW_OMIT), &made);
    return keep(driver, request, r, &made);
}

static int run_row(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_view made;
    (void)ret_value;
    int r = shmview_view_index(view_of(driver, request, "of"), 0, number_of(request, "index", 0),
                               &made);
    return keep(driver, request, r, &made);
}

static int run_transpose(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_view made;
    (void)ret_value;
    return keep(driver, request,
                shmview_view_transpose(view_of(driver, request, "of"), NULL, &made), &made);
}

static int run_reshape(struct driver *driver, const json_t *request, json_t **ret_value)
{
    int64_t shape[SHMVIEW_MAX_NDIM];
    uint32_t ndim;
    struct shmview_view made;
    (void)ret_value;
    numbers_of(request, "shape", shape, &ndim);
    return keep(driver, request,
                shmview_view_reshape(view_of(driver, request, "of"), ndim, shape, &made), &made);
}

static int run_broadcast(struct driver *driver, const json_t *request, json_t **ret_value)
{
    int64_t shape[SHMVIEW_MAX_NDIM];
    uint32_t ndim;
    struct shmview_view made;
    (void)ret_value;
    numbers_of(request, "shape", shape, &ndim);
    return keep(driver, request,
                shmview_view_broadcast(view_of(driver, request, "of"), ndim, shape, &made), &made);
}

static int run_field(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_view made;
    (void)ret_value;
    return keep(driver, request,
                shmview_view_field(view_of(driver, request, "of"), text_of(request, "name"), &made),
                &made);
}

static int run_recast(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_view made;
    (void)ret_value;
    return keep(
        driver, request,
        shmview_view_recast(view_of(driver, request, "of"), text_of(request, "format"), &made),
        &made);
}

/* --- What it is ------------------------------------------------------------- */

static json_t *told_numbers(const ptrdiff_t *numbers, uint32_t n)
{
    json_t *all = json_array();
    for (uint32_t d = 0; d < n; d++)
        json_array_append_new(all, json_integer(numbers[d]));
    return all;
}

static int run_facts(struct driver *driver, const json_t *request, json_t **ret_value)
{
    const struct shmview_view *v = view_of(driver, request, "view");
    int is_indirect = (v->flags & SHMVIEW_VIEW_INDIRECT) != 0;
    const unsigned char *base = shmview_data(v->segment);
    *ret_value = json_pack(
        "{s:s, s:i, s:I, s:o, s:o, s:o, s:b, s:I, s:b, s:b, s:b}", "format", v->format, "itemsize",
        (int)v->itemsize, "nbytes", (json_int_t)v->nbytes, "shape", told_numbers(v->shape, v->ndim),
        "strides", told_numbers(v->strides, v->ndim), "suboffsets",
        is_indirect ? told_numbers(v->suboffsets, v->ndim) : json_array(), "readonly",
        (v->flags & SHMVIEW_VIEW_READ_ONLY) != 0, "offset", (json_int_t)(v->data - base),
        "c_contiguous", shmview_view_is_contiguous(v, 'C'), "f_contiguous",
        shmview_view_is_contiguous(v, 'F'), "stale", shmview_view_is_stale(v));
    return 0;
}

static int run_kind(struct driver *driver, const json_t *request, json_t **ret_value)
{
    static const char *const getters[] = {
        [SHMVIEW_VALUE_STRUCT] = "bytes",   [SHMVIEW_VALUE_BYTES] = "bytes",
        [SHMVIEW_VALUE_BOOL] = "int64",     [SHMVIEW_VALUE_INT] = "int64",
        [SHMVIEW_VALUE_UINT] = "int64",     [SHMVIEW_VALUE_REAL] = "double",
        [SHMVIEW_VALUE_COMPLEX] = "complex"};
    uint32_t dtype = view_of(driver, request, "view")->dtype;
    *ret_value = json_pack("{s:s, s:s}", "value", getters[shmview_dtype_kind(dtype)], "other",
                           c_type(dtype));
    return 0;
}

/* --- Elements --------------------------------------------------------------- */

static int run_get(struct driver *driver, const json_t *request, json_t **ret_value)
{
    int64_t numbers[SHMVIEW_MAX_NDIM];
    ptrdiff_t index[SHMVIEW_MAX_NDIM];
    uint32_t n;
    numbers_of(request, "index", numbers, &n);
    for (uint32_t d = 0; d < n; d++)
        index[d] = (ptrdiff_t)numbers[d];
    json_t *value = json_object_get(request, "value");
    bool writes = value != NULL;
    int r = element_move(view_of(driver, request, "view"), index, &value, writes);
    if (r == 0 && !writes)
        *ret_value = value;
    return r;
}

static int run_values(struct driver *driver, const json_t *request, json_t **ret_value)
{
    json_t *value = NULL;
    int r = view_move(view_of(driver, request, "view"), &value, false);
    if (r == 0)
        *ret_value = value;
    return r;
}

static int run_assign(struct driver *driver, const json_t *request, json_t **ret_value)
{
    json_t *value = json_object_get(request, "values");
    (void)ret_value;
    return view_move(view_of(driver, request, "view"), &value, true);
}

static int run_other(struct driver *driver, const json_t *request, json_t **ret_value)
{
    *ret_value = view_by_pointers(view_of(driver, request, "view"));
    return 0;
}

static int run_copy(struct driver *driver, const json_t *request, json_t **ret_value)
{
    (void)ret_value;
    return shmview_copy(view_of(driver, request, "view"), view_of(driver, request, "from"));
}

const struct operation_row view_operations[] = {
    {"define", run_define},
    {"view", run_view},
    {"open", run_open},
    {"slice", run_slice},
    {"row", run_row},
    {"transpose", run_transpose},
    {"reshape", run_reshape},
    {"broadcast", run_broadcast},
    {"field", run_field},
    {"recast", run_recast},
    {"facts", run_facts},
    {"kind", run_kind},
    {"get", run_get},
    {"set", run_get},
    {"values", run_values},
    {"assign", run_assign},
    {"other", run_other},
    {"copy", run_copy},
    {NULL, NULL},
};
