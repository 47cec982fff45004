/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/element_text.h"

#include <stdbool.h>
#include <string.h>

#include "cli/data/scalar.h"

#define LAST_ASCII '~' /* the last printable one */

/* Where to print, and in which form. */
struct printer {
    bool json;
    FILE *out;
};

int element_type_init(struct element_type *type, const char *format)
{
    struct shmview_format f;
    int r = shmview_format_parse(format, &f, type->components, ELEMENT_COMPONENTS);
    if (r == 0)
        shmview_part_of(&f, type->components, &type->whole);
    return r;
}

/* Prints bytes as Python's b'...', in double quotes if the bytes contain a single quote and no
 * double one; in JSON as a string with one character for each byte. */
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

/* Prints a number or text: a part that has no parts. */
static void print_value(struct printer *p, const struct shmview_part *part,
                        const unsigned char *bytes)
{
    struct shmview_value v;
    char text[SCALAR_TEXT_BYTES];
    shmview_value_load(part->dtype, part->nbytes, bytes, &v);
    const unsigned char *string = v.bytes;
    if (v.kind > SHMVIEW_VALUE_BYTES) {
        fputs((p->json ? scalar_json : scalar_text)(part->dtype, &v, text), p->out);
        return;
    }
    while (part->dtype != SHMVIEW_STRUCT && part->dtype != SHMVIEW_PASCAL && v.n_bytes &&
           string[v.n_bytes - 1] == '\0')
        v.n_bytes--; /* like numpy, which fills strings up with NULs */
    print_string(p, string, v.n_bytes);
}

/* Prints the name of a field as a JSON key. */
static void print_name(struct printer *p, const struct shmview_part *field)
{
    const char *name = field->component->name;
    if (name[0])
        print_string(p, (const unsigned char *)name, strlen(name));
    else
        fprintf(p->out, "\"f%u\"", field->index);
    fputs(": ", p->out);
}

/* Prints a part and all its parts. bytes are those of the whole element. A struct of one field is
 * (1,) as in Python. */
static void print_part(struct printer *p, const struct shmview_part *whole,
                       const unsigned char *bytes)
{
    struct shmview_part part = {.component = NULL};
    const bool has_names = p->json && !whole->is_array;
    if (whole->n_parts == 0) {
        print_value(p, whole, bytes + whole->offset);
        return;
    }
    fputc(whole->is_array ? '[' : p->json ? '{' : '(', p->out);
    while (shmview_part_next(whole, &part)) {
        if (part.index)
            fputs(", ", p->out);
        if (has_names)
            print_name(p, &part);
        print_part(p, &part, bytes);
    }
    if (!p->json && !whole->is_array && whole->n_parts == 1)
        fputc(',', p->out);
    fputc(whole->is_array ? ']' : p->json ? '}' : ')', p->out);
}

/* Prints an element. A format such as "(2,3)f" means a struct with one array as its only field,
 * which has no name. It is printed as an array, because that is what its author means. */
static void print_any(struct printer *p, const struct element_type *type,
                      const unsigned char *bytes)
{
    struct shmview_part part = {.component = NULL};
    const bool is_array = type->whole.n_parts == 1 && shmview_part_next(&type->whole, &part) &&
                          part.is_array && !part.component->name[0] && part.offset == 0;
    print_part(p, is_array ? &part : &type->whole, bytes);
}

void element_print(const struct element_type *type, const unsigned char *bytes, FILE *out)
{
    struct printer p = {false, out};
    print_any(&p, type, bytes);
}

void element_print_json(const struct element_type *type, const unsigned char *bytes, FILE *out)
{
    struct printer p = {true, out};
    print_any(&p, type, bytes);
}

void element_print_hex(const struct element_type *type, const unsigned char *bytes, FILE *out)
{
    for (uint32_t i = 0; i < type->whole.nbytes; i++)
        fprintf(out, "%02x", bytes[i]);
}
