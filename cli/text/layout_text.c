/* SPDX-License-Identifier: Apache-2.0 */
/* A recursive descent parser. Each read_...() function reads at r->at, moves it past what it has
 * read, and returns 0, or the exit status after fault() has printed the reason. */
#include "cli/text/layout_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "cli/shell/problem.h"

#define VIEWS_MOST   256 /* of one layout: the daemon's limit */
#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* The text while it is parsed. */
struct reader {
    struct context *c;
    const char *text;
    const char *at; /* the next character */
    struct layout_text *layout;
    bool is_placed; /* the last view has an end, so one without an offset can follow */
    uint64_t next;  /* that end; valid if is_placed */
};

/* Prints the reason, the text around the fault, and a mark below the character `at`. Returns
 * EXIT_USAGE. */
__attribute__((format(printf, 3, 4))) static int fault(struct reader *r, const char *at,
                                                       const char *format, ...)
{
    char why[300];
    struct problem problem;
    unsigned place = (unsigned)(at - r->text);
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, sizeof why, format, ap);
    va_end(ap);
    problem_at(&problem, r->text, place, "layout, character %u: %s", place + 1, why);
    warn_text(r->c, "%s", problem.text);
    fprintf(stderr, "Try 'shmviewctl %s --help', or LAYOUTS in shmviewctl(1).\n", r->c->verb->name);
    return EXIT_USAGE;
}

static void skip_spaces(struct reader *r)
{
    r->at += strspn(r->at, " \t\n");
}

/* Reads the name of a `what` and the character that ends it. */
static int read_name(struct reader *r, const char *what, char *ret, size_t bytes, char end)
{
    const char *begin = r->at;
    size_t n = strspn(begin, NAME_LETTERS);
    if (n == 0 || begin[0] == '.')
        return fault(r, begin, "the name of a %s is missing: letters, digits, '.', '_' and '-'",
                     what);
    if (n >= bytes)
        return fault(r, begin, "a name has at most %zu characters", bytes - 1);
    memcpy(ret, begin, n);
    ret[n] = '\0';
    r->at += n;
    skip_spaces(r);
    if (*r->at != end)
        return fault(r, r->at, "'%c' must follow the name of a %s", end, what);
    r->at++;
    skip_spaces(r);
    return 0;
}

/* --- Formats ------------------------------------------------------------- */

/* Returns the end of the format that begins at `from`, its quotes included; NULL if the closing
 * quote is missing. "@" and ":" are parts of a format only as its first character or within braces,
 * as in T{i:a:}, because they also begin the offset and the words after it. */
static const char *format_end(const char *from)
{
    const char *p = from;
    if (*p == '"' || *p == '\'') {
        const char *quote = strchr(p + 1, *p);
        return quote ? quote + 1 : NULL;
    }
    for (int depth = 0; *p && (depth || !strchr(" \t\n[", *p)); p++) {
        depth += *p == '{' ? 1 : *p == '}' && depth ? -1 : 0;
        if (!depth && p > from && (*p == '@' || *p == ':'))
            break;
    }
    return p;
}

/* Reads a format and parses it, so that a fault in it is shown at its place. */
static int read_format(struct reader *r, struct view_text *v, struct shmview_format *ret)
{
    const char *begin = r->at, *end = format_end(begin);
    bool is_quoted = *begin == '"' || *begin == '\'';
    if (!end)
        return fault(r, begin, "this quote is never closed");
    size_t n = (size_t)(end - begin) - (is_quoted ? 2 : 0);
    if (n >= sizeof v->format)
        return fault(r, begin, "a format has at most %zu characters", sizeof v->format - 1);
    memcpy(v->format, begin + is_quoted, n);
    v->format[n] = '\0';
    if (n == 0)
        return fault(r, begin, "a format is missing, like f4, int16 or T{i:a:d:b:}");
    if (shmview_format_parse(v->format, ret, NULL, 0))
        return fault(r, begin + is_quoted + ret->error_at, "%s", shmview_error_text());
    v->spec.format = v->format;
    r->at = end;
    return 0;
}

/* --- Numbers ------------------------------------------------------------- */

/* Reads numbers from `least` on, separated by commas, up to the character `close`. */
static int read_list(struct reader *r, char close, int64_t least, int64_t *ret, uint32_t *ret_n)
{
    uint32_t n = 0;
    skip_spaces(r);
    while (*r->at != close) {
        char *end;
        if (n && *r->at != ',')
            return fault(r, r->at, "',' or '%c' must follow", close);
        r->at += n ? 1 : 0;
        skip_spaces(r);
        errno = 0;
        long long value = strtoll(r->at, &end, 10);
        if (end == r->at || errno || value < least)
            return fault(r, r->at, "a number is missing, %" PRId64 " or more", least);
        if (n == SHMVIEW_MAX_NDIM)
            return fault(r, r->at, "a view has at most %d dimensions", SHMVIEW_MAX_NDIM);
        ret[n++] = value;
        r->at = end;
        skip_spaces(r);
    }
    r->at++;
    *ret_n = n;
    return 0;
}

/* Reads the bytes after "@", with a unit or without. */
static int read_offset(struct reader *r, struct view_text *v)
{
    const char *begin = r->at;
    size_t n = strspn(begin, "0123456789.KMGTibKB");
    char text[40];
    uint64_t value;
    snprintf(text, sizeof text, "%.*s", (int)n, begin);
    if (n >= sizeof text || !read_bytes(text, &value))
        return fault(r, begin, "an offset is missing: bytes, like 4096 or 64K");
    v->spec.offset = value;
    r->at += n;
    return 0;
}

/* --- Words after a view -------------------------------------------------- */

/* Takes word from the text if it is there, and not only the beginning of a longer one. */
static bool takes(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0 || (word[n - 1] != '(' && isalnum((unsigned char)r->at[n])))
        return false;
    r->at += n;
    return true;
}

/* Reads a list of one number for each dimension. */
static int read_steps(struct reader *r, const struct view_text *v, int64_t *ret,
                      const int64_t **ret_spec)
{
    const char *begin = r->at;
    uint32_t n;
    int status = read_list(r, ')', INT64_MIN, ret, &n);
    if (status)
        return status;
    if (n != v->spec.ndim)
        return fault(r, begin, "%u numbers for %u dimensions", n, v->spec.ndim);
    *ret_spec = ret;
    return 0;
}

/* Reads one word after ":". Fortran order becomes strides, because a spec has no flag for it. */
static int read_word(struct reader *r, struct view_text *v, const struct shmview_format *f)
{
    const char *begin = r->at;
    if (takes(r, "readonly")) {
        v->spec.flags |= SHMVIEW_VIEW_READ_ONLY;
        return 0;
    }
    if (takes(r, "strides("))
        return read_steps(r, v, v->strides, &v->spec.strides);
    if (takes(r, "suboffsets("))
        return read_steps(r, v, v->suboffsets, &v->spec.suboffsets);
    if (!takes(r, "fortran"))
        return fault(r, begin, "no such word: readonly, fortran, strides(...), suboffsets(...)");
    if (shmview_fill_strides(v->spec.ndim, v->shape, f->itemsize, 'F', v->strides))
        return fault(r, begin, "%s", shmview_error_text());
    v->spec.strides = v->strides;
    return 0;
}

/* --- Placing ------------------------------------------------------------- */

/* Finds the bytes that the elements take below and above the offset. Negative strides lead below
 * it. Both are 0 without elements. Returns 0, or -1 if they do not fit into 63 bits. */
static int find_reach(const struct view_text *v, const struct shmview_format *f, int64_t *ret_below,
                      int64_t *ret_above)
{
    const struct shmview_view_spec *s = &v->spec;
    int64_t strides[SHMVIEW_MAX_NDIM], below = 0, above = f->itemsize, reach;
    if (!s->strides && shmview_fill_strides(s->ndim, v->shape, f->itemsize, 'C', strides))
        return -1;
    for (uint32_t d = 0; d < s->ndim; d++) {
        if (v->shape[d] == 0) {
            *ret_below = *ret_above = 0;
            return 0;
        }
        if (__builtin_mul_overflow(v->shape[d] - 1, s->strides ? s->strides[d] : strides[d],
                                   &reach) ||
            __builtin_sub_overflow(below, reach < 0 ? reach : 0, &below) ||
            __builtin_add_overflow(above, reach > 0 ? reach : 0, &above))
            return -1;
    }
    *ret_below = below;
    *ret_above = above;
    return 0;
}

/* Gives the view its offset, unless the text has one, and notes its end for the next view and for
 * the size of the segment. A view with suboffsets has no end that is known here, because its rows
 * may lie anywhere. */
static int place(struct reader *r, struct view_text *v, const struct shmview_format *f,
                 const char *begin)
{
    const bool has_offset = v->has_offset;
    int64_t below, above;
    uint64_t align = f->align, end;
    if (v->spec.suboffsets && !has_offset)
        return fault(r, begin, "a view with suboffsets needs an @OFFSET");
    if (!has_offset && !r->is_placed)
        return fault(r, begin,
                     "this view needs an @OFFSET: the rows of the view before it may be anywhere");
    if (find_reach(v, f, &below, &above))
        return fault(r, begin, "this view is larger than any segment");
    if (!has_offset)
        v->spec.offset = (r->next + (uint64_t)below + align - 1) / align * align;
    if (v->spec.offset > INT64_MAX || (uint64_t)above > INT64_MAX - v->spec.offset)
        return fault(r, begin, "this view is larger than any segment");
    if (v->spec.offset < (uint64_t)below)
        return fault(r, begin, "its strides lead %" PRIu64 " bytes below byte 0: give it @%" PRId64,
                     (uint64_t)below - v->spec.offset, below);
    end = v->spec.offset + (uint64_t)above;
    r->is_placed = !v->spec.suboffsets;
    r->next = end;
    if (end > r->layout->end)
        r->layout->end = end;
    return 0;
}

/* --- Views --------------------------------------------------------------- */

/* Reads a view with all its parts. */
static int read_view(struct reader *r, struct view_text *v)
{
    struct shmview_format f;
    const char *begin = r->at;
    int status = read_name(r, "view", v->name, sizeof v->name, '=');
    status = status ? status : read_format(r, v, &f);
    if (status == 0 && *r->at == '[') {
        r->at++;
        status = read_list(r, ']', 0, v->shape, &v->spec.ndim);
    }
    if (status == 0 && *r->at == '@') {
        r->at++;
        v->has_offset = true;
        status = read_offset(r, v);
    }
    while (status == 0 && *r->at == ':') {
        r->at++;
        status = read_word(r, v, &f);
    }
    if (status == 0 && *r->at && !strchr(" \t\n", *r->at))
        status = fault(r, r->at, "a space, '[', '@' or ':' must follow");
    v->spec.name = v->name;
    v->spec.shape = v->shape;
    return status ? status : place(r, v, &f, begin);
}

/* Reads a view and adds it to the layout. Checks the name here to show the place of the second. */
static int add_view(struct reader *r)
{
    struct layout_text *l = r->layout;
    const char *begin = r->at;
    if (l->n == VIEWS_MOST)
        return fault(r, begin, "a layout has at most %d views", VIEWS_MOST);
    struct view_text *v = &l->views[l->n++];
    int status = read_view(r, v);
    for (size_t i = 0; status == 0 && i + 1 < l->n; i++)
        if (strcmp(l->views[i].name, v->name) == 0)
            status = fault(r, begin, "there are two views '%s'", v->name);
    skip_spaces(r);
    return status;
}

int layout_text_parse(struct context *c, const char *text, struct layout_text *ret)
{
    struct reader r = {.c = c, .text = text, .at = text, .layout = ret, .is_placed = true};
    *ret = (struct layout_text){.views = calloc(VIEWS_MOST, sizeof *ret->views),
                                .specs = calloc(VIEWS_MOST, sizeof *ret->specs)};
    if (!ret->views || !ret->specs)
        return fail_memory(c);
    skip_spaces(&r);
    int status = read_name(&r, "layout", ret->name, sizeof ret->name, ':');
    while (status == 0 && *r.at)
        status = add_view(&r);
    if (status == 0 && ret->n == 0)
        status = fault(&r, r.at, "a view is missing, like A=f4[100]");
    for (size_t i = 0; i < ret->n; i++)
        ret->specs[i] = ret->views[i].spec;
    return status;
}

void layout_text_deinit(struct layout_text *layout)
{
    free(layout->views);
    free(layout->specs);
}
