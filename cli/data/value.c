/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/data/value.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <shmview/value.h>

/* Reads an integer from INT64_MIN to UINT64_MAX, decimal or 0x. Whether it fits into the element is
 * checked by shmview_value_store(). */
static bool read_integer(const char *text, struct shmview_value *ret)
{
    const char *p = text + (*text == '-' || *text == '+');
    const bool is_negative = *text == '-';
    char *end;
    if (*p < '0' || *p > '9')
        return false;
    errno = 0;
    uint64_t u = strtoull(p, &end, p[0] == '0' && (p[1] | 0x20) == 'x' ? 16 : 10);
    *ret = (struct shmview_value){.kind = SHMVIEW_VALUE_UINT, .u = u};
    if (is_negative)
        *ret = (struct shmview_value){.kind = SHMVIEW_VALUE_INT, .i = (int64_t)(0 - u)};
    return *end == '\0' && errno == 0 && (!is_negative || u <= (uint64_t)INT64_MAX + 1);
}

/* Parses an integer, or true and false, which are 1 and 0. */
static int parse_integer(const char *text, struct shmview_value *ret, struct problem *problem)
{
    const bool is_true = strcasecmp(text, "true") == 0;
    if (is_true || strcasecmp(text, "false") == 0) {
        *ret = (struct shmview_value){.kind = SHMVIEW_VALUE_BOOL, .i = is_true};
        return 0;
    }
    if (read_integer(text, ret))
        return 0;
    return problem_set(problem, "'%s' is not an integer of 64 bits, and the elements are", text);
}

/* Reads 1, 2.5, -1e9, nan; 1+2j, 2j, (1-2j). Returns whether the whole text is a number. */
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

/* Parses a float or a complex. Every text is read as a double, also for a long double. */
static int parse_float(const char *text, bool is_complex, struct shmview_value *ret,
                       struct problem *problem)
{
    double z[2];
    if (!read_complex(text, z))
        return problem_set(problem, "'%s' is not a number, and the elements are", text);
    /* strtod() returns inf for 1e999 as well. Only a text with an 'n' means inf or nan. */
    if ((isinf(z[0]) || isinf(z[1])) && !strpbrk(text, "nN"))
        return problem_set(problem, "'%s' is more than a double can hold", text);
    if (!is_complex && strchr(text, 'j'))
        return problem_set(problem, "'%s' is complex, and the elements are real", text);
    *ret = (struct shmview_value){.kind = is_complex ? SHMVIEW_VALUE_COMPLEX : SHMVIEW_VALUE_REAL,
                                  .z = {(long double)z[0], (long double)z[1]}};
    return 0;
}

/* Parses text as the type of the view's elements needs it. */
static int parse(const struct shmview_view *view, const char *text, struct shmview_value *ret,
                 struct problem *problem)
{
    const int kind = shmview_dtype_kind(view->dtype);
    switch (kind) {
    case SHMVIEW_VALUE_STRUCT:
        return problem_set(problem,
                           "the elements are structs (\"%s\"): name a field, as in [field], "
                           "and an element of it where it is an array",
                           view->format);
    case SHMVIEW_VALUE_BYTES:
        *ret = (struct shmview_value){.kind = SHMVIEW_VALUE_BYTES, .bytes = text};
        ret->n_bytes = (uint32_t)strlen(text);
        if (view->dtype == SHMVIEW_CHAR && ret->n_bytes == 0)
            ret->n_bytes = 1; /* "" sets a char to NUL */
        return 0;
    case SHMVIEW_VALUE_REAL:
    case SHMVIEW_VALUE_COMPLEX:
        return parse_float(text, kind == SHMVIEW_VALUE_COMPLEX, ret, problem);
    default:
        return parse_integer(text, ret, problem);
    }
}

int value_set(const struct shmview_view *view, const ptrdiff_t *index, const char *text,
              struct problem *problem)
{
    struct shmview_value value;
    void *p;
    if (parse(view, text, &value, problem))
        return -1;
    int r = shmview_view_pointer(view, index, &p);
    r = r ? r : shmview_value_store(view->dtype, view->itemsize, &value, p);
    return r ? problem_set(problem, "'%s': %s", text, shmview_error_text()) : 0;
}
