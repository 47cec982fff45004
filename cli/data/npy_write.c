/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of npy headers: describes the elements of a view for numpy.load().
 *
 * Always writes version 1.0, which every numpy reads: its length field of 16 bits suffices for
 * ROOM, the largest header here. Offsets that numpy would not compute by itself become padding
 * fields without a name ('', '|V3'), which numpy.load() drops again. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/value.h>

#include "cli/data/npy.h"

#define MAX_COMPONENTS 64
#define ALIGN          64 /* where numpy wants the elements to begin */

struct writer {
    char *text;
    size_t n, room; /* bytes written so far, and available; n >= room: the text was cut */
    struct shmview_component components[MAX_COMPONENTS];
    uint32_t n_components;
};

/* Appends to the text. Counts n on when the room is used up, so that only the end checks it. */
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

/* Returns numpy's kind of a type, or 'V' (bytes) if numpy has no such type. The types from
 * SHMVIEW_PASCAL on have none; the string has the kinds in the order of enum shmview_value_kind. */
static char kind_of(uint32_t dtype)
{
    if ((dtype & ~(uint32_t)SHMVIEW_SWAPPED) >= SHMVIEW_PASCAL)
        return 'V';
    return "VSbiufc"[shmview_dtype_kind(dtype)];
}

/* Writes a base type: '<f4'. The byte order is given only for numbers of several bytes. */
static void put_simple(struct writer *w, uint32_t dtype, uint32_t itemsize)
{
    char kind = kind_of(dtype);
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    bool has_order = itemsize > 1 && kind != 'S' && kind != 'V';
    char order = !has_order ? '|' : (dtype & SHMVIEW_SWAPPED ? little : !little) ? '>' : '<';
    put(w, "'%c%c%u'", order, kind, itemsize);
}

/* Writes a name as a string of Python. */
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

/* Writes the next free name of f0, f1, ...: numpy's names for fields without a name. An empty name
 * would mean padding. */
static void put_free_name(struct writer *w, unsigned *next)
{
    char name[16];
    do
        snprintf(name, sizeof name, "f%u", (*next)++);
    while (is_taken(w, name));
    put_name(w, name);
}

static void put_fields(struct writer *w, const struct shmview_part *whole);

/* Writes the type of a part; of an array, the type of its entries. put_fields() adds the shape. */
static void put_type(struct writer *w, const struct shmview_part *part)
{
    struct shmview_part first = {.component = NULL};
    if (part->is_array && shmview_part_next(part, &first))
        put_type(w, &first);
    else if (part->n_parts)
        put_fields(w, part);
    else
        put_simple(w, part->dtype, part->nbytes);
}

/* Writes a struct as a list of fields, with padding where a gap of the format is. */
static void put_fields(struct writer *w, const struct shmview_part *whole)
{
    struct shmview_part field = {.component = NULL};
    uint32_t at = whole->offset, end = whole->offset + whole->nbytes;
    unsigned next = 0;
    put(w, "[");
    while (shmview_part_next(whole, &field)) {
        const struct shmview_component *c = field.component;
        if (field.offset > at)
            put(w, "('', '|V%u'), ", field.offset - at);
        put(w, "(");
        if (c->name[0])
            put_name(w, c->name);
        else
            put_free_name(w, &next);
        put(w, ", ");
        put_type(w, &field);
        for (uint32_t d = 0; d < c->ndim; d++)
            put(w, "%s%u%s", d ? ", " : ", (", c->shape[d],
                d + 1 < c->ndim ? ""
                : c->ndim == 1  ? ",)"
                                : ")");
        put(w, "), ");
        at = field.offset + field.nbytes;
    }
    if (at < end)
        put(w, "('', '|V%u')", end - at);
    put(w, "]");
}

int npy_descr(const char *format, char *ret, size_t bytes, struct problem *problem)
{
    struct shmview_format f;
    struct shmview_part whole;
    struct writer w = {.text = ret, .room = bytes};
    if (shmview_format_parse(format, &f, w.components, MAX_COMPONENTS))
        return problem_set(problem, "%s", shmview_error_text());
    w.n_components = f.n_components;
    shmview_part_of(&f, w.components, &whole);
    put_type(&w, &whole);
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
    put(&w, "%*s{'descr': ", BEFORE, ""); /* leaves room for magic, version and length */
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
