/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of npy headers: a dict of Python literals, which contains numpy's description of a
 * type.
 *
 * Reads the text from left to right with one function for each rule of the grammar. Types are
 * translated to a format while they are read; shmview_format_parse() then checks the whole format,
 * so that the rules of views exist only in common/views. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/error.h>

#include "cli/data/npy.h"

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6
#define MAX_DEPTH   8 /* of structs in each other; the limit for formats of views is equal */

struct reader {
    const char *text; /* NUL-terminated */
    const char *p;    /* the next character */
    struct npy *npy;  /* the result so far; its format grows while the type is read */
    struct problem *problem;
};

/* Reports a problem at the character `at`. Returns -1. */
static int wrong(struct reader *r, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int wrong(struct reader *r, const char *at, const char *format, ...)
{
    char why[256];
    unsigned place = (unsigned)(at - r->text);
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return problem_at(r->problem, r->text, place, "npy header, character %u: %s", place, why);
}

int npy_header_bytes(const unsigned char *prefix, size_t n, size_t *ret_bytes,
                     struct problem *problem)
{
    if (n < MAGIC_BYTES || memcmp(prefix, MAGIC, MAGIC_BYTES) != 0)
        return problem_set(problem, n ? "not an npy file: it does not begin with \\x93NUMPY"
                                      : "not an npy file: it is empty");
    if (n < NPY_PREFIX_BYTES)
        return problem_set(problem, "truncated: an npy header has more than %zu bytes", n);
    unsigned major = prefix[6], minor = prefix[7];
    uint32_t length = prefix[8] | (uint32_t)prefix[9] << 8;
    if (major < 1 || major > 3 || minor != 0)
        return problem_set(problem, "npy version %u.%u; 1.0, 2.0 and 3.0 are known", major, minor);
    if (major > 1)
        length |= (uint32_t)prefix[10] << 16 | (uint32_t)prefix[11] << 24;
    size_t before = major > 1 ? 12 : 10;
    if (length > NPY_HEADER_LIMIT)
        return problem_set(problem, "an npy header of %" PRIu32 " bytes; at most %u are read",
                           length, NPY_HEADER_LIMIT);
    if (before + length < NPY_PREFIX_BYTES)
        return problem_set(problem, "an npy header of %" PRIu32 " bytes is too short", length);
    *ret_bytes = before + length;
    return 0;
}

static void skip_blanks(struct reader *r)
{
    while (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')
        r->p++;
}

/* Whether the next character after blanks is c. If so, steps over it and the blanks that follow. */
static bool take(struct reader *r, char c)
{
    skip_blanks(r);
    if (*r->p != c)
        return false;
    r->p++;
    skip_blanks(r);
    return true;
}

static int expect(struct reader *r, char c)
{
    return take(r, c) ? 0 : wrong(r, r->p, "'%c' is expected", c);
}

static bool is_quote(char c)
{
    return c == '\'' || c == '"';
}

/* Reads a string in single or double quotes. Knows only the escapes of quotes and the backslash: a
 * name in a format could not contain other escaped characters anyway. */
static int read_string(struct reader *r, char *ret, size_t bytes)
{
    size_t n = 0;
    char quote = *r->p;
    if (!is_quote(quote))
        return wrong(r, r->p, "a string is expected");
    for (r->p++; *r->p && *r->p != quote; r->p++) {
        if (*r->p == '\\') {
            r->p++;
            if (*r->p != '\\' && !is_quote(*r->p))
                return wrong(r, r->p, "this escape is not known");
        }
        if (n + 1 == bytes)
            return wrong(r, r->p, "a string has at most %zu characters here", bytes - 1);
        ret[n++] = *r->p;
    }
    if (*r->p != quote)
        return wrong(r, r->p, "the quote that ends a string is missing");
    r->p++;
    ret[n] = '\0';
    return 0;
}

/* Reads a length: an integer of 0 or more. An L may follow, because numpy under Python 2 wrote
 * `long` integers so. */
static int read_length(struct reader *r, int64_t *ret)
{
    char *end;
    if (!isdigit((unsigned char)*r->p))
        return wrong(r, r->p, "a length, 0 or more, is expected");
    errno = 0;
    long long n = strtoll(r->p, &end, 10);
    if (errno)
        return wrong(r, r->p, "a length is at most 2^63 - 1");
    r->p = end + (*end == 'L');
    *ret = n;
    return 0;
}

/* Reads a tuple of lengths: (), (3,), (3, 4). As in Python, (3) is not a tuple. */
static int read_shape(struct reader *r, uint32_t *ret_ndim, int64_t *ret)
{
    uint32_t n = 0;
    if (!take(r, '('))
        return wrong(r, r->p, "a tuple of lengths is expected");
    const char *begin = r->p;
    bool comma = true;
    while (!take(r, ')')) {
        if (!comma)
            return wrong(r, r->p, "',' or ')' is expected");
        if (n == SHMVIEW_MAX_NDIM)
            return wrong(r, r->p, "a view has at most %d dimensions", SHMVIEW_MAX_NDIM);
        if (read_length(r, &ret[n++]))
            return -1;
        comma = take(r, ',');
    }
    if (n == 1 && !comma)
        return wrong(r, begin, "not a tuple; write (N,)");
    *ret_ndim = n;
    return 0;
}

/* --- Types ------------------------------------------------------------------ */

/* Appends to the format that is being built. Returns 0, or -1 if it becomes too long. */
static int append(struct reader *r, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int append(struct reader *r, const char *at, const char *format, ...)
{
    size_t n = strlen(r->npy->format), room = sizeof r->npy->format - n;
    va_list args;
    va_start(args, format);
    int more = vsnprintf(r->npy->format + n, room, format, args);
    va_end(args);
    if (more < 0 || (size_t)more >= room)
        return wrong(r, at, "a type of more than %zu characters", sizeof r->npy->format - 1);
    return 0;
}

/* Returns the letters of a format for numpy's kind and size, or NULL if formats have no such type.
 */
static const char *code_of(char kind, unsigned long size)
{
    static const struct {
        char kind;
        unsigned char size;
        const char *code;
    } codes[] = {
        {'b', 1, "?"},  {'i', 1, "b"},   {'u', 1, "B"},
        {'i', 2, "h"},  {'u', 2, "H"},   {'i', 4, "i"},
        {'u', 4, "I"},  {'i', 8, "q"},   {'u', 8, "Q"},
        {'f', 2, "e"},  {'f', 4, "f"},   {'f', 8, "d"},
        {'c', 8, "Zf"}, {'c', 16, "Zd"}, {'f', sizeof(long double), "g"},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].kind == kind && codes[i].size == size)
            return codes[i].code;
    return NULL;
}

/* Reports a type that no view can have, and the conversion by which the user can save it. */
static int refuse_type(struct reader *r, const char *at, const char *type, char kind)
{
    switch (kind) {
    case 'O':
        return wrong(r, at, "'%s': Python's objects cannot be shared between processes", type);
    case 'U':
        return wrong(r, at, "'%s': text of wide characters; save a.astype('S') instead", type);
    case 'M':
    case 'm':
        return wrong(r, at, "'%s': a time; save a.view('i8') instead", type);
    default:
        return wrong(r, at, "'%s' is not a type that a view can have", type);
    }
}

/* Reads a base type such as '<f4'. A '|V3' is padding if it is a field without a name
 * (is_padding); elsewhere it is bytes without a type, which become a string. is_whole: the type is
 * the whole element, not a field. */
static int read_simple(struct reader *r, bool is_padding, bool is_whole)
{
    char type[32], *end, mark[2] = "=";
    const char *at = r->p;
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    if (read_string(r, type, sizeof type))
        return -1;
    const char *p = type;
    if (*p && strchr("<>=|", *p))
        mark[0] = *p++ == '|' ? '=' : p[-1];
    char kind = *p;
    errno = 0;
    bool has_size = kind && isdigit((unsigned char)p[1]);
    unsigned long size = has_size ? strtoul(p + 1, &end, 10) : 0;
    if (!has_size || *end || errno || !strchr("biufcSV", kind))
        return refuse_type(r, at, type, kind);
    if (size == 0 || size > INT32_MAX)
        return wrong(r, at, "'%s': an element has 1 byte to 2 GiB", type);
    if (kind == 'S' || (kind == 'V' && !is_padding)) {
        r->npy->is_opaque = is_whole && kind == 'V';
        return append(r, at, "=%lus", size);
    }
    if (kind == 'V')
        return append(r, at, "%lux", size);
    const char *code = code_of(kind, size);
    if (!code)
        return refuse_type(r, at, type, kind);
    if (code[0] == 'g') { /* A long double has no standard size in a format, so it
                            exists only in the native order. */
        if (mark[0] != '=' && mark[0] != (little ? '<' : '>'))
            return wrong(r, at, "'%s': a long double in the other byte order", type);
        mark[0] = '^';
    }
    return append(r, at, "%s%s", mark, code);
}

/* Reads the name of a field: 'name', or ('title', 'name'). Drops the title, because formats have
 * none. */
static int read_field_name(struct reader *r, char *ret, size_t bytes)
{
    const char *at = r->p;
    if (!take(r, '('))
        return read_string(r, ret, bytes);
    char title[SHMVIEW_FORMAT_BYTES];
    if (read_string(r, title, sizeof title) || expect(r, ',') || read_string(r, ret, bytes) ||
        expect(r, ')'))
        return -1;
    return ret[0] ? 0 : wrong(r, at, "a field with a title needs a name");
}

static int read_type(struct reader *r, unsigned depth, bool is_padding);

/* Reads a field: ('x', '<i2') or ('x', '<i2', (2, 3)). A format has the shape before the type,
 * numpy has it after, so the shape is inserted at `before` once it is known. A length of UINT32_MAX
 * stands for all larger ones: the check of the format refuses it. */
static int read_field(struct reader *r, unsigned depth)
{
    char name[sizeof((struct shmview_component *)0)->name], shape[128] = "";
    int64_t lengths[SHMVIEW_MAX_NDIM];
    uint32_t ndim = 0;
    size_t before = strlen(r->npy->format);
    skip_blanks(r);
    const char *at = r->p;
    if (expect(r, '(') || read_field_name(r, name, sizeof name) || expect(r, ','))
        return -1;
    if (read_type(r, depth, name[0] == '\0'))
        return -1;
    skip_blanks(r);
    if (take(r, ',') && *r->p != ')' && read_shape(r, &ndim, lengths))
        return -1;
    if (expect(r, ')'))
        return -1;
    for (uint32_t d = 0, n = 0; d < ndim; d++)
        n += (uint32_t)snprintf(shape + n, sizeof shape - n, "%s%" PRId64 "%s", d ? "," : "(",
                                lengths[d] < UINT32_MAX ? lengths[d] : UINT32_MAX,
                                d + 1 < ndim ? "" : ")");
    if (shape[0]) {
        char *type = r->npy->format + before;
        size_t n = strlen(shape), type_bytes = strlen(type) + 1;
        if (before + n + type_bytes > sizeof r->npy->format)
            return wrong(r, at, "a type of more than %zu characters", sizeof r->npy->format - 1);
        memmove(type + n, type, type_bytes);
        memcpy(type, shape, n);
    }
    if (strchr(name, ':'))
        return wrong(r, at, "field '%s': a name without ':' is needed", name);
    return name[0] ? append(r, at, ":%s:", name) : 0;
}

/* Reads a base type, or a struct as a list of fields. depth is the number of structs around. */
static int read_type(struct reader *r, unsigned depth, bool is_padding)
{
    const char *at = r->p;
    if (!take(r, '['))
        return read_simple(r, is_padding, depth == 0);
    if (depth == MAX_DEPTH)
        return wrong(r, at, "structs more than %d levels deep", MAX_DEPTH);
    if (append(r, at, "T{"))
        return -1;
    bool comma = true;
    while (!take(r, ']')) {
        if (!comma)
            return wrong(r, r->p, "',' or ']' is expected");
        if (read_field(r, depth + 1))
            return -1;
        comma = take(r, ',');
    }
    return append(r, at, "}");
}

/* --- The dict --------------------------------------------------------------- */

/* Reads the type, and replaces the format by its canonical text. */
static int read_descr(struct reader *r)
{
    struct shmview_format format;
    const char *at = r->p;
    if (read_type(r, 0, false))
        return -1;
    if (shmview_format_parse(r->npy->format, &format, NULL, 0))
        return wrong(r, at, "not a type that a view can have: %s", shmview_error_text());
    memcpy(r->npy->format, format.text, sizeof r->npy->format);
    r->npy->itemsize = format.itemsize;
    return 0;
}

/* Reads True or False. */
static int read_order(struct reader *r)
{
    r->npy->fortran_order = strncmp(r->p, "True", 4) == 0;
    if (!r->npy->fortran_order && strncmp(r->p, "False", 5) != 0)
        return wrong(r, r->p, "True or False is expected");
    r->p += r->npy->fortran_order ? 4 : 5;
    return 0;
}

enum {
    KEY_DESCR,
    KEY_ORDER,
    KEY_SHAPE,
    N_KEYS
};
static const char *const keys[N_KEYS] = {"descr", "fortran_order", "shape"};

static int read_value(struct reader *r, int key)
{
    switch (key) {
    case KEY_DESCR:
        return read_descr(r);
    case KEY_ORDER:
        return read_order(r);
    default:
        return read_shape(r, &r->npy->ndim, r->npy->shape);
    }
}

/* Reads the whole dict. As numpy does, requires exactly the three keys, in any order. */
static int read_dict(struct reader *r)
{
    bool seen[N_KEYS] = {false}, comma = true;
    if (expect(r, '{'))
        return -1;
    while (!take(r, '}')) {
        char name[32];
        int key = 0;
        const char *at = r->p;
        if (!comma)
            return wrong(r, at, "',' or '}' is expected");
        if (read_string(r, name, sizeof name))
            return -1;
        while (key < N_KEYS && strcmp(name, keys[key]) != 0)
            key++;
        if (key == N_KEYS || seen[key])
            return wrong(r, at, key == N_KEYS ? "an unknown key '%s'" : "a second '%s'", name);
        seen[key] = true;
        if (expect(r, ':') || read_value(r, key))
            return -1;
        comma = take(r, ',');
    }
    for (int key = 0; key < N_KEYS; key++)
        if (!seen[key])
            return wrong(r, r->p, "'%s' is missing", keys[key]);
    return 0;
}

/* Sets nbytes. Searches for a length of 0 first: such an array has no bytes, and the product of its
 * other lengths may overflow although the array is valid. */
static int count_bytes(struct npy *npy, struct problem *problem)
{
    uint64_t n = npy->itemsize;
    for (uint32_t d = 0; d < npy->ndim; d++)
        if (npy->shape[d] == 0)
            n = 0;
    for (uint32_t d = 0; n && d < npy->ndim; d++)
        if (__builtin_mul_overflow(n, (uint64_t)npy->shape[d], &n) || n > INT64_MAX)
            return problem_set(problem, "npy header: the array has more than 2^63 - 1 bytes");
    npy->nbytes = n;
    return 0;
}

int npy_read(const unsigned char *header, size_t n, struct npy *ret, struct problem *problem)
{
    size_t before = header[6] > 1 ? 12 : 10;
    struct npy npy = {0};
    char *text = malloc(n - before + 1);
    if (!text)
        return problem_set(problem, "out of memory");
    memcpy(text, header + before, n - before);
    text[n - before] = '\0'; /* a NUL within the header ends the text early, and is refused below */
    struct reader r = {text, text, &npy, problem};
    int result = read_dict(&r);
    if (result == 0 && r.p != text + n - before)
        result = wrong(&r, r.p, "nothing but blanks may follow the '}'");
    if (result == 0)
        result = count_bytes(&npy, problem);
    free(text);
    if (result == 0)
        *ret = npy;
    return result;
}
