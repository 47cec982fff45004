/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a format in one pass by recursive descent. The text may come from any client. Sizes are
 * bounded by INT32_MAX at every step; depth and number of components are bounded by limits.h.
 * Therefore no text can overflow a number or make the parser run for long.
 *
 * PEP 3118, numpy and Python's struct leave some rules open or differ. Here:
 *   - a mark of byte order holds until the next mark, also after the '}' of its struct (numpy);
 *   - the end of T{} is padded only in mode @ (C), the end of the top level never (struct);
 *   - 3h is an array of 3 within the element, like (3)h (numpy); 0h only aligns (struct). */
#include "common/views/format_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"

struct reader {
    const char *text, *p;
    char mode; /* one of @ ^ = < > */
    uint32_t depth;
    /* places of faults, if the structs around the whole element turn out not to be removable: */
    const char *too_deep;             /* the first struct that would be too deep, or NULL */
    const char *extra[FORMAT_BRACES]; /* components that would be too many */
    struct format_tree *tree;
    struct format_fault *fault;
    uint32_t hashes[ARRAY_LEN(((struct format_tree *)0)->nodes)]; /* of the nodes' names */
};

/* The prefix of a component: everything before its type code. */
struct member {
    uint32_t ndim;
    uint32_t shape[SHMVIEW_MAX_NDIM];
    const char *at;  /* where the component begins, for a fault */
    uint32_t count;  /* bytes of a string or of padding */
    bool is_nothing; /* repeated 0 times: only aligns what follows */
};

/* A struct that is being read, or the top level. */
struct frame_of {
    uint64_t size;
    uint32_t align;
    uint32_t first; /* its first node */
};

__attribute__((format(printf, 3, 4))) static void fill_fault(struct reader *r, const char *at,
                                                             const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    r->fault->at = (size_t)(at - r->text);
    vsnprintf(r->fault->why, sizeof r->fault->why, format, ap);
    va_end(ap);
}

/* Fills the fault. Returns -1. A macro, so that a compiler sees the result. */
#define fault_at(r, at, ...) (fill_fault(r, at, __VA_ARGS__), -1)

/* Not isdigit(), which is undefined for negative characters. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_native(const struct reader *r)
{
    return r->mode == '@' || r->mode == '^';
}

static bool is_swapped(const struct reader *r)
{
    return r->mode == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
}

static int read_number(struct reader *r, uint32_t *ret)
{
    const char *at = r->p;
    uint64_t n = 0;
    while (is_digit(*r->p)) {
        n = n * 10 + (uint64_t)(*r->p++ - '0');
        if (n > INT32_MAX)
            return fault_at(r, at, "a number over 2147483647");
    }
    if (r->p == at)
        return fault_at(r, at, "a number is missing");
    *ret = (uint32_t)n;
    return 0;
}

static int add_dimension(struct reader *r, struct member *m, uint32_t n, const char *at)
{
    if (m->ndim == SHMVIEW_MAX_NDIM)
        return fault_at(r, at, "an array of more than %d dimensions", SHMVIEW_MAX_NDIM);
    if (n == 0)
        return fault_at(r, at, "an array of no elements");
    m->shape[m->ndim++] = n;
    return 0;
}

/* Reads a shape, such as (2,3). */
static int read_shape(struct reader *r, struct member *m)
{
    const char *open = r->p++;
    if (m->ndim)
        return fault_at(r, open, "a second shape");
    for (;;) {
        uint32_t n;
        while (*r->p == ' ')
            r->p++;
        const char *at = r->p;
        if (read_number(r, &n) || add_dimension(r, m, n, at))
            return -1;
        while (*r->p == ' ')
            r->p++;
        if (*r->p == ')') {
            r->p++;
            return 0;
        }
        if (*r->p != ',')
            return fault_at(r, r->p, "a shape needs ',' or ')' here");
        r->p++;
    }
}

/* Reads marks, shape and count, up to the type code. */
static int read_prefix(struct reader *r, struct member *m)
{
    const char *counted = NULL;
    *m = (struct member){.count = 1};
    for (;;) {
        char c = *r->p;
        if (is_digit(c)) {
            counted = r->p;
            if (read_number(r, &m->count))
                return -1;
            break;
        }
        if (c && strchr("@=<>!^", c)) {
            r->mode = c == '!' ? '>' : c;
            r->p++;
        } else if (c == '(') {
            m->at = r->p;
            if (read_shape(r, m))
                return -1;
        } else if (c && strchr(" \t\n\r\f\v", c)) {
            r->p++;
        } else {
            break;
        }
    }
    char code = *r->p;
    bool of_bytes = code == 's' || code == 'p' || code == 'x';
    if (!m->at)
        m->at = counted ? counted : r->p;
    if (counted && !of_bytes && m->count != 1) {
        m->is_nothing = m->count == 0;
        if (m->count && add_dimension(r, m, m->count, counted))
            return -1;
    }
    return 0;
}

static int fault_many(struct reader *r, uint32_t which)
{
    return fault_at(r, r->extra[which], "more than %d components", LIMIT_FORMAT_NODES);
}

/* Adds a node without size or offset. Returns NULL after a fault. The tree has FORMAT_BRACES nodes
 * more than a format may have: whether that is a fault is known only at the end. */
static struct format_node *add_node(struct reader *r, const struct member *m)
{
    struct format_tree *t = r->tree;
    if (t->n == ARRAY_LEN(t->nodes)) {
        fault_many(r, 0);
        return NULL;
    }
    if (t->n >= LIMIT_FORMAT_NODES)
        r->extra[t->n - LIMIT_FORMAT_NODES] = m->at;
    struct format_node *node = &t->nodes[t->n++];
    *node = (struct format_node){.depth = (uint8_t)r->depth, .ndim = (uint8_t)m->ndim, .repeat = 1};
    memcpy(node->shape, m->shape, sizeof node->shape);
    return node;
}

/* Reads a name, such as :x:, if there is one. node is NULL for a component without bytes. Names are
 * compared by their hashes first, because comparing all pairs of names would take long. */
static int read_name(struct reader *r, const struct frame_of *of, struct format_node *node)
{
    if (*r->p != ':')
        return 0;
    const char *at = ++r->p;
    uint32_t hash = 0;
    while (*r->p && *r->p != ':') {
        if (*r->p < ' ' || *r->p > '~')
            return fault_at(r, r->p, "a name is of printable ASCII characters");
        hash = hash * 31 + (unsigned char)*r->p++;
    }
    size_t n = (size_t)(r->p - at);
    if (!*r->p)
        return fault_at(r, r->p, "the ':' that ends a name is missing");
    r->p++;
    if (!node)
        return fault_at(r, at, "a component without bytes cannot have a name");
    if (n == 0 || n > sizeof((struct shmview_component *)0)->name - 1)
        return fault_at(r, at, "a name has 1 to %zu characters",
                        sizeof((struct shmview_component *)0)->name - 1);
    uint32_t own = (uint32_t)(node - r->tree->nodes);
    for (uint32_t i = of->first; i < own; i++) {
        const struct format_node *other = &r->tree->nodes[i];
        if (r->hashes[i] == hash && other->depth == node->depth && other->name_bytes == n &&
            memcmp(r->text + other->name_at, at, n) == 0)
            return fault_at(r, at, "a second field '%.*s'", (int)n, at);
    }
    r->hashes[own] = hash;
    node->name_at = (uint16_t)(at - r->text);
    node->name_bytes = (uint16_t)n;
    return 0;
}

/* --- Placing ------------------------------------------------------------- */

static int grow(struct reader *r, struct frame_of *of, uint64_t bytes, const char *at)
{
    of->size += bytes;
    if (of->size > INT32_MAX)
        return fault_at(r, at, "the element has more than 2147483647 bytes");
    return 0;
}

/* In mode @ adds padding up to a multiple of align. */
static int align_to(struct reader *r, struct frame_of *of, uint32_t align, const char *at)
{
    if (r->mode != '@')
        return 0;
    if (of->align < align)
        of->align = align;
    return grow(r, of, (align - of->size % align) % align, at);
}

/* Places the node after the components that are there. Its offset counts from its struct, because
 * the place of that is not known yet; read_struct() adds it later. */
static int place(struct reader *r, struct frame_of *of, const struct member *m,
                 struct format_node *node, uint32_t align, uint64_t bytes)
{
    if (align_to(r, of, align, m->at))
        return -1;
    uint64_t total = bytes;
    for (uint32_t d = 0; d < m->ndim; d++)
        if (__builtin_mul_overflow(total, m->shape[d], &total) || total > INT32_MAX)
            return fault_at(r, m->at, "the element has more than 2147483647 bytes");
    node->offset = (uint32_t)of->size;
    node->bytes = (uint32_t)bytes;
    node->repeat = (uint32_t)(total / bytes);
    return grow(r, of, total, m->at);
}

/* --- Components ---------------------------------------------------------- */

static int read_fields(struct reader *r, struct frame_of *of);

static int fault_deep(struct reader *r)
{
    return fault_at(r, r->too_deep, "structs more than %d deep", LIMIT_FORMAT_DEPTH);
}

/* Reads a struct, T{...}, with its fields and its name. */
static int read_struct(struct reader *r, struct frame_of *of, const struct member *m)
{
    struct frame_of inner = {.align = 1};
    const char *open = r->p;
    if (r->depth > LIMIT_FORMAT_DEPTH)
        return fault_deep(r);
    if (r->depth == LIMIT_FORMAT_DEPTH && !r->too_deep)
        r->too_deep = open;
    struct format_node *node = add_node(r, m);
    if (!node)
        return -1;
    r->p += 2;
    r->depth++;
    inner.first = r->tree->n;
    int failed = read_fields(r, &inner);
    r->depth--;
    if (failed)
        return -1;
    if (*r->p != '}')
        return fault_at(r, r->p, "the '}' of this struct is missing");
    if (align_to(r, &inner, inner.align, r->p)) /* as C pads the end of a struct */
        return -1;
    r->p++;
    if (inner.size == 0)
        return fault_at(r, open, "a struct of no bytes");
    if (m->is_nothing) {
        r->tree->n = (uint32_t)(node - r->tree->nodes);
        return align_to(r, of, inner.align, m->at) || read_name(r, of, NULL) ? -1 : 0;
    }
    if (place(r, of, m, node, inner.align, inner.size))
        return -1;
    for (uint32_t i = inner.first; i < r->tree->n; i++)
        r->tree->nodes[i].offset += node->offset;
    return read_name(r, of, node);
}

/* Explains why there is no valid type code at this place. */
static int fault_code(struct reader *r)
{
    char c = *r->p;
    if (c == '\0')
        return fault_at(r, r->p, "a type code is missing");
    if (c == 'O' || c == '&' || c == 'X')
        return fault_at(r, r->p, "'%c': an address means nothing in another process", c);
    if (c == 'u' || c == 'w' || c == 'U')
        return fault_at(r, r->p, "'%c': wide characters are not supported; share text as bytes", c);
    if (c == 'M' || c == 'm' || c == 't')
        return fault_at(r, r->p, "'%c': %s are not supported", c,
                        c == 't' ? "bits" : "dates; share them as int64");
    if (strchr("nNPg", c))
        return fault_at(r, r->p, "'%c' has no standard size: only with @ or ^", c);
    if (c == 'Z' || c == 'T')
        return fault_at(r, r->p, c == 'Z' ? "'Z' stands before f or d" : "'T' stands before {");
    if (c < ' ' || c > '~')
        return fault_at(r, r->p, "byte 0x%02x is no type code", (unsigned char)c);
    return fault_at(r, r->p, "'%c' is no type code", c);
}

/* Reads a base type with its name. */
static int read_leaf(struct reader *r, struct frame_of *of, const struct member *m)
{
    char letter = *r->p;
    size_t n = 1;
    if (letter == 'Z' && (r->p[1] == 'f' || r->p[1] == 'd')) {
        letter = r->p[1] == 'f' ? 'F' : 'D';
        n = 2;
    } else if (letter == 'F' || letter == 'D' || letter == '\0') {
        return fault_code(r);
    }
    const struct dtype *t = dtype_by_letter(letter, is_native(r));
    if (!t)
        return fault_code(r);
    r->p += n;
    bool is_string = t->code == SHMVIEW_BYTES || t->code == SHMVIEW_PASCAL;
    if (m->is_nothing || (is_string && m->count == 0))
        return align_to(r, of, t->align, m->at) || read_name(r, of, NULL) ? -1 : 0;
    struct format_node *node = add_node(r, m);
    if (!node)
        return -1;
    node->dtype = (uint16_t)(t->code | (t->is_ordered && is_swapped(r) ? SHMVIEW_SWAPPED : 0));
    if (r->mode == '@' && t->align > 1)
        r->tree->wants_alignment = true;
    if (place(r, of, m, node, t->align, is_string ? m->count : t->itemsize))
        return -1;
    return read_name(r, of, node);
}

/* Reads components up to a '}' or the end of the text. */
static int read_fields(struct reader *r, struct frame_of *of)
{
    for (;;) {
        struct member m;
        if (read_prefix(r, &m))
            return -1;
        bool nothing_before = m.at == r->p && m.ndim == 0;
        if ((*r->p == '\0' || *r->p == '}') && nothing_before)
            return 0;
        if (*r->p == 'x') {
            r->p++;
            if (m.ndim)
                return fault_at(r, m.at, "padding has no shape");
            if (grow(r, of, m.count, m.at) || read_name(r, of, NULL))
                return -1;
        } else if (r->p[0] == 'T' && r->p[1] == '{') {
            if (read_struct(r, of, &m))
                return -1;
        } else if (read_leaf(r, of, &m)) {
            return -1;
        }
    }
}

/* --- The whole ----------------------------------------------------------- */

bool format_is_plain(const struct format_tree *tree)
{
    const struct format_node *first = &tree->nodes[0];
    return tree->n && first->name_bytes == 0 && first->offset == 0 &&
           (uint64_t)first->bytes * first->repeat == tree->itemsize &&
           (tree->n == 1 || tree->nodes[1].depth > 0);
}

void format_take_braces_off(struct format_tree *tree)
{
    while (format_is_plain(tree) && !tree->nodes[0].dtype && !tree->nodes[0].ndim) {
        tree->n--;
        memmove(tree->nodes, tree->nodes + 1, tree->n * sizeof *tree->nodes);
        for (uint32_t i = 0; i < tree->n; i++)
            tree->nodes[i].depth--;
    }
}

int format_read(const char *text, struct format_tree *ret, struct format_fault *fault)
{
    struct reader r = {.text = text, .p = text, .mode = '@', .tree = ret, .fault = fault};
    struct frame_of all = {.align = 1};
    ret->n = 0;
    ret->wants_alignment = false;
    if (strnlen(text, SHMVIEW_FORMAT_BYTES) == SHMVIEW_FORMAT_BYTES)
        return fault_at(&r, text + SHMVIEW_FORMAT_BYTES - 1, "more than %d characters",
                        SHMVIEW_FORMAT_BYTES - 1);
    if (read_fields(&r, &all))
        return -1;
    if (*r.p == '}')
        return fault_at(&r, r.p, "'}' without 'T{'");
    if (all.size == 0)
        return fault_at(&r, r.p,
                        text[strspn(text, "@=<>!^ \t\n\r\f\v")] ? "an element of no bytes"
                                                                : "a type code is missing");
    ret->itemsize = (uint32_t)all.size;
    uint32_t n = ret->n;
    format_take_braces_off(ret);
    if (ret->n > LIMIT_FORMAT_NODES)
        return fault_many(&r, n - ret->n);
    for (uint32_t i = 0; r.too_deep && i < ret->n; i++)
        if (!ret->nodes[i].dtype && ret->nodes[i].depth >= LIMIT_FORMAT_DEPTH)
            return fault_deep(&r);
    return 0;
}
