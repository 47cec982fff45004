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

struct type {
    enum kind kind;
    const char *format; /* "": by its bytes */
    const char *c_type; /* "": none */
};

static const struct type types[] = {
    [SHMVIEW_STRUCT] = {KIND_STRUCT, "", ""},
    [SHMVIEW_INT8] = {KIND_INTEGER, "b", "int8_t"},
    [SHMVIEW_UINT8] = {KIND_INTEGER, "B", "uint8_t"},
    [SHMVIEW_INT16] = {KIND_INTEGER, "h", "int16_t"},
    [SHMVIEW_UINT16] = {KIND_INTEGER, "H", "uint16_t"},
    [SHMVIEW_INT32] = {KIND_INTEGER, "i", "int32_t"},
    [SHMVIEW_UINT32] = {KIND_INTEGER, "I", "uint32_t"},
    [SHMVIEW_INT64] = {KIND_INTEGER, "q", "int64_t"},
    [SHMVIEW_UINT64] = {KIND_INTEGER, "Q", "uint64_t"},
    [SHMVIEW_FLOAT32] = {KIND_FLOAT, "f", "float"},
    [SHMVIEW_FLOAT64] = {KIND_FLOAT, "d", "double"},
    [SHMVIEW_FLOAT16] = {KIND_FLOAT, "e", ""},
    [SHMVIEW_COMPLEX64] = {KIND_COMPLEX, "Zf", "float _Complex"},
    [SHMVIEW_COMPLEX128] = {KIND_COMPLEX, "Zd", "double _Complex"},
    [SHMVIEW_LONGDOUBLE] = {KIND_FLOAT, "g", "long double"},
    [SHMVIEW_BOOL] = {KIND_TRUTH, "?", "_Bool"},
    [SHMVIEW_CHAR] = {KIND_BYTES, "", "char"},
    [SHMVIEW_POINTER] = {KIND_INTEGER, "P", ""},
    [SHMVIEW_BYTES] = {KIND_BYTES, "", ""},
    [SHMVIEW_PASCAL] = {KIND_BYTES, "", ""},
    [SHMVIEW_BFLOAT16] = {KIND_FLOAT, "bfloat16", ""},
    [SHMVIEW_FLOAT8_E3M4] = {KIND_FLOAT, "float8_e3m4", ""},
    [SHMVIEW_FLOAT8_E4M3] = {KIND_FLOAT, "float8_e4m3", ""},
    [SHMVIEW_FLOAT8_E4M3B11FNUZ] = {KIND_FLOAT, "float8_e4m3b11fnuz", ""},
    [SHMVIEW_FLOAT8_E4M3FN] = {KIND_FLOAT, "float8_e4m3fn", ""},
    [SHMVIEW_FLOAT8_E4M3FNUZ] = {KIND_FLOAT, "float8_e4m3fnuz", ""},
    [SHMVIEW_FLOAT8_E5M2] = {KIND_FLOAT, "float8_e5m2", ""},
    [SHMVIEW_FLOAT8_E5M2FNUZ] = {KIND_FLOAT, "float8_e5m2fnuz", ""},
    [SHMVIEW_FLOAT8_E8M0FNU] = {KIND_FLOAT, "float8_e8m0fnu", ""},
};

static const struct type *type_of(uint32_t dtype)
{
    return &types[dtype & ~(uint32_t)SHMVIEW_SWAPPED];
}

enum kind kind_of(uint32_t dtype)
{
    return type_of(dtype)->kind;
}

const char *c_type(uint32_t dtype)
{
    return dtype & SHMVIEW_SWAPPED ? "" : type_of(dtype)->c_type;
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

static json_t *told_bytes(uint32_t dtype, const unsigned char *bytes, size_t n)
{
    if (dtype == SHMVIEW_PASCAL) {
        n = bytes[0] < n ? bytes[0] : n - 1;
        bytes++;
    }
    return json_pack("{s:o}", "hex", hex_of(bytes, n));
}

static void put_bytes(uint32_t dtype, unsigned char *bytes, size_t n, const json_t *value)
{
    size_t skip = dtype == SHMVIEW_PASCAL;
    memset(bytes, 0, n);
    size_t put = bytes_of(text_of(value, "hex"), bytes + skip, n - skip);
    if (skip)
        bytes[0] = (unsigned char)put;
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

/* What fits an int64 is JSON's integer; what lies above is a text of its digits. */
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
    switch (kind_of(view->dtype)) {
    case KIND_INTEGER:
        return told_integer(view, index, ret);
    case KIND_TRUTH:
        if ((r = shmview_get_int64(view, index, &n)) == 0)
            *ret = json_boolean(n);
        return r;
    case KIND_FLOAT:
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

/* The result of reading or writing an array, of which nothing is kept if that failed. */
static int array_end(int r, bool writes, json_t **value)
{
    if (r < 0 && !writes) {
        json_decref(*value);
        *value = NULL;
    }
    return r;
}

/* --- Structs ---------------------------------------------------------------- */

struct parts {
    struct shmview_format format;
    struct shmview_component list[MAX_PARTS];
    bool writes;
};

/* One number of a struct, which need not be aligned there: by way of memory that is. */
static int leaf_move(const struct parts *parts, const struct shmview_component *part,
                     unsigned char *at, json_t **value)
{
    _Alignas(16) unsigned char aligned[sizeof(double _Complex)];
    struct shmview_segment *wrapped;
    struct shmview_view view;
    char format[NAMED_BYTES];
    uint32_t dtype = part->dtype & ~(uint32_t)SHMVIEW_SWAPPED;
    if (kind_of(dtype) == KIND_BYTES) {
        if (parts->writes)
            put_bytes(dtype, at, part->itemsize, *value);
        else
            *value = told_bytes(dtype, at, part->itemsize);
        return 0;
    }
    snprintf(format, sizeof format, "%s%s", part->dtype & SHMVIEW_SWAPPED ? ">" : "",
             type_of(dtype)->format);
    memcpy(aligned, at, part->itemsize);
    int r = shmview_wrap(aligned, part->itemsize, 0, NULL, NULL, &wrapped);
    if (r < 0)
        return r;
    r = shmview_view_cast(wrapped, format, 0, SHMVIEW_REST, &view);
    if (r == 0)
        r = parts->writes ? number_write(&view, (ptrdiff_t[]){0}, *value)
                          : number_read(&view, (ptrdiff_t[]){0}, value);
    memcpy(at, aligned, part->itemsize);
    shmview_detach(wrapped);
    return r;
}

static int array_move(const struct parts *parts, uint32_t i, uint32_t d, uint32_t first,
                      unsigned char *at, json_t **value);

/* The parts from i on that are of one depth, as an array. */
static int struct_move(const struct parts *parts, uint32_t i, unsigned char *at, json_t **value)
{
    uint32_t depth = parts->list[i].depth;
    int r = 0;
    if (!parts->writes)
        *value = json_array();
    for (size_t k = 0; r == 0 && i < parts->format.n_components && parts->list[i].depth >= depth;
         i++) {
        if (parts->list[i].depth > depth)
            continue;
        json_t *part = json_array_get(*value, k++);
        r = array_move(parts, i, 0, 0, at, &part);
        if (r == 0 && !parts->writes)
            json_array_append_new(*value, part);
    }
    return array_end(r, parts->writes, value);
}

/* Dimension d of part i, whose element first is the next one. */
static int array_move(const struct parts *parts, uint32_t i, uint32_t d, uint32_t first,
                      unsigned char *at, json_t **value)
{
    const struct shmview_component *part = &parts->list[i];
    int r = 0;
    if (d == part->ndim) {
        at += (size_t)first * part->itemsize;
        return part->dtype == SHMVIEW_STRUCT ? struct_move(parts, i + 1, at, value)
                                             : leaf_move(parts, part, at + part->offset, value);
    }
    uint32_t step = 1;
    for (uint32_t k = d + 1; k < part->ndim; k++)
        step *= part->shape[k];
    if (!parts->writes)
        *value = json_array();
    for (uint32_t k = 0; r == 0 && k < part->shape[d]; k++) {
        json_t *one = json_array_get(*value, k);
        r = array_move(parts, i, d + 1, first + k * step, at, &one);
        if (r == 0 && !parts->writes)
            json_array_append_new(*value, one);
    }
    return array_end(r, parts->writes, value);
}

/* --- Elements --------------------------------------------------------------- */

static int bytes_move(const struct shmview_view *view, const ptrdiff_t *index, json_t **value,
                      bool writes)
{
    struct parts parts = {.writes = writes};
    unsigned char element[ELEMENT_BYTES];
    if (view->itemsize > sizeof element)
        refuse("too large for the test", view->format);
    int r = shmview_get_bytes(view, index, element);
    if (r < 0)
        return r;
    if (view->dtype != SHMVIEW_STRUCT) {
        if (!writes)
            *value = told_bytes(view->dtype, element, view->itemsize);
        else
            put_bytes(view->dtype, element, view->itemsize, *value);
    } else {
        r = shmview_format_parse(view->format, &parts.format, parts.list, MAX_PARTS);
        if (r == 0)
            r = struct_move(&parts, 0, element, value);
    }
    return r == 0 && writes ? shmview_set_bytes(view, index, element) : r;
}

int element_move(const struct shmview_view *view, const ptrdiff_t *index, json_t **value,
                 bool writes)
{
    enum kind kind = kind_of(view->dtype);
    if (kind == KIND_STRUCT || kind == KIND_BYTES)
        return bytes_move(view, index, value, writes);
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
        return told_bytes(dtype, p, 1);
    }
}

static json_t *dimension_by_pointers(const struct shmview_view *view, uint32_t d, ptrdiff_t *index)
{
    if (d == view->ndim)
        return told_by_pointer(view->dtype, shmview_at(view, index));
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
