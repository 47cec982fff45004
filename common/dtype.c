/* SPDX-License-Identifier: Apache-2.0 */
#include "common/dtype.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

_Static_assert(CHAR_BIT == 8 && sizeof(short) == 2 && sizeof(int) == 4, "canonical letters");
_Static_assert(sizeof(long long) == 8 && sizeof(float) == 4 && sizeof(double) == 8, "letters");

static const struct dtype dtypes[] = {
    {SHMVIEW_INT8, 1, "b", "int8", "i1"},       {SHMVIEW_UINT8, 1, "B", "uint8", "u1"},
    {SHMVIEW_INT16, 2, "h", "int16", "i2"},     {SHMVIEW_UINT16, 2, "H", "uint16", "u2"},
    {SHMVIEW_INT32, 4, "i", "int32", "i4"},     {SHMVIEW_UINT32, 4, "I", "uint32", "u4"},
    {SHMVIEW_INT64, 8, "q", "int64", "i8"},     {SHMVIEW_UINT64, 8, "Q", "uint64", "u8"},
    {SHMVIEW_FLOAT32, 4, "f", "float32", "f4"}, {SHMVIEW_FLOAT64, 8, "d", "float64", "f8"},
};

static const struct dtype *dtype_find(const char *text, size_t member)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        const char *have;
        memcpy(&have, (const char *)&dtypes[i] + member, sizeof have);
        if (strcmp(have, text) == 0)
            return &dtypes[i];
    }
    return NULL;
}

/* l and L are 8 bytes in native mode on LP64 and 4 in standard mode. */
static const char *letter_of_long(char c, bool native)
{
    bool wide = native && sizeof(long) == 8;
    if (c == 'l')
        return wide ? "q" : "i";
    return wide ? "Q" : "I";
}

static bool order_is_foreign(char c)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return c == '>' || c == '!';
#else
    return c == '<';
#endif
}

const struct dtype *dtype_parse(const char *format, size_t *ret_at, const char **ret_why)
{
    const struct dtype *t = dtype_find(format, offsetof(struct dtype, name));
    if (t)
        return t;

    const char *p = format;
    bool native = true;
    *ret_at = 0;
    if (*p && strchr("@=<>!", *p)) {
        native = *p == '@';
        if (order_is_foreign(*p)) {
            *ret_why = "the other byte order is not supported";
            return NULL;
        }
        p++;
    }
    *ret_at = (size_t)(p - format);
    if (!*p) {
        *ret_why = "a type code is missing";
        return NULL;
    }
    if (p[1] == '\0')
        t = dtype_find(*p == 'l' || *p == 'L' ? letter_of_long(*p, native) : p,
                       offsetof(struct dtype, format));
    else
        t = dtype_find(p, offsetof(struct dtype, typestr));
    if (!t)
        *ret_why = "no such element type (int8 to int64, uint8 to uint64, float32, float64)";
    return t;
}
