/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/element_text.h"

#include <stdbool.h>
#include <string.h>

#include "cli/data/scalar.h"

#define LAST_ASCII '~'

struct printer {
    const struct element_type *type;
    bool json;
    FILE *out;
};

int element_type_init(struct element_type *type, const char *format)
{
    struct shmview_format f;
    int r = shmview_format_parse(format, &f, type->components, ELEMENT_COMPONENTS);
    if (r)
        return r;
    type->dtype = f.dtype;
    type->itemsize = f.itemsize;
    type->n_components = f.n_components;
    return 0;
}

/* b'...' as Python has it, with the quotes that need no escape; as JSON a string whose characters
 * are the bytes. */
static void print_string(struct printer *p, const unsigned char *s, size_t n)
{
    bool is_double = memchr(s, '\'', n) && !memchr(s, '"', n);
    const char quote = p->json || is_double ? '"' : '\'';
    fprintf(p->out, "%s%c", p->json ? "" : "b", quote);
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' || s[i] == quote)
            fprintf(p->out, "\\%c", s[i]);
        else if (s[i] >= ' ' && s[i] <= LAST_ASCII)
            fputc(s[i], p->out);
        else
            fprintf(p->out, p->json ? "\\u%04x" : "\\x%02x", s[i]);
    }
    fputc(quote, p->out);
}

static void print_leaf(struct printer *p, uint32_t dtype, uint32_t itemsize,
                       const unsigned char *bytes)
{
    struct scalar s;
    char text[SCALAR_TEXT_BYTES];
    size_t n = itemsize;
    if (dtype == SHMVIEW_PASCAL) {
        n = bytes[0] < itemsize ? bytes[0] : itemsize - 1;
        print_string(p, bytes + 1, n);
    } else if (dtype == SHMVIEW_BYTES || dtype == SHMVIEW_CHAR) {
        while (n && bytes[n - 1] == '\0')
            n--; /* as numpy: what a string is filled up with */
        print_string(p, bytes, n);
    } else if (scalar_load(dtype, itemsize, bytes, &s)) {
        fputs(p->json ? scalar_json(&s, text) : scalar_text(&s, text), p->out);
    } else {
        print_string(p, bytes, n);
    }
}

static uint32_t print_fields(struct printer *p, uint32_t first, uint32_t base,
                             const unsigned char *bytes);

/* Component i, whose struct is at bytes and begins at byte base of the element, with its array's
 * dimensions from d on; item counts its elements. Returns the component after it. */
static uint32_t print_component(struct printer *p, uint32_t i, uint32_t d, uint32_t base,
                                const unsigned char *bytes, uint32_t *item)
{
    const struct shmview_component *c = &p->type->components[i];
    uint32_t next = i + 1;
    if (d < c->ndim) {
        fputc('[', p->out);
        for (uint32_t k = 0; k < c->shape[d]; k++) {
            if (k)
                fputs(", ", p->out);
            next = print_component(p, i, d + 1, base, bytes, item);
        }
        fputc(']', p->out);
        return next;
    }
    const unsigned char *at = bytes + (c->offset - base) + (size_t)(*item)++ * c->itemsize;
    if (c->dtype == SHMVIEW_STRUCT && next < p->type->n_components &&
        p->type->components[next].depth > c->depth)
        return print_fields(p, next, c->offset, at);
    print_leaf(p, c->dtype, c->itemsize, at);
    return next;
}

/* (1, 2.5) or {"a": 1, "b": 2.5}: the fields from component first on, of a struct at bytes. */
static uint32_t print_fields(struct printer *p, uint32_t first, uint32_t base,
                             const unsigned char *bytes)
{
    const struct element_type *t = p->type;
    uint32_t i = first, n = 0;
    fputc(p->json ? '{' : '(', p->out);
    while (i < t->n_components && t->components[i].depth == t->components[first].depth) {
        uint32_t item = 0;
        const char *name = t->components[i].name;
        if (n)
            fputs(", ", p->out);
        if (p->json && name[0]) {
            print_string(p, (const unsigned char *)name, strlen(name));
            fputs(": ", p->out);
        } else if (p->json) {
            fprintf(p->out, "\"f%u\": ", n);
        }
        n++;
        i = print_component(p, i, 0, base, bytes, &item);
    }
    fputs(p->json ? "}" : n == 1 ? ",)" : ")", p->out);
    return i;
}

static void print_any(struct printer *p, const unsigned char *bytes)
{
    const struct element_type *t = p->type;
    uint32_t item = 0;
    bool is_array = t->n_components == 1 && t->components[0].name[0] == '\0' &&
                    t->components[0].offset == 0 && t->components[0].ndim;
    if (t->dtype != SHMVIEW_STRUCT)
        print_leaf(p, t->dtype, t->itemsize, bytes);
    else if (is_array)
        print_component(p, 0, 0, 0, bytes, &item);
    else
        print_fields(p, 0, 0, bytes);
}

void element_print(const struct element_type *type, const unsigned char *bytes, FILE *out)
{
    struct printer p = {type, false, out};
    print_any(&p, bytes);
}

void element_print_json(const struct element_type *type, const unsigned char *bytes, FILE *out)
{
    struct printer p = {type, true, out};
    print_any(&p, bytes);
}

void element_print_hex(const struct element_type *type, const unsigned char *bytes, FILE *out)
{
    for (uint32_t i = 0; i < type->itemsize; i++)
        fprintf(out, "%02x", bytes[i]);
}
