/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <complex.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Types ------------------------------------------------------------------ */

static const char *const c_types[SHMVIEW_PASCAL + 1] = {
    [SHMVIEW_INT8] = "int8_t",
    [SHMVIEW_UINT8] = "uint8_t",
    [SHMVIEW_INT16] = "int16_t",
    [SHMVIEW_UINT16] = "uint16_t",
    [SHMVIEW_INT32] = "int32_t",
    [SHMVIEW_UINT32] = "uint32_t",
    [SHMVIEW_INT64] = "int64_t",
    [SHMVIEW_UINT64] = "uint64_t",
    [SHMVIEW_FLOAT32] = "float",
    [SHMVIEW_FLOAT64] = "double",
    [SHMVIEW_COMPLEX64] = "float _Complex",
    [SHMVIEW_COMPLEX128] = "double _Complex",
    [SHMVIEW_LONGDOUBLE] = "long double",
    [SHMVIEW_BOOL] = "_Bool",
    [SHMVIEW_CHAR] = "char",
};

const char *c_type(uint32_t dtype)
{
    return dtype <= SHMVIEW_PASCAL && c_types[dtype] ? c_types[dtype] : "";
}

/* --- Bytes ------------------------------------------------------------------ */

json_t *hex_of(const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    char *text = malloc(2 * n + 1);
    if (!text)
        refuse("no memory", "for bytes");
    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", b[i]);
    json_t *made = json_stringn(text, 2 * n);
    free(text);
    return made;
}

size_t bytes_of(const char *hex, void *ret, size_t n)
{
    size_t i = 0;
    for (; i < n && hex[2 * i]; i++) {
        const char pair[] = {hex[2 * i], hex[2 * i + 1], '\0'};
        ((unsigned char *)ret)[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return i;
}

/* --- Numbers ---------------------------------------------------------------- */

static json_t *told_float(double x)
{
    if (isfinite(x))
        return json_real(x);
    return json_pack("{s:s}", "float", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
}

static double float_of(const json_t *value)
{
    const char *special = text_of(value, "float");
    return special ? strtod(special, NULL) : json_number_value(value);
}

/* Reads an integer. One that fits an int64 becomes an integer of JSON, a larger one a text of
 * its digits. */
static int told_integer(const struct shmview_view *view, const ptrdiff_t *index, json_t **ret)
{
    int64_t n;
    if (shmview_get_int64(view, index, &n) == 0) {
        *ret = json_integer(n);
        return 0;
    }
    unsigned char bytes[sizeof(uint64_t)];
    uint64_t large = 0;
    char digits[24];
    int r = shmview_get_bytes(view, index, bytes);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof bytes; i++)
        large = large << 8 | bytes[view->dtype & SHMVIEW_SWAPPED ? i : sizeof bytes - 1 - i];
    snprintf(digits, sizeof digits, "%" PRIu64, large);
    *ret = json_pack("{s:s}", "int", digits);
    return 0;
}

static int put_integer(const struct shmview_view *view, const ptrdiff_t *index, const json_t *value)
{
    const char *digits = text_of(value, "int");
    if (!digits)
        return json_is_integer(value) ? shmview_set_int64(view, index, json_integer_value(value))
                                      : shmview_set_double(view, index, float_of(value));
    unsigned char bytes[sizeof(uint64_t)];
    uint64_t large = strtoull(digits, NULL, 10);
    if (view->itemsize != sizeof bytes)
        refuse("too large for the test", digits);
    for (size_t i = 0; i < sizeof bytes; i++, large >>= 8)
        bytes[view->dtype & SHMVIEW_SWAPPED ? sizeof bytes - 1 - i : i] = (unsigned char)large;
    return shmview_set_bytes(view, index, bytes);
}

static int number_read(const struct shmview_view *view, const ptrdiff_t *index, json_t **ret)
{
    double x[2];
    int64_t n;
    int r;
    switch (shmview_dtype_kind(view->dtype)) {
    case SHMVIEW_VALUE_INT:
    case SHMVIEW_VALUE_UINT:
        return told_integer(view, index, ret);
    case SHMVIEW_VALUE_BOOL:
        if ((r = shmview_get_int64(view, index, &n)) == 0)
            *ret = json_boolean(n);
        return r;
    case SHMVIEW_VALUE_REAL:
        if ((r = shmview_get_double(view, index, x)) == 0)
            *ret = told_float(x[0]);
        return r;
    default:
        if ((r = shmview_get_complex(view, index, x)) == 0)
            *ret = json_pack("{s:[o, o]}", "complex", told_float(x[0]), told_float(x[1]));
        return r;
    }
}

static int number_write(const struct shmview_view *view, const ptrdiff_t *index,
                        const json_t *value)
{
    const json_t *pair = json_object_get(value, "complex");
    if (pair) {
        double x[] = {float_of(json_array_get(pair, 0)), float_of(json_array_get(pair, 1))};
        return shmview_set_complex(view, index, x);
    }
    if (json_is_boolean(value))
        return shmview_set_int64(view, index, json_is_true(value));
    if (json_is_real(value) || text_of(value, "float"))
        return shmview_set_double(view, index, float_of(value));
    return put_integer(view, index, value);
}

/* Ends reading or writing of an array. Frees what was read if that failed. Returns r. */
static int array_end(int r, bool writes, json_t **value)
{
    if (r < 0 && !writes) {
        json_decref(*value);
        *value = NULL;
    }
    return r;
}

/* --- By address ------------------------------------------------------------- */

static json_t *told_value(const struct shmview_value *v)
{
    char digits[24];
    switch (v->kind) {
    case SHMVIEW_VALUE_BOOL:
        return json_boolean(v->i);
    case SHMVIEW_VALUE_INT:
        return json_integer(v->i);
    case SHMVIEW_VALUE_UINT:
        if (v->u <= INT64_MAX)
            return json_integer((int64_t)v->u);
        snprintf(digits, sizeof digits, "%" PRIu64, v->u);
        return json_pack("{s:s}", "int", digits);
    case SHMVIEW_VALUE_REAL:
        return told_float((double)v->z[0]);
    case SHMVIEW_VALUE_COMPLEX:
        return json_pack("{s:[o, o]}", "complex", told_float((double)v->z[0]),
                         told_float((double)v->z[1]));
    default:
        return json_pack("{s:o}", "hex", hex_of(v->bytes, v->n_bytes));
    }
}

/* Converts text or bytes; buffer has ELEMENT_BYTES and receives them. */
static struct shmview_value value_of(const json_t *value, unsigned char *buffer)
{
    const json_t *pair = json_object_get(value, "complex");
    struct shmview_value v = {.kind = SHMVIEW_VALUE_INT, .i = json_integer_value(value)};
    if (text_of(value, "hex")) {
        v.kind = SHMVIEW_VALUE_BYTES;
        v.n_bytes = (uint32_t)bytes_of(text_of(value, "hex"), buffer, ELEMENT_BYTES);
        v.bytes = buffer;
    } else if (text_of(value, "int")) {
        v.kind = SHMVIEW_VALUE_UINT;
        v.u = strtoull(text_of(value, "int"), NULL, 10);
    } else if (json_is_boolean(value)) {
        v.kind = SHMVIEW_VALUE_BOOL;
        v.i = json_is_true(value);
    } else if (!json_is_integer(value)) {
        v.kind = pair ? SHMVIEW_VALUE_COMPLEX : SHMVIEW_VALUE_REAL;
        v.z[0] = (long double)float_of(pair ? json_array_get(pair, 0) : value);
        v.z[1] = pair ? (long double)float_of(json_array_get(pair, 1)) : 0;
    }
    return v;
}

static int part_move(const struct shmview_part *whole, unsigned char *element, json_t **value,
                     bool writes)
{
    struct shmview_part part = {.component = NULL};
    struct shmview_value v;
    unsigned char buffer[ELEMENT_BYTES], *at = element + whole->offset;
    int r = 0;
    if (!whole->is_array && whole->dtype != SHMVIEW_STRUCT && writes) {
        v = value_of(*value, buffer);
        return shmview_value_store(whole->dtype, whole->nbytes, &v, at);
    }
    if (!whole->is_array && whole->dtype != SHMVIEW_STRUCT) {
        shmview_value_load(whole->dtype, whole->nbytes, at, &v);
        *value = told_value(&v);
        return 0;
    }
    if (!writes)
        *value = json_array();
    while (r == 0 && shmview_part_next(whole, &part)) {
        json_t *one = json_array_get(*value, part.index);
        r = part_move(&part, element, &one, writes);
        if (r == 0 && !writes)
            json_array_append_new(*value, one);
    }
    return array_end(r, writes, value);
}

static int move_by_address(const struct shmview_view *view, const ptrdiff_t *index, json_t **value,
                           bool writes)
{
    struct shmview_component components[MAX_PARTS];
    struct shmview_format format;
    struct shmview_part whole;
    unsigned char element[ELEMENT_BYTES];
    if (view->itemsize > sizeof element)
        refuse("too large for the test", view->format);
    int r = shmview_get_bytes(view, index, element);
    if (r == 0)
        r = shmview_format_parse(view->format, &format, components, MAX_PARTS);
    if (r < 0)
        return r;
    shmview_part_of(&format, components, &whole);
    r = part_move(&whole, element, value, writes);
    return r == 0 && writes ? shmview_set_bytes(view, index, element) : r;
}

/* --- Elements --------------------------------------------------------------- */

/* Moves numbers by view and index, structs and text by address. */
int element_move(const struct shmview_view *view, const ptrdiff_t *index, json_t **value,
                 bool writes)
{
    if (shmview_dtype_kind(view->dtype) <= SHMVIEW_VALUE_BYTES)
        return move_by_address(view, index, value, writes);
    return writes ? number_write(view, index, *value) : number_read(view, index, value);
}

static int dimension_move(const struct shmview_view *view, uint32_t d, ptrdiff_t *index,
                          json_t **value, bool writes)
{
    int r = 0;
    if (d == view->ndim)
        return element_move(view, index, value, writes);
    if (!writes)
        *value = json_array();
    for (index[d] = 0; r == 0 && index[d] < view->shape[d]; index[d]++) {
        json_t *one = json_array_get(*value, (size_t)index[d]);
        r = dimension_move(view, d + 1, index, &one, writes);
        if (r == 0 && !writes)
            json_array_append_new(*value, one);
    }
    return array_end(r, writes, value);
}

int view_move(const struct shmview_view *view, json_t **value, bool writes)
{
    ptrdiff_t index[SHMVIEW_MAX_NDIM];
    return dimension_move(view, 0, index, value, writes);
}

/* --- By pointers ------------------------------------------------------------ */

static json_t *told_by_pointer(uint32_t dtype, const void *p)
{
    char digits[24];
    switch (dtype) {
    case SHMVIEW_INT8:
        return json_integer(*(const int8_t *)p);
    case SHMVIEW_UINT8:
        return json_integer(*(const uint8_t *)p);
    case SHMVIEW_INT16:
        return json_integer(*(const int16_t *)p);
    case SHMVIEW_UINT16:
        return json_integer(*(const uint16_t *)p);
    case SHMVIEW_INT32:
        return json_integer(*(const int32_t *)p);
    case SHMVIEW_UINT32:
        return json_integer(*(const uint32_t *)p);
    case SHMVIEW_INT64:
        return json_integer(*(const int64_t *)p);
    case SHMVIEW_UINT64:
        if (*(const uint64_t *)p <= INT64_MAX)
            return json_integer((int64_t) * (const uint64_t *)p);
        snprintf(digits, sizeof digits, "%" PRIu64, *(const uint64_t *)p);
        return json_pack("{s:s}", "int", digits);
    case SHMVIEW_FLOAT32:
        return told_float((double)*(const float *)p);
    case SHMVIEW_FLOAT64:
        return told_float(*(const double *)p);
    case SHMVIEW_LONGDOUBLE:
        return told_float((double)*(const long double *)p);
    case SHMVIEW_COMPLEX64:
        return json_pack("{s:[o, o]}", "complex", told_float((double)((const float *)p)[0]),
                         told_float((double)((const float *)p)[1]));
    case SHMVIEW_COMPLEX128:
        return json_pack("{s:[o, o]}", "complex", told_float(((const double *)p)[0]),
                         told_float(((const double *)p)[1]));
    case SHMVIEW_BOOL:
        return json_boolean(*(const _Bool *)p);
    default:
        return json_pack("{s:o}", "hex", hex_of(p, 1));
    }
}

static json_t *dimension_by_pointers(const struct shmview_view *view, uint32_t d, ptrdiff_t *index)
{
    if (d == view->ndim) {
        /* a copy, because the element may begin at any byte */
        _Alignas(long double) char element[sizeof(double _Complex)] = {0};
        size_t n = view->itemsize < sizeof element ? view->itemsize : sizeof element;
        memcpy(element, shmview_at(view, index), n);
        return told_by_pointer(view->dtype, element);
    }
    json_t *all = json_array();
    for (index[d] = 0; index[d] < view->shape[d]; index[d]++)
        json_array_append_new(all, dimension_by_pointers(view, d + 1, index));
    return all;
}

json_t *view_by_pointers(const struct shmview_view *view)
{
    ptrdiff_t index[SHMVIEW_MAX_NDIM];
    if (!*c_type(view->dtype) || view->flags & SHMVIEW_VIEW_INDIRECT)
        return json_null();
    return dimension_by_pointers(view, 0, index);
}
