/* SPDX-License-Identifier: Apache-2.0 */
/* Translates formats: those of MemoryView are those of Array#pack, those of libshmview are those of
 * PEP 3118.
 *
 * MemoryView's formats have neither names nor nested structs. They also lack letters for halves,
 * complex numbers, booleans and text. So a struct becomes a flat list with padding, a complex
 * number becomes two floats, and the others become unsigned integers or bytes of the same size. A
 * consumer thus gets the right bytes at the right offsets, but not always their meaning.
 *
 * Nothing here raises: after an error the result is NULL. ruby_format() runs while a consumer waits
 * for a MemoryView, and must return. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/value.h>

#include "memory_view.h"

#define IS_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

/* --- A text that grows --------------------------------------------------- */

/* A limit, because the parts of an array of structs are written out one by one. */
#define TEXT_MAX 65536

struct text {
    char *chars; /* malloc() */
    size_t n, room;
    bool failed; /* no memory, too long, or not expressible; from then on add() does nothing */
};

static void PRINTF_ARGS(add(struct text *text, const char *format, ...), 2, 3);
static void add(struct text *text, const char *format, ...)
{
    char piece[48];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(piece, sizeof piece, format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof piece || text->n + (size_t)n >= TEXT_MAX)
        text->failed = true;
    if (text->failed)
        return;
    if (text->n + (size_t)n >= text->room) {
        size_t room = text->room ? 2 * text->room : 64;
        char *chars = realloc(text->chars, room);
        if (!chars) {
            text->failed = true;
            return;
        }
        text->chars = chars;
        text->room = room;
    }
    memcpy(text->chars + text->n, piece, (size_t)n + 1);
    text->n += (size_t)n;
}

/* Returns the text, which the caller must free(), or NULL if anything failed. */
static char *text_end(struct text *text)
{
    if (!text->failed)
        return text->chars ? text->chars : strdup("");
    free(text->chars);
    return NULL;
}

/* --- To MemoryView ------------------------------------------------------- */

/* For each dtype: the letter of Array#pack, the letter of the other byte order if that has one of
 * its own (otherwise < or > marks it), and how many make one element. A dtype without a letter is
 * written as bytes. */
static const struct {
    char letter, swapped;
    unsigned char n;
} letters[] = {
    [SHMVIEW_INT8] = {'c', 0, 1},
    [SHMVIEW_UINT8] = {'C', 0, 1},
    [SHMVIEW_INT16] = {'s', 0, 1},
    [SHMVIEW_UINT16] = {'S', 0, 1},
    [SHMVIEW_INT32] = {'l', 0, 1},
    [SHMVIEW_UINT32] = {'L', 0, 1},
    [SHMVIEW_INT64] = {'q', 0, 1},
    [SHMVIEW_UINT64] = {'Q', 0, 1},
    [SHMVIEW_FLOAT32] = {'f', IS_LITTLE ? 'g' : 'e', 1},
    [SHMVIEW_FLOAT64] = {'d', IS_LITTLE ? 'G' : 'E', 1},
    [SHMVIEW_FLOAT16] = {'S', 0, 1},
    [SHMVIEW_BFLOAT16] = {'S', 0, 1},
    [SHMVIEW_COMPLEX64] = {'f', IS_LITTLE ? 'g' : 'e', 2},
    [SHMVIEW_COMPLEX128] = {'d', IS_LITTLE ? 'G' : 'E', 2},
    [SHMVIEW_POINTER] = {'Q', 0, 1},
};

/* Appends repeat elements of one type. */
static void add_scalar(struct text *text, uint32_t dtype, uint32_t itemsize, uint32_t repeat)
{
    uint32_t type = dtype & ~(uint32_t)SHMVIEW_SWAPPED;
    bool known = type < sizeof letters / sizeof letters[0] && letters[type].letter;
    char letter = known ? letters[type].letter : 'C';
    uint64_t n = (uint64_t)repeat * (known ? letters[type].n : itemsize);
    bool swapped = known && dtype & SHMVIEW_SWAPPED;
    if (swapped && letters[type].swapped)
        letter = letters[type].swapped;
    if (n == 0)
        return;
    add(text, "%c%s", letter, swapped && !letters[type].swapped ? IS_LITTLE ? ">" : "<" : "");
    if (n > 1)
        add(text, "%llu", (unsigned long long)n);
}

/* A struct that is being flattened. */
struct flat {
    struct text text;
    uint64_t at; /* the text so far describes the bytes before this one */
};

/* Appends padding up to byte `to`. Fails if the text is past it, because fields that overlap cannot
 * be written one after the other. */
static void pad(struct flat *flat, uint64_t to)
{
    if (to < flat->at)
        flat->text.failed = true; /* fields that overlap */
    else if (to - flat->at > 1)
        add(&flat->text, "x%llu", (unsigned long long)(to - flat->at));
    else if (to - flat->at == 1)
        add(&flat->text, "x");
    flat->at = to;
}

static void add_part(struct flat *flat, const struct shmview_part *whole)
{
    const struct shmview_component *c = whole->component;
    struct shmview_part part = {.component = NULL};
    if (c && c->dtype != SHMVIEW_STRUCT) {
        pad(flat, whole->offset);
        add_scalar(&flat->text, c->dtype, c->itemsize, whole->nbytes / c->itemsize);
        flat->at += whole->nbytes;
        return;
    }
    while (!flat->text.failed && shmview_part_next(whole, &part))
        add_part(flat, &part);
    pad(flat, whole->offset + whole->nbytes);
}

/* Returns the flat format of a struct, or NULL if it cannot be written: ruby_format() then exports
 * the element as bytes. */
static char *struct_format(struct shmview_format *format, const char *pep)
{
    struct shmview_component *list = calloc(format->n_components + 1, sizeof *list);
    struct shmview_part whole;
    struct flat flat = {.at = 0};
    if (!list || shmview_format_parse(pep, format, list, format->n_components))
        flat.text.failed = true;
    if (!flat.text.failed) {
        shmview_part_of(format, list, &whole);
        add_part(&flat, &whole);
    }
    free(list);
    return text_end(&flat.text);
}

char *ruby_format(const char *pep)
{
    struct shmview_format format;
    struct text bytes = {0};
    if (shmview_format_parse(pep, &format, NULL, 0))
        return NULL;
    char *text = format.dtype == SHMVIEW_STRUCT ? struct_format(&format, pep) : NULL;
    if (text)
        return text;
    add_scalar(&bytes, format.dtype, format.itemsize, 1);
    return text_end(&bytes);
}

/* --- From MemoryView ----------------------------------------------------- */

/* Returns the letter of PEP 3118 for a component, by its kind and size, and sets *ret_mark to the
 * mark of its byte order. */
static char pep_letter(const rb_memory_view_item_component_t *c, char *ret_mark)
{
    bool is_big = strchr("nNgG", c->format) || (!strchr("vVeE", c->format) && !c->little_endian_p);
    *ret_mark = is_big ? '>' : '<';
    if (strchr("fegdEG", c->format))
        return c->size == sizeof(float) ? 'f' : 'd';
    const char *by_size = strchr("csilqj", c->format) ? "bhiq" : "BHIQ";
    return by_size[c->size == 1 ? 0 : c->size == 2 ? 1 : c->size == 4 ? 2 : 3];
}

/* Up to this count a repeated letter is written out ("ff" and not "2f"). In PEP 3118 "2f" is an
 * array within the element, and "ff" two fields, which is what MemoryView means. A larger count
 * stays a count, because an element has at most 64 parts. */
#define WRITTEN_OUT 16

char *pep_format(const rb_memory_view_item_component_t *list, size_t n, size_t item_size)
{
    struct text text = {0};
    size_t at = 0;
    char mark;
    if (n == 0) {
        add(&text, item_size == 1 ? "B" : "%zuB", item_size);
        return text_end(&text);
    }
    if (n == 1 && list->repeat == 1 && list->offset == 0 && list->size == item_size) {
        char letter = pep_letter(list, &mark);
        if ((mark == '<') == IS_LITTLE)
            add(&text, "%c", letter);
        else
            add(&text, "%c%c", mark, letter);
        return text_end(&text);
    }
    for (size_t i = 0; i < n; i++) {
        const rb_memory_view_item_component_t *c = &list[i];
        char letter = pep_letter(c, &mark);
        add(&text, "%c", mark);
        if (c->offset > at)
            add(&text, "%zux", c->offset - at);
        if (c->repeat > WRITTEN_OUT)
            add(&text, "%zu%c", c->repeat, letter);
        else
            for (size_t k = 0; k < c->repeat; k++)
                add(&text, "%c", letter);
        at = c->offset + c->size * c->repeat;
    }
    if (item_size > at)
        add(&text, "%zux", item_size - at);
    return text_end(&text);
}
