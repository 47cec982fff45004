/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/data/value.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <shmview/shmview.h>

#include "cli/data/scalar.h"

static int refuse(struct problem *problem, const char *text)
{
    return problem_set(problem, "'%s': %s", text, shmview_error_text());
}

static int set_text(const struct shmview_view *view, const ptrdiff_t *index, const char *text,
                    struct problem *problem)
{
    const bool is_pascal = (view->dtype & ~(uint32_t)SHMVIEW_SWAPPED) == SHMVIEW_PASCAL;
    size_t n = strlen(text), room = view->itemsize - is_pascal;
    if (n > room)
        return problem_set(problem, "'%s' has %zu bytes, the element has room for %zu", text, n,
                           room);
    if (is_pascal && n > UINT8_MAX)
        return problem_set(
            problem, "'%s' has %zu bytes; a string with a length byte has at most 255", text, n);
    char *bytes = calloc(1, view->itemsize);
    if (!bytes)
        return problem_set(problem, "out of memory");
    if (is_pascal)
        bytes[0] = (char)n;
    memcpy(bytes + is_pascal, text, n);
    int r = shmview_set_bytes(view, index, bytes);
    free(bytes);
    return r ? refuse(problem, text) : 0;
}

/* Of both signs, to the whole range of 64 bits. Returns whether text is an integer. */
static bool read_integer(const char *text, bool *ret_negative, uint64_t *ret)
{
    const char *p = text + (*text == '-' || *text == '+');
    char *end;
    if (*p < '0' || *p > '9')
        return false;
    errno = 0;
    *ret = strtoull(p, &end, p[0] == '0' && (p[1] | 0x20) == 'x' ? 16 : 10);
    *ret_negative = *text == '-';
    return *end == '\0' && errno == 0;
}

static int set_integer(const struct shmview_view *view, const ptrdiff_t *index, const char *text,
                       struct problem *problem)
{
    const bool is_unsigned64 = view->dtype == SHMVIEW_UINT64 || view->dtype == SHMVIEW_POINTER;
    bool is_negative;
    uint64_t u;
    if (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)
        return shmview_set_int64(view, index, (text[0] | 0x20) == 't') ? refuse(problem, text) : 0;
    if (!read_integer(text, &is_negative, &u))
        return problem_set(problem, "'%s' is no integer, and the elements are", text);
    if (u > INT64_MAX && is_unsigned64 && !is_negative)
        return shmview_set_bytes(view, index, &u) ? refuse(problem, text) : 0;
    if (u > (uint64_t)INT64_MAX + is_negative)
        return problem_set(problem, "'%s' does not fit an element of format \"%s\"", text,
                           view->format);
    int64_t i = is_negative ? (int64_t)(0 - u) : (int64_t)u;
    return shmview_set_int64(view, index, i) ? refuse(problem, text) : 0;
}

/* 1, 2.5, -1e9, nan; 1+2j, 2j, (1-2j). */
static bool read_complex(const char *text, double ret[2])
{
    char *end;
    const bool bracket = *text == '(';
    const char *p = text + bracket;
    ret[0] = strtod(p, &end);
    ret[1] = 0;
    if (end == p)
        return false;
    if (*end == '+' || *end == '-') {
        p = end;
        ret[1] = strtod(p, &end);
        if (end == p || *end++ != 'j')
            return false;
    } else if (*end == 'j') {
        ret[1] = ret[0];
        ret[0] = 0;
        end++;
    }
    return !bracket ? *end == '\0' : end[0] == ')' && end[1] == '\0';
}

static int set_float(const struct shmview_view *view, const ptrdiff_t *index, const char *text,
                     struct problem *problem)
{
    double z[2];
    if (!read_complex(text, z))
        return problem_set(problem, "'%s' is no number, and the elements are", text);
    /* a literal beyond the largest double is not what was meant by inf */
    if ((isinf(z[0]) || isinf(z[1])) && !strpbrk(text, "nN"))
        return problem_set(problem, "'%s' is more than a double can hold", text);
    if (scalar_is_complex(view->dtype))
        return shmview_set_complex(view, index, z) ? refuse(problem, text) : 0;
    if (strchr(text, 'j'))
        return problem_set(problem, "'%s' is complex, and the elements are real", text);
    return shmview_set_double(view, index, z[0]) ? refuse(problem, text) : 0;
}

int value_set(const struct shmview_view *view, const ptrdiff_t *index, const char *text,
              struct problem *problem)
{
    const uint32_t dtype = view->dtype & ~(uint32_t)SHMVIEW_SWAPPED;
    if (dtype == SHMVIEW_CHAR || dtype == SHMVIEW_BYTES || dtype == SHMVIEW_PASCAL)
        return set_text(view, index, text, problem);
    if (dtype == SHMVIEW_STRUCT)
        return problem_set(problem,
                           "the elements are structs (\"%s\"): name a field, as in [field], "
                           "and an element of it where it is an array",
                           view->format);
    if (scalar_is_real(dtype) || scalar_is_complex(dtype))
        return set_float(view, index, text, problem);
    return set_integer(view, index, text, problem);
}
