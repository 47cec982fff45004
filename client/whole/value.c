/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of shmview/value.h: one value at any address, without a view.
 *
 * Numbers go to number.c. Strings are handled here. A Pascal string (format p) begins with a byte
 * for its length; a string (format s) is padded with zeros. */
#include <shmview/value.h>

#include <string.h>

#include "client/whole/number.h"
#include "common/views/dtype.h"

int shmview_dtype_kind(uint32_t dtype)
{
    const struct dtype *t = dtype_of(dtype);
    return t ? t->kind : SHMVIEW_VALUE_STRUCT;
}

const char *shmview_dtype_name(uint32_t dtype)
{
    const struct dtype *t = dtype_of(dtype);
    return t ? t->name : dtype == SHMVIEW_STRUCT ? "struct" : NULL;
}

static bool is_pascal(uint32_t dtype)
{
    return (dtype & ~(uint32_t)SHMVIEW_SWAPPED) == SHMVIEW_PASCAL;
}

void shmview_value_load(uint32_t dtype, uint32_t itemsize, const void *p, struct shmview_value *ret)
{
    const int kind = shmview_dtype_kind(dtype);
    const unsigned char *bytes = p;
    uint32_t n = itemsize;
    if (kind > SHMVIEW_VALUE_BYTES) {
        *ret = number_load(dtype, p);
        return;
    }
    if (is_pascal(dtype) && n > 0) {
        /* read once, because another program may write a length at any time; one that exceeds the
         * room is cut */
        const uint32_t length = __atomic_load_n(bytes, __ATOMIC_RELAXED);
        n = length < n ? length : n - 1;
        bytes++;
    }
    *ret = (struct shmview_value){.kind = (uint32_t)kind, .n_bytes = n, .bytes = bytes};
}

/* --- Storing ------------------------------------------------------------- */

/* Stores text and pads it with zeros. Fails, and stores nothing, for text that is too long, and for
 * text that is too short where there is no way to mark its end. */
static int store_bytes(uint32_t dtype, uint32_t itemsize, const struct shmview_value *value,
                       unsigned char *p)
{
    const bool has_length = is_pascal(dtype) && itemsize > 0;
    const bool may_be_shorter = has_length || (dtype & ~(uint32_t)SHMVIEW_SWAPPED) == SHMVIEW_BYTES;
    const uint32_t n = value->n_bytes, room = itemsize - has_length;
    if (shmview_dtype_kind(dtype) > SHMVIEW_VALUE_BYTES)
        return fail(SHMVIEW_ERR_CONVERSION, "text is no value of %s", shmview_dtype_name(dtype));
    if (n > room || (has_length && n > UINT8_MAX) || (n < room && !may_be_shorter))
        return fail(SHMVIEW_ERR_CONVERSION, "text of %u bytes is no value of %s with room for %u",
                    n, shmview_dtype_name(dtype),
                    has_length && room > UINT8_MAX ? UINT8_MAX : room);
    memmove(p + has_length, value->bytes, n);
    memset(p + has_length + n, 0, room - n);
    if (has_length)
        *p = (unsigned char)n;
    return 0;
}

int shmview_value_store(uint32_t dtype, uint32_t itemsize, const struct shmview_value *value,
                        void *p)
{
    struct shmview_value number = *value;
    char text[NUMBER_TEXT_BYTES];
    if (value->kind <= SHMVIEW_VALUE_BYTES)
        return store_bytes(dtype, itemsize, value, p);
    if (value->kind == SHMVIEW_VALUE_REAL)
        number.z[1] = 0;
    if (number_is_type(dtype) && number_store(dtype, &number, p))
        return 0;
    number_text(&number, text);
    return fail(SHMVIEW_ERR_CONVERSION, "%s is no value of %s", text, shmview_dtype_name(dtype));
}
