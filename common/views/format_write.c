/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the canonical text of a format. It uses standard sizes, and all padding within a struct is
 * written out as x. Readers of PEP 3118 disagree about the alignment of structs in mode '@'. With
 * explicit padding and without '@' all of them compute the same offsets. */
#include <string.h>

#include "common/views/format_read.h"

struct writer {
    char *text;
    size_t n;
    char mode; /* the last mark that was written */
    bool is_full;
    const char *from; /* the text with the names */
};

/* Appends bytes. Does not use snprintf(), because it is slow: a layout can have thousands of
 * components, and the daemon writes all of them while its clients wait. */
static void put(struct writer *w, const char *bytes, size_t n)
{
    w->is_full = w->is_full || n >= SHMVIEW_FORMAT_BYTES - w->n; /* with room for the NUL */
    if (w->is_full)
        return;
    memcpy(w->text + w->n, bytes, n);
    w->n += n;
}

static void put_text(struct writer *w, const char *text)
{
    put(w, text, strlen(text));
}

static void put_number(struct writer *w, uint32_t n)
{
    char digits[10], *p = digits + sizeof digits;
    do
        *--p = (char)('0' + n % 10);
    while (n /= 10);
    put(w, p, (size_t)(digits + sizeof digits - p));
}

/* The mark of byte order for a type. */
static char mark_of(uint32_t dtype)
{
    bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    if (dtype == SHMVIEW_POINTER || dtype == SHMVIEW_LONGDOUBLE)
        return '^'; /* native, because they have no standard size */
    return little == !(dtype & SHMVIEW_SWAPPED) ? '<' : '>';
}

static void put_mark(struct writer *w, char mark)
{
    if (w->mode != mark)
        put(w, &mark, 1);
    w->mode = mark;
}

static void put_padding(struct writer *w, uint32_t n)
{
    if (n > 1)
        put_number(w, n);
    if (n)
        put_text(w, "x");
}

static void put_shape(struct writer *w, const struct format_node *node)
{
    for (uint32_t d = 0; d < node->ndim; d++) {
        put_text(w, d ? "," : "(");
        put_number(w, node->shape[d]);
    }
    if (node->ndim)
        put_text(w, ")");
}

static void put_letters(struct writer *w, const struct format_node *node)
{
    const char *letters = dtype_of(node->dtype)->letters;
    bool is_string = node->dtype == SHMVIEW_BYTES || node->dtype == SHMVIEW_PASCAL;
    if (is_string && node->bytes > 1)
        put_number(w, node->bytes);
    put_text(w, letters);
}

static uint32_t write_struct(struct writer *w, struct format_tree *t, uint32_t i, uint32_t depth,
                             uint32_t begin, uint32_t end);

/* Writes node i, with the nodes of its struct. Returns the index of the next node. */
static uint32_t write_node(struct writer *w, struct format_tree *t, uint32_t i)
{
    struct format_node *node = &t->nodes[i];
    put_shape(w, node);
    if (node->dtype) {
        /* after the first mark no reader aligns anything; numpy wants the shape before it */
        put_mark(w, mark_of(node->dtype));
        put_letters(w, node);
        i++;
    } else {
        i = write_struct(w, t, i + 1, node->depth + 1u, node->offset, node->offset + node->bytes);
    }
    if (node->name_bytes) {
        size_t at = w->n + 1;
        put_text(w, ":");
        put(w, w->from + node->name_at, node->name_bytes);
        put_text(w, ":");
        node->name_at = (uint16_t)at;
    }
    return i;
}

/* Writes the nodes of one struct, from i on, with the padding that fills the bytes from begin to
 * end. Returns the index of the next node. */
static uint32_t write_struct(struct writer *w, struct format_tree *t, uint32_t i, uint32_t depth,
                             uint32_t begin, uint32_t end)
{
    uint32_t at = begin;
    put_text(w, "T{");
    while (i < t->n && t->nodes[i].depth == depth) {
        const struct format_node *node = &t->nodes[i];
        put_padding(w, node->offset - at);
        at = node->offset + node->bytes * node->repeat;
        i = write_node(w, t, i);
    }
    put_padding(w, end - at);
    put_text(w, "}");
    return i;
}

/* Writes a single leaf. It needs a mark only if its bytes are swapped, or in the free form. */
static void write_plain(struct writer *w, const struct format_node *node, bool free_form)
{
    put_shape(w, node);
    if (free_form || node->dtype & SHMVIEW_SWAPPED)
        put_mark(w, mark_of(node->dtype));
    put_letters(w, node);
}

int format_write(struct format_tree *tree, const char *from, char text[SHMVIEW_FORMAT_BYTES])
{
    struct writer w = {.text = text, .mode = '@', .from = from};
    if (format_is_plain(tree) && tree->nodes[0].dtype)
        write_plain(&w, &tree->nodes[0], false);
    else if (format_is_plain(tree))
        write_node(&w, tree, 0);
    else
        write_struct(&w, tree, 0, 0, 0, tree->itemsize);
    text[w.n] = '\0';
    return w.is_full ? -1 : 0;
}

bool format_write_free(const struct format_tree *tree, char text[SHMVIEW_FORMAT_BYTES])
{
    struct writer w = {.text = text, .mode = '@'};
    const struct format_node *leaf = &tree->nodes[0];
    if (!format_is_plain(tree) || !leaf->dtype || leaf->dtype & SHMVIEW_SWAPPED)
        return false;
    write_plain(&w, leaf, true);
    text[w.n] = '\0';
    return true;
}
