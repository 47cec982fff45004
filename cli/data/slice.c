/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/data/slice.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/error.h>

struct reader {
    const char *text;
    const char *p; /* the next character */
    struct slice *slice;
    struct problem *problem;
};

/* Reports what is expected at the next character. Returns -1. */
static int wrong(struct reader *r, const char *what)
{
    unsigned at = (unsigned)(r->p - r->text);
    if (*r->p)
        return problem_at(r->problem, r->text, at, "slice, character %u: %s, not '%c'", at, what,
                          *r->p);
    return problem_at(r->problem, r->text, at, "slice, character %u: %s; it ends here", at, what);
}

static void skip_blanks(struct reader *r)
{
    while (*r->p == ' ')
        r->p++;
}

static bool is_number(const struct reader *r)
{
    const char *p = r->p + (*r->p == '-' || *r->p == '+');
    return isdigit((unsigned char)*p);
}

/* Reads a number and the blanks after it. SHMVIEW_OMIT (-2^63) is refused, because it marks a bound
 * that was left out. */
static int read_number(struct reader *r, int64_t *ret)
{
    char *end;
    errno = 0;
    long long n = strtoll(r->p, &end, 10);
    if (errno || n == SHMVIEW_OMIT) {
        unsigned at = (unsigned)(r->p - r->text);
        return problem_at(r->problem, r->text, at,
                          "slice, character %u: a number from -2^63 + 1 to 2^63 - 1 is expected",
                          at);
    }
    r->p = end;
    skip_blanks(r);
    *ret = n;
    return 0;
}

/* Reads a bound of a range, or SHMVIEW_OMIT if there is none. */
static int read_bound(struct reader *r, int64_t *ret)
{
    *ret = SHMVIEW_OMIT;
    return is_number(r) ? read_number(r, ret) : 0;
}

/* Reads START:STOP:STEP, or one index. */
static int read_range(struct reader *r, struct slice_step *step)
{
    bool is_range;
    if (read_bound(r, &step->start))
        return -1;
    step->stop = step->step = SHMVIEW_OMIT;
    is_range = *r->p == ':';
    for (int i = 0; i < 2 && *r->p == ':'; i++) {
        r->p++;
        skip_blanks(r);
        const char *before = r->p;
        if (read_bound(r, i == 0 ? &step->stop : &step->step))
            return -1;
        if (i == 1 && step->step == 0) {
            r->p = before;
            return wrong(r, "a step other than 0 is expected");
        }
    }
    if (!is_range && step->start == SHMVIEW_OMIT)
        return wrong(r, "an index, START:STOP:STEP, '...' or the name of a field is expected");
    step->kind = is_range ? SLICE_RANGE : SLICE_INDEX;
    return 0;
}

/* Whether c begins a field name without quotes. Bytes from 0x80 on are those of UTF-8. */
static bool begins_field(char c)
{
    return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Reads the name of a field, with or without quotes; knows no escapes. */
static int read_field(struct reader *r, struct slice_step *step)
{
    size_t n = 0;
    char quote = *r->p == '\'' || *r->p == '"' ? *r->p++ : '\0';
    step->kind = SLICE_FIELD;
    while (*r->p && (quote ? *r->p != quote : *r->p != ']' && *r->p != ',' && *r->p != ' ')) {
        if (n == sizeof step->field - 1)
            return wrong(r, "the name of a field has at most 63 bytes");
        step->field[n++] = *r->p++;
    }
    step->field[n] = '\0';
    if (n == 0)
        return wrong(r, "the name of a field is expected");
    if (quote && *r->p != quote)
        return wrong(r, quote == '"' ? "a '\"' is expected" : "a \"'\" is expected");
    r->p += quote != '\0';
    skip_blanks(r);
    return 0;
}

/* Reads one step and adds it to the slice. */
static int read_step(struct reader *r, unsigned group)
{
    if (r->slice->n == SLICE_STEPS)
        return wrong(r, "a slice has at most 32 parts");
    struct slice_step *step = &r->slice->steps[r->slice->n];
    *step = (struct slice_step){.group = group, .at = (unsigned)(r->p - r->text)};
    int result = 0;
    if (strncmp(r->p, "...", 3) == 0) {
        for (unsigned i = 0; i < r->slice->n; i++)
            if (step[-(int)i - 1].group == group && step[-(int)i - 1].kind == SLICE_ELLIPSIS)
                return wrong(r, "only one '...' between two brackets");
        step->kind = SLICE_ELLIPSIS;
        r->p += 3;
        skip_blanks(r);
    } else if (*r->p == '\'' || *r->p == '"' || begins_field(*r->p)) {
        result = read_field(r, step);
    } else {
        result = read_range(r, step);
    }
    r->slice->n += result == 0;
    return result;
}

int slice_parse(const char *text, struct slice *ret, struct problem *problem)
{
    struct reader r = {text, text, ret, problem};
    *ret = (struct slice){.text = text};
    for (unsigned group = 0; *r.p; group++) {
        unsigned first = ret->n;
        if (*r.p != '[')
            return wrong(&r, "'[' is expected");
        do {
            r.p++;
            skip_blanks(&r);
            if (ret->n > first && *r.p == ']')
                break; /* a comma may follow the last step, as in Python */
            if (read_step(&r, group))
                return -1;
        } while (*r.p == ',');
        if (*r.p != ']')
            return wrong(&r, "',' or ']' is expected");
        for (unsigned i = first; i < ret->n; i++)
            if (ret->steps[i].kind == SLICE_FIELD && ret->n - first > 1) {
                r.p = text + ret->steps[i].at;
                return wrong(&r, "a field stands alone between its brackets");
            }
        r.p++;
    }
    return 0;
}

/* Returns how many dimensions the group that begins at `first` names. '...' covers the others. */
static uint32_t count_asked(const struct slice *s, unsigned first)
{
    uint32_t n = 0;
    for (unsigned i = first; i < s->n && s->steps[i].group == s->steps[first].group; i++)
        n += s->steps[i].kind == SLICE_INDEX || s->steps[i].kind == SLICE_RANGE;
    return n;
}

/* Reports the library's error at the step that caused it. Returns -1. */
static int refuse(const struct slice *slice, const struct slice_step *step, struct problem *problem)
{
    return problem_at(problem, slice->text, step->at, "slice, character %u: %s", step->at,
                      shmview_error_text());
}

int slice_apply(const struct slice *slice, const struct shmview_view *view,
                struct shmview_view *ret_view, struct problem *problem)
{
    struct shmview_view v = *view;
    uint32_t dimension = 0, left = 0;
    for (unsigned i = 0; i < slice->n; i++) {
        const struct slice_step *step = &slice->steps[i];
        int r = 0;
        if (i == 0 || step->group != step[-1].group) {
            uint32_t asked = count_asked(slice, i);
            if (asked > v.ndim)
                return problem_at(problem, slice->text, step->at,
                                  "slice, character %u: %u indices, but there %s %u dimension%s",
                                  step->at, asked, v.ndim == 1 ? "is" : "are", v.ndim,
                                  v.ndim == 1 ? "" : "s");
            dimension = 0;
            left = v.ndim - asked;
        }
        switch (step->kind) {
        case SLICE_INDEX:
            r = shmview_view_index(&v, dimension, step->start, &v);
            break;
        case SLICE_RANGE:
            r = shmview_view_slice(&v, dimension++, step->start, step->stop, step->step, &v);
            break;
        case SLICE_ELLIPSIS:
            dimension += left;
            break;
        case SLICE_FIELD:
            r = shmview_view_field(&v, step->field, &v);
            break;
        }
        if (r)
            return refuse(slice, step, problem);
    }
    *ret_view = v;
    return 0;
}
