/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: what numpy.load() needs to know of a view's elements. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/error.h>

#include "cli/data/npy.h"

#define MAX_COMPONENTS 64
#define ALIGN          64 /* where numpy wants the elements to begin */

struct writer {
    char *text;
    size_t n, room; /* n >= room: cut */
    struct shmview_component components[MAX_COMPONENTS];
    uint32_t n_components;
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->n < w->room ? w->text + w->n : NULL, w->n < w->room ? w->room - w->n : 0,
                      format, args);
    va_end(args);
    w->n += n > 0 ? (size_t)n : 0;
}

/* numpy's kind of a type; 'V', bytes, where it has none. */
static char kind_of(uint32_t dtype)
{
    switch (dtype & ~(uint32_t)SHMVIEW_SWAPPED) {
    case SHMVIEW_INT8:
    case SHMVIEW_INT16:
    case SHMVIEW_INT32:
    case SHMVIEW_INT64:
        return 'i';
    case SHMVIEW_UINT8:
    case SHMVIEW_UINT16:
    case SHMVIEW_UINT32:
    case SHMVIEW_UINT64:
    case SHMVIEW_POINTER:
        return 'u';
    case SHMVIEW_FLOAT16:
    case SHMVIEW_FLOAT32:
    case SHMVIEW_FLOAT64:
    case SHMVIEW_LONGDOUBLE:
        return 'f';
    case SHMVIEW_COMPLEX64:
    case SHMVIEW_COMPLEX128:
        return 'c';
    case SHMVIEW_BOOL:
        return 'b';
    case SHMVIEW_CHAR:
    case SHMVIEW_BYTES:
        return 'S';
    default:
        return 'V';
    }
}

static void put_simple(struct writer *w, uint32_t dtype, uint32_t itemsize)
{
    char kind = kind_of(dtype);
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    bool has_order = itemsize > 1 && kind != 'S' && kind != 'V';
    char order = !has_order ? '|' : (dtype & SHMVIEW_SWAPPED ? little : !little) ? '>' : '<';
    put(w, "'%c%c%u'", order, kind, itemsize);
}

/* A name as Python writes it. */
static void put_name(struct writer *w, const char *name)
{
    put(w, "'");
    for (; *name; name++)
        put(w, *name == '\'' || *name == '\\' ? "\\%c" : "%c", *name);
    put(w, "'");
}

static bool is_taken(const struct writer *w, const char *name)
{
    for (uint32_t i = 0; i < w->n_components; i++)
        if (strcmp(w->components[i].name, name) == 0)
            return true;
    return false;
}

/* What numpy calls a field without a name: f0, f1 ... */
static void put_free_name(struct writer *w, unsigned *next)
{
    char name[16];
    do
        snprintf(name, sizeof name, "f%u", (*next)++);
    while (is_taken(w, name));
    put_name(w, name);
}

/* The fields from component first on, of a struct that has total bytes from base on. Returns the
 * component after them. */
static uint32_t put_fields(struct writer *w, uint32_t first, uint32_t base, uint32_t total)
{
    uint32_t i = first, end = base;
    const uint32_t depth = first < w->n_components ? w->components[first].depth : 0;
    unsigned next = 0;
    put(w, "[");
    while (i < w->n_components && w->components[i].depth == depth) {
        const struct shmview_component *c = &w->components[i++];
        if (c->offset > end)
            put(w, "('', '|V%u'), ", c->offset - end);
        put(w, "(");
        if (c->name[0])
            put_name(w, c->name);
        else
            put_free_name(w, &next);
        put(w, ", ");
        if (c->dtype == SHMVIEW_STRUCT && i < w->n_components && w->components[i].depth > depth)
            i = put_fields(w, i, c->offset, c->itemsize);
        else
            put_simple(w, c->dtype, c->itemsize);
        for (uint32_t d = 0; d < c->ndim; d++)
            put(w, "%s%u%s", d ? ", " : ", (", c->shape[d],
                d + 1 < c->ndim ? ""
                : c->ndim == 1  ? ",)"
                                : ")");
        put(w, "), ");
        end = c->offset + c->itemsize * c->repeat;
    }
    if (end < base + total)
        put(w, "('', '|V%u')", base + total - end);
    put(w, "]");
    return i;
}

int npy_descr(const char *format, char *ret, size_t bytes, struct problem *problem)
{
    struct shmview_format f;
    struct writer w = {.text = ret, .room = bytes};
    if (shmview_format_parse(format, &f, w.components, MAX_COMPONENTS))
        return problem_set(problem, "%s", shmview_error_text());
    w.n_components = f.n_components;
    if (f.dtype != SHMVIEW_STRUCT || f.n_components == 0)
        put_simple(&w, f.dtype, f.itemsize);
    else
        put_fields(&w, 0, 0, f.itemsize);
    if (w.n >= bytes)
        return problem_set(problem, "numpy's description of format \"%s\" is too long", format);
    return 0;
}

int npy_write(const struct npy *npy, unsigned char **ret_header, size_t *ret_bytes,
              struct problem *problem)
{
    enum {
        ROOM = 16 * 1024,
        BEFORE = 10
    };
    char *text = malloc(ROOM);
    if (!text)
        return problem_set(problem, "out of memory");
    struct writer w = {.text = text, .room = ROOM};
    put(&w, "%*s{'descr': ", BEFORE, "");
    if (npy_descr(npy->format, text + w.n, ROOM / 2, problem)) {
        free(text);
        return -1;
    }
    w.n += strlen(text + w.n);
    put(&w, ", 'fortran_order': %s, 'shape': (", npy->fortran_order ? "True" : "False");
    for (uint32_t d = 0; d < npy->ndim; d++)
        put(&w, "%s%" PRId64 "%s", d ? ", " : "", npy->shape[d], npy->ndim == 1 ? "," : "");
    put(&w, "), }");
    size_t bytes = (w.n + 1 + ALIGN - 1) / ALIGN * ALIGN;
    put(&w, "%*s\n", (int)(bytes - w.n - 1), "");
    memcpy(text, "\x93NUMPY\x01", 8);
    text[8] = (char)((bytes - BEFORE) & 0xff);
    text[9] = (char)((bytes - BEFORE) >> 8);
    *ret_header = (unsigned char *)text;
    *ret_bytes = bytes;
    return 0;
}
