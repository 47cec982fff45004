/* SPDX-License-Identifier: Apache-2.0 */
#include "common/views/dtype.h"

#include <complex.h>
#include <limits.h>
#include <string.h>

_Static_assert(CHAR_BIT == 8 && sizeof(short) == 2 && sizeof(int) == 4, "canonical letters");
_Static_assert(sizeof(long long) == 8 && sizeof(float) == 4 && sizeof(double) == 8, "letters");

/* numpy's typestr of long double, which depends on the machine; "" if it is the same as double.
 * Even then the type has its own letter, g. */
#define LONG_TYPESTR (sizeof(long double) == 16 ? "f16" : sizeof(long double) == 12 ? "f12" : "")

/* The table is indexed by the code. */
#define ROW(code, kind, type, ordered, letter, name, typestr)                                      \
    [code] = {code,   SHMVIEW_VALUE_##kind, sizeof(type), _Alignof(type), ordered, letter, name,   \
              typestr}
#define FLOAT8(code, name) ROW(code, REAL, uint8_t, false, "", name, "")

static const struct dtype dtypes[] = {
    ROW(SHMVIEW_INT8, INT, int8_t, false, "b", "int8", "i1"),
    ROW(SHMVIEW_UINT8, UINT, uint8_t, false, "B", "uint8", "u1"),
    ROW(SHMVIEW_INT16, INT, int16_t, true, "h", "int16", "i2"),
    ROW(SHMVIEW_UINT16, UINT, uint16_t, true, "H", "uint16", "u2"),
    ROW(SHMVIEW_INT32, INT, int32_t, true, "i", "int32", "i4"),
    ROW(SHMVIEW_UINT32, UINT, uint32_t, true, "I", "uint32", "u4"),
    ROW(SHMVIEW_INT64, INT, int64_t, true, "q", "int64", "i8"),
    ROW(SHMVIEW_UINT64, UINT, uint64_t, true, "Q", "uint64", "u8"),
    ROW(SHMVIEW_FLOAT32, REAL, float, true, "f", "float32", "f4"),
    ROW(SHMVIEW_FLOAT64, REAL, double, true, "d", "float64", "f8"),
    ROW(SHMVIEW_FLOAT16, REAL, uint16_t, true, "e", "float16", "f2"),
    ROW(SHMVIEW_COMPLEX64, COMPLEX, float _Complex, true, "Zf", "complex64", "c8"),
    ROW(SHMVIEW_COMPLEX128, COMPLEX, double _Complex, true, "Zd", "complex128", "c16"),
    ROW(SHMVIEW_LONGDOUBLE, REAL, long double, true, "g", "longdouble", ""),
    ROW(SHMVIEW_BOOL, BOOL, bool, false, "?", "bool", "b1"),
    ROW(SHMVIEW_CHAR, BYTES, char, false, "c", "char", ""),
    ROW(SHMVIEW_POINTER, UINT, void *, true, "P", "pointer", ""),
    ROW(SHMVIEW_BYTES, BYTES, char, false, "s", "bytes", ""),
    ROW(SHMVIEW_PASCAL, BYTES, char, false, "p", "pascal", ""),
    ROW(SHMVIEW_BFLOAT16, REAL, uint16_t, true, "", "bfloat16", ""),
    FLOAT8(SHMVIEW_FLOAT8_E3M4, "float8_e3m4"),
    FLOAT8(SHMVIEW_FLOAT8_E4M3, "float8_e4m3"),
    FLOAT8(SHMVIEW_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz"),
    FLOAT8(SHMVIEW_FLOAT8_E4M3FN, "float8_e4m3fn"),
    FLOAT8(SHMVIEW_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz"),
    FLOAT8(SHMVIEW_FLOAT8_E5M2, "float8_e5m2"),
    FLOAT8(SHMVIEW_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz"),
    FLOAT8(SHMVIEW_FLOAT8_E8M0FNU, "float8_e8m0fnu"),
};
#define N_DTYPES (sizeof dtypes / sizeof dtypes[0])

const struct dtype *dtype_of(uint32_t code)
{
    code &= ~(uint32_t)SHMVIEW_SWAPPED;
    return code && code < N_DTYPES ? &dtypes[code] : NULL;
}

/* Types whose names are only for display, and are not accepted as formats. */
static bool is_letter_only(uint32_t code)
{
    return code >= SHMVIEW_CHAR && code <= SHMVIEW_PASCAL;
}

const struct dtype *dtype_by_name(const char *text)
{
    for (size_t i = 1; i < N_DTYPES; i++)
        if (strcmp(dtypes[i].name, text) == 0 && !is_letter_only(dtypes[i].code))
            return &dtypes[i];
    return NULL;
}

const struct dtype *dtype_by_typestr(const char *text)
{
    if (text[0] && strcmp(text, LONG_TYPESTR) == 0)
        return &dtypes[SHMVIEW_LONGDOUBLE];
    for (size_t i = 1; i < N_DTYPES; i++)
        if (dtypes[i].typestr[0] && strcmp(dtypes[i].typestr, text) == 0)
            return &dtypes[i];
    return NULL;
}

/* The type of l, L, n and N, whose size depends on the mode and the machine. */
static uint32_t code_of_c_type(char letter, bool native)
{
    size_t bytes = letter == 'l' || letter == 'L' ? sizeof(long) : sizeof(size_t);
    bool is_signed = letter == 'l' || letter == 'n';
    bool wide = native && bytes == 8;
    if (is_signed)
        return wide ? SHMVIEW_INT64 : SHMVIEW_INT32;
    return wide ? SHMVIEW_UINT64 : SHMVIEW_UINT32;
}

const struct dtype *dtype_by_letter(char letter, bool native)
{
    if (letter == 'l' || letter == 'L')
        return &dtypes[code_of_c_type(letter, native)];
    if (letter == 'n' || letter == 'N')
        return native ? &dtypes[code_of_c_type(letter, true)] : NULL;
    if (letter == 'P' || letter == 'g')
        return native ? &dtypes[letter == 'P' ? SHMVIEW_POINTER : SHMVIEW_LONGDOUBLE] : NULL;
    if (letter == 'F' || letter == 'D')
        return &dtypes[letter == 'F' ? SHMVIEW_COMPLEX64 : SHMVIEW_COMPLEX128];
    for (size_t i = 1; i < N_DTYPES; i++)
        if (dtypes[i].letters[0] == letter && !dtypes[i].letters[1])
            return &dtypes[i];
    return NULL;
}
