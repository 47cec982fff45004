/* SPDX-License-Identifier: Apache-2.0 */
/* shmview_summarize(): least, greatest and sum of a view, in one pass.
 *
 * The kernels know the types from int8 to float64. Other types are converted to one of these in
 * blocks, without loss; only a long double is rounded. The order of the walk is that of the
 * memory. */
#include <math.h>
#include <string.h>

#include "client/whole/bulk.h"

/* How the elements of a view are summed. Set once for a call. */
struct summing {
    kernel_sum *run;
    bool is_converted; /* to a type that has a kernel */
    struct conversion conversion;
    bool is_long; /* of long double, which is rounded to double */
    bool is_integer;
};

/* Chooses how to sum. Returns false if the elements are no real numbers. */
static bool summing_of(uint32_t dtype, struct summing *ret)
{
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    uint32_t as = dtype;
    *ret = (struct summing){.is_long = dtype == SHMVIEW_LONGDOUBLE};
    if (dtype == SHMVIEW_BOOL || dtype == SHMVIEW_CHAR)
        as = SHMVIEW_UINT8;
    else if (dtype == SHMVIEW_POINTER)
        as = SHMVIEW_UINT64;
    else if (dtype == SHMVIEW_LONGDOUBLE)
        as = SHMVIEW_FLOAT64;
    else if (kernel_to_decode(dtype))
        as = SHMVIEW_FLOAT32;
    ret->is_converted = as != dtype && !ret->is_long;
    if (ret->is_converted)
        ret->conversion = conversion_of(as, dtype);
    ret->is_integer = as <= SHMVIEW_UINT64;
    ret->run = kernel_to_sum(as);
    return ret->run != NULL;
}

/* Rounds long doubles to doubles. A number that is too large becomes infinite, unlike in
 * shmview_get_double(). */
static void round_all(double *to, const unsigned char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        long double x;
        memcpy(&x, from + i * sizeof x, sizeof x);
        to[i] = (double)x;
    }
}

static void add_block(const struct summing *s, struct sum *sum, const void *from, size_t n)
{
    double converted[BLOCK];
    if (s->is_long)
        round_all(converted, from, n);
    else if (s->is_converted)
        conversion_run(&s->conversion, converted, from, n);
    s->run(sum, s->is_long || s->is_converted ? converted : from, n);
}

/* Adds all n elements in the order of the reader. Returns 0, or an error if a stored offset leads
 * outside. */
static int add_all(const struct summing *s, struct sum *sum, struct bulk_reader *from, uint64_t n)
{
    const size_t at_once = s->is_converted || s->is_long ? BLOCK : SUM_MOST;
    _Alignas(64) unsigned char buffer[BLOCK_BYTES];
    while (n) {
        const void *p;
        int r = cursor_look(&from->cursor);
        if (r)
            return r;
        size_t k = bulk_stretch(&from->cursor, !from->unit, n);
        k = k < at_once ? k : at_once;
        r = bulk_read(from, k, buffer, &p);
        if (r)
            return r;
        add_block(s, sum, p, k);
        n -= k;
    }
    return 0;
}

/* Cuts to the range of int64; a uint64 can be greater. */
static int64_t cut(int128 x)
{
    return x < INT64_MIN ? INT64_MIN : x > INT64_MAX ? INT64_MAX : (int64_t)x;
}

/* Fills *ret, whose n is set and whose other members are 0. If no element is a number, the sum
 * stays 0. */
static void tell(const struct summing *s, const struct sum *sum, struct shmview_summary *ret)
{
    ret->n_nan = sum->n_nan;
    if (ret->n == ret->n_nan) {
        ret->min = ret->max = (double)NAN;
    } else if (s->is_integer) {
        ret->min = (double)sum->min_whole;
        ret->max = (double)sum->max_whole;
        ret->sum = (double)sum->whole;
        ret->min_int64 = cut(sum->min_whole);
        ret->max_int64 = cut(sum->max_whole);
    } else {
        ret->min = sum->min;
        ret->max = sum->max;
        ret->sum = isfinite(sum->total) ? sum->total + sum->rest : sum->total;
    }
}

int shmview_summarize(const struct shmview_view *view, struct shmview_summary *ret)
{
    struct summing s;
    struct sum sum = SUM_OF_NOTHING;
    struct shmview_summary told = {.n = bulk_count(view)};
    if (!summing_of(view->dtype, &s))
        return fail(SHMVIEW_ERR_CONVERSION, "elements of format \"%.200s\" are no real numbers",
                    view->format);
    if (told.n) {
        struct bulk_reader from = bulk_reader_of(view);
        if (!bulk_is_indirect(view)) {
            struct walk walk;
            walk_init(&walk, view, NULL);
            walk_sort(&walk);
            cursor_init(&from.cursor, &walk, 0);
        }
        int r = add_all(&s, &sum, &from, told.n);
        if (r)
            return r;
    }
    tell(&s, &sum, &told);
    *ret = told;
    return 0;
}
