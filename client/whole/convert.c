/* SPDX-License-Identifier: Apache-2.0 */
/* Plans conversions and runs their steps; see convert.h. */
#include "client/whole/convert.h"

#include "common/views/dtype.h"

static bool is_complex(uint32_t dtype)
{
    return dtype == SHMVIEW_COMPLEX64 || dtype == SHMVIEW_COMPLEX128;
}

/* Returns the type of the real and of the imaginary part. */
static uint32_t part_of(uint32_t dtype)
{
    return dtype == SHMVIEW_COMPLEX64 ? SHMVIEW_FLOAT32 : SHMVIEW_FLOAT64;
}

uint32_t swap_unit(uint32_t dtype)
{
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    uint32_t bytes = dtype_of(dtype)->itemsize;
    return is_complex(dtype) ? bytes / 2 : bytes;
}

static bool is_float(uint32_t dtype)
{
    return dtype == SHMVIEW_FLOAT32 || dtype == SHMVIEW_FLOAT64;
}

/* Sets the steps of *c. Small floats are decoded to float32 and encoded from float64; a kernel
 * converts between these and the common types. The last step rounds only if the source is a float:
 * an integer must keep its value, so it first has to be exact as float64 and then as the small
 * float. Returns false if there is no chain of kernels. */
static bool plan(struct conversion *c, uint32_t to, uint32_t from)
{
    c->decode = kernel_to_decode(from);
    from = c->decode ? SHMVIEW_FLOAT32 : from;
    c->encode = kernel_to_encode(to, !is_float(from));
    to = c->encode ? SHMVIEW_FLOAT64 : to;
    c->is_total = !c->encode;
    if (to == from && (c->decode || c->encode))
        return true;
    struct kernel_conversion k = kernel_to_convert(to, from);
    c->convert = k.run;
    c->is_total &= k.is_total;
    if (k.run) {
        c->to_step = dtype_of(to)->itemsize;
        c->from_step = dtype_of(from)->itemsize;
    }
    return k.run != NULL;
}

struct conversion conversion_of(uint32_t to, uint32_t from)
{
    to &= ~(uint32_t)SHMVIEW_SWAPPED;
    from &= ~(uint32_t)SHMVIEW_SWAPPED;
    struct conversion c = {.to = to, .from = from, .units = 1};
    if (is_complex(to) && is_complex(from)) {
        c.units = 2;
        to = part_of(to);
        from = part_of(from);
    }
    if (!plan(&c, to, from))
        c = (struct conversion){.to = c.to, .from = c.from, .units = 1};
    return c;
}

/* Like conversion_run(), number by number through struct shmview_value. Slow, but it knows every
 * pair of types. */
static size_t run_numbers(const struct conversion *c, unsigned char *to, const unsigned char *from,
                          size_t n)
{
    const size_t to_bytes = dtype_of(c->to)->itemsize, from_bytes = dtype_of(c->from)->itemsize;
    for (size_t i = 0; i < n; i++) {
        struct shmview_value x = number_load(c->from, from + i * from_bytes);
        if (!number_store(c->to, &x, to + i * to_bytes))
            return i;
    }
    return n;
}

size_t conversion_run(const struct conversion *c, void *to, const void *from, size_t n)
{
    _Alignas(64) unsigned char decoded[BLOCK * sizeof(float)], converted[BLOCK * sizeof(double)];
    if (!c->decode && !c->convert && !c->encode)
        return run_numbers(c, to, from, n);
    if (c->decode) {
        void *q = c->convert || c->encode ? decoded : to;
        n = c->decode(q, from, n);
        from = q;
    }
    if (c->convert) {
        void *q = c->encode ? converted : to;
        n = c->convert(q, c->to_step, from, c->from_step, n * c->units) / c->units;
        from = q;
    }
    return c->encode ? c->encode(to, from, n) : n;
}
