/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text: sizes are standard ones; a struct has no alignment of its own, all
 * padding in it is written out, so that every reader of PEP 3118 sees the same offsets
 * whatever it thinks of '@'. */
#include <string.h>

#include "common/views/format_read.h"

struct writer {
    char *text;
    size_t n;
    char mode; /* the mark that holds */
    bool is_full;
    const char *from;
};

/* Not by snprintf(): a layout has thousands of components, and the daemon writes them all while
 * its clients wait. */
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

static char mark_of(uint32_t dtype)
{
    bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    if (dtype == SHMVIEW_POINTER || dtype == SHMVIEW_LONGDOUBLE)
        return '^'; /* no standard size */
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

/* Returns the node after it. */
static uint32_t write_node(struct writer *w, struct format_tree *t, uint32_t i)
{
    struct format_node *node = &t->nodes[i];
    put_shape(w, node);
    if (node->dtype) {
        /* from the first one on nothing is aligned by itself; numpy wants the shape before it */
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

/* Writes the nodes of that depth from i on, which fill begin to end. */
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

/* One leaf: the mark stands only where it says something. */
static void write_plain(struct writer *w, const struct format_node *node)
{
    put_shape(w, node);
    if (node->dtype & SHMVIEW_SWAPPED)
        put_mark(w, mark_of(node->dtype));
    put_letters(w, node);
}

int format_write(struct format_tree *tree, const char *from, char text[SHMVIEW_FORMAT_BYTES])
{
    struct writer w = {.text = text, .mode = '@', .from = from};
    if (format_is_plain(tree) && tree->nodes[0].dtype)
        write_plain(&w, &tree->nodes[0]);
    else if (format_is_plain(tree))
        write_node(&w, tree, 0);
    else
        write_struct(&w, tree, 0, 0, 0, tree->itemsize);
    text[w.n] = '\0';
    return w.is_full ? -1 : 0;
}
