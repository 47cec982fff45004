/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/data/scalar.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/shmview.h>

#define N_DTYPES     (SHMVIEW_FLOAT8_E8M0FNU + 1)
#define ITEM_BYTES   16 /* of the largest number */
#define PYTHON_LEAST 1e-4L
#define PYTHON_MOST  1e16L

static const char *const formats[N_DTYPES] = {
    [SHMVIEW_INT8] = "b",
    [SHMVIEW_UINT8] = "B",
    [SHMVIEW_INT16] = "h",
    [SHMVIEW_UINT16] = "H",
    [SHMVIEW_INT32] = "i",
    [SHMVIEW_UINT32] = "I",
    [SHMVIEW_INT64] = "q",
    [SHMVIEW_UINT64] = "Q",
    [SHMVIEW_FLOAT32] = "f",
    [SHMVIEW_FLOAT64] = "d",
    [SHMVIEW_FLOAT16] = "e",
    [SHMVIEW_COMPLEX64] = "Zf",
    [SHMVIEW_COMPLEX128] = "Zd",
    [SHMVIEW_LONGDOUBLE] = "g",
    [SHMVIEW_BOOL] = "?",
    [SHMVIEW_CHAR] = "c",
    [SHMVIEW_POINTER] = "P",
    [SHMVIEW_BFLOAT16] = "bfloat16",
    [SHMVIEW_FLOAT8_E3M4] = "float8_e3m4",
    [SHMVIEW_FLOAT8_E4M3] = "float8_e4m3",
    [SHMVIEW_FLOAT8_E4M3B11FNUZ] = "float8_e4m3b11fnuz",
    [SHMVIEW_FLOAT8_E4M3FN] = "float8_e4m3fn",
    [SHMVIEW_FLOAT8_E4M3FNUZ] = "float8_e4m3fnuz",
    [SHMVIEW_FLOAT8_E5M2] = "float8_e5m2",
    [SHMVIEW_FLOAT8_E5M2FNUZ] = "float8_e5m2fnuz",
    [SHMVIEW_FLOAT8_E8M0FNU] = "float8_e8m0fnu",
};

/* A view of one element of dtype in memory of our own, through which the library converts. NULL:
 * dtype is no number, or memory is short. */
static const struct shmview_view *scratch_of(uint32_t dtype)
{
    static _Alignas(ITEM_BYTES) unsigned char bytes[ITEM_BYTES];
    static struct shmview_segment *segment;
    static struct shmview_view views[N_DTYPES];
    if (dtype >= N_DTYPES || !formats[dtype])
        return NULL;
    struct shmview_view *v = &views[dtype];
    if (v->data)
        return v;
    const struct shmview_view_spec spec = {.format = formats[dtype]};
    if (!segment && shmview_wrap(bytes, sizeof bytes, 0, NULL, NULL, &segment))
        return NULL;
    return shmview_view_make(segment, &spec, v) ? NULL : v;
}

bool scalar_is_complex(uint32_t dtype)
{
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    return dtype == SHMVIEW_COMPLEX64 || dtype == SHMVIEW_COMPLEX128;
}

bool scalar_is_real(uint32_t dtype)
{
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    return dtype == SHMVIEW_FLOAT32 || dtype == SHMVIEW_FLOAT64 || dtype == SHMVIEW_FLOAT16 ||
           dtype == SHMVIEW_LONGDOUBLE || (dtype >= SHMVIEW_BFLOAT16 && dtype < N_DTYPES);
}

/* Copies the number and reverses it, each part of a complex by itself, if it is swapped. */
static void copy_native(uint32_t dtype, uint32_t itemsize, const unsigned char *from,
                        unsigned char *to)
{
    uint32_t part = scalar_is_complex(dtype) ? itemsize / 2 : itemsize;
    for (uint32_t i = 0; i < itemsize; i++)
        to[i] = from[dtype & SHMVIEW_SWAPPED ? i / part * part + part - 1 - i % part : i];
}

bool scalar_load(uint32_t dtype, uint32_t itemsize, const void *bytes, struct scalar *ret)
{
    const uint32_t native = dtype & ~(uint32_t)SHMVIEW_SWAPPED;
    const struct shmview_view *v = scratch_of(native);
    struct scalar s = {.kind = SCALAR_INT, .part = native};
    double x = 0, z[2];
    bool ok;
    if (!v || itemsize > ITEM_BYTES)
        return false;
    copy_native(dtype, itemsize, bytes, v->data);
    if (native == SHMVIEW_UINT64 || native == SHMVIEW_POINTER) {
        s.kind = SCALAR_UINT;
        s.u = *SHMVIEW_DATA(uint64_t, v);
        ok = true;
    } else if (native == SHMVIEW_LONGDOUBLE) {
        s.kind = SCALAR_REAL;
        s.z[0] = *SHMVIEW_DATA(long double, v);
        ok = true;
    } else if (scalar_is_complex(native)) {
        s.kind = SCALAR_COMPLEX;
        s.part = native == SHMVIEW_COMPLEX64 ? SHMVIEW_FLOAT32 : SHMVIEW_FLOAT64;
        ok = shmview_get_complex(v, NULL, z) == 0;
        s.z[0] = (long double)z[0];
        s.z[1] = (long double)z[1];
    } else if (scalar_is_real(native)) {
        s.kind = SCALAR_REAL;
        ok = shmview_get_double(v, NULL, &x) == 0;
        s.z[0] = (long double)x;
    } else {
        s.kind = native == SHMVIEW_BOOL ? SCALAR_BOOL : SCALAR_INT;
        ok = shmview_get_int64(v, NULL, &s.i) == 0;
    }
    if (ok)
        *ret = s;
    return ok;
}

/* --- Digits ----------------------------------------------------------------- */

/* Whether text is read as x where floats of dtype are read. */
static bool reads_as(const char *text, long double x, uint32_t dtype)
{
    double back;
    if (dtype == SHMVIEW_FLOAT64)
        return strtod(text, NULL) == (double)x;
    if (dtype == SHMVIEW_FLOAT32)
        return strtof(text, NULL) == (float)x;
    if (dtype == SHMVIEW_LONGDOUBLE)
        return strtold(text, NULL) == x;
    const struct shmview_view *v = scratch_of(dtype);
    return v && shmview_set_double(v, NULL, strtod(text, NULL)) == 0 &&
           shmview_get_double(v, NULL, &back) == 0 && back == (double)x;
}

/* With how many digits a search begins: every float of a normal size has these; what is cut off
 * behind them are zeros. */
static int digits_least(long double x, uint32_t dtype)
{
    if (dtype == SHMVIEW_FLOAT64 && fabsl(x) >= (long double)DBL_MIN)
        return DBL_DIG;
    if (dtype == SHMVIEW_FLOAT32 && fabsl(x) >= (long double)FLT_MIN)
        return FLT_DIG;
    if (dtype == SHMVIEW_LONGDOUBLE && fabsl(x) >= LDBL_MIN)
        return LDBL_DIG;
    return 1;
}

void scalar_digits(long double x, uint32_t dtype, struct digits *ret)
{
    char text[SCALAR_DIGITS + 16];
    struct digits d = {.is_negative = signbit(x) != 0, .is_finite = isfinite(x) != 0};
    if (!d.is_finite || x == 0) {
        d.n = d.is_finite;
        d.point = d.is_finite;
        d.text[0] = '0';
        *ret = d;
        return;
    }
    for (int n = digits_least(x, dtype); n < LDBL_DECIMAL_DIG + 1; n++) {
        snprintf(text, sizeof text, "%.*Le", n - 1, fabsl(x));
        if (reads_as(text, fabsl(x), dtype))
            break;
    }
    const char *p = text;
    for (; *p && *p != 'e'; p++)
        if (*p != '.')
            d.text[d.n++] = *p;
    while (d.n > 1 && d.text[d.n - 1] == '0')
        d.n--;
    d.text[d.n] = '\0';
    d.point = atoi(p + 1) + 1;
    *ret = d;
}

/* --- Texts ------------------------------------------------------------------ */

static int real_text(long double x, uint32_t dtype, char *text, size_t bytes)
{
    struct digits d;
    const char *sign = signbit(x) && !isnan(x) ? "-" : "";
    scalar_digits(x, dtype, &d);
    if (!d.is_finite)
        return snprintf(text, bytes, "%s%s", sign, isnan(x) ? "nan" : "inf");
    if (x != 0 && (fabsl(x) < PYTHON_LEAST || fabsl(x) >= PYTHON_MOST))
        return snprintf(text, bytes, "%s%c%s%.*se%c%02d", sign, d.text[0], d.n > 1 ? "." : "",
                        d.n - 1, d.text + 1, d.point <= 0 ? '-' : '+', abs(d.point - 1));
    if (d.point <= 0)
        return snprintf(text, bytes, "%s0.%.*s%.*s", sign, -d.point, "0000000000", d.n, d.text);
    if (d.n <= d.point)
        return snprintf(text, bytes, "%s%s%.*s.0", sign, d.text, d.point - d.n,
                        "00000000000000000000");
    return snprintf(text, bytes, "%s%.*s.%s", sign, d.point, d.text, d.text + d.point);
}

/* Without the ".0" of a float: as Python has the parts of a complex. */
static void trim_zero(char *text)
{
    size_t n = strlen(text);
    if (n > 2 && strcmp(text + n - 2, ".0") == 0)
        text[n - 2] = '\0';
}

const char *scalar_text(const struct scalar *s, char text[SCALAR_TEXT_BYTES])
{
    char re[SCALAR_TEXT_BYTES / 2 - 4], im[SCALAR_TEXT_BYTES / 2 - 4];
    switch (s->kind) {
    case SCALAR_BOOL:
        return strcpy(text, s->i ? "True" : "False");
    case SCALAR_INT:
        snprintf(text, SCALAR_TEXT_BYTES, "%" PRId64, s->i);
        break;
    case SCALAR_UINT:
        snprintf(text, SCALAR_TEXT_BYTES, "%" PRIu64, s->u);
        break;
    case SCALAR_REAL:
        real_text(s->z[0], s->part, text, SCALAR_TEXT_BYTES);
        break;
    case SCALAR_COMPLEX:
        real_text(s->z[0], s->part, re, sizeof re);
        real_text(s->z[1], s->part, im, sizeof im);
        trim_zero(re);
        trim_zero(im);
        if (s->z[0] == 0 && !signbit(s->z[0]))
            snprintf(text, SCALAR_TEXT_BYTES, "%sj", im);
        else
            snprintf(text, SCALAR_TEXT_BYTES, "(%s%s%sj)", re, im[0] == '-' ? "" : "+", im);
        break;
    }
    return text;
}

/* What is no number in JSON is a string. */
static int real_json(long double x, uint32_t dtype, char *text, size_t bytes)
{
    if (isfinite(x))
        return real_text(x, dtype, text, bytes);
    return snprintf(text, bytes, "\"%s\"", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
}

const char *scalar_json(const struct scalar *s, char text[SCALAR_TEXT_BYTES])
{
    char re[SCALAR_TEXT_BYTES / 2 - 4], im[SCALAR_TEXT_BYTES / 2 - 4];
    switch (s->kind) {
    case SCALAR_BOOL:
        return strcpy(text, s->i ? "true" : "false");
    case SCALAR_REAL:
        real_json(s->z[0], s->part, text, SCALAR_TEXT_BYTES);
        return text;
    case SCALAR_COMPLEX:
        real_json(s->z[0], s->part, re, sizeof re);
        real_json(s->z[1], s->part, im, sizeof im);
        snprintf(text, SCALAR_TEXT_BYTES, "[%s, %s]", re, im);
        return text;
    default:
        return scalar_text(s, text);
    }
}
