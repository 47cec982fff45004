/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <inttypes.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* --- Making -------------------------------------------------------------- */

#define ANY_MARK    "bBhHiIlLqQ?cefdsp"
#define NATIVE_MARK ANY_MARK "nNPg"

struct generator {
    struct tree *tree;
    struct choices *from;
    char mark;
};

static uint32_t part_new(struct generator *g)
{
    uint32_t at = g->tree->n_parts++;
    memset(&g->tree->parts[at], 0, sizeof g->tree->parts[at]);
    g->tree->parts[at].child = g->tree->parts[at].next = TREE_NONE;
    return at;
}

static void part_set_array(struct generator *g, struct part *part)
{
    static const uint64_t many[] = {1000,          65536,       1 << 20,    INT32_MAX,
                                    INT32_MAX - 1, 1 << 30,     0x80000000, UINT32_MAX,
                                    0x100000000,   0x100000001, 0x40000001, 0x20000000};
    if (choose_rarely(g->from, 5)) {
        bool is_deep = choose_rarely(g->from, 16);
        part->ndim = (uint32_t)choose(g->from, 1, is_deep ? SHMVIEW_MAX_NDIM : 3);
        for (uint32_t d = 0; d < part->ndim; d++)
            part->shape[d] = (uint32_t)choose(g->from, 1, is_deep ? 2 : 3);
    }
    if (choose_rarely(g->from, 4))
        part->count = (uint64_t)choose(g->from, 1, 4);
    if (choose_rarely(g->from, 128))
        part->count = many[choose(g->from, 0, sizeof many / sizeof many[0] - 1)];
}

static void part_set_mark(struct generator *g, struct part *part)
{
    if (!choose_rarely(g->from, 5))
        return;
    part->mark = "@=<>!^"[choose(g->from, 0, 5)];
    part->mark_late = part->ndim > 0 && choose_rarely(g->from, 2);
    g->mark = part->mark;
}

/* Gives the part a name that is unique in its struct; other structs may have it too. */
static void part_set_name(struct generator *g, uint32_t at, uint32_t number, bool needs_name)
{
    static const char *const before[] = {"n", "", "a field ", "_", "T{i}", "~(2)"};
    size_t n = choose_rarely(g->from, 8) ? sizeof before / sizeof before[0] : 1;
    if (needs_name || choose_rarely(g->from, 16))
        snprintf(g->tree->parts[at].name, TREE_NAME_BYTES, "%s%u",
                 before[choose(g->from, 0, (int64_t)n - 1)], number);
}

static uint32_t list_generate(struct generator *g, uint32_t depth);

static void part_generate(struct generator *g, uint32_t at, uint32_t depth)
{
    struct part *part = &g->tree->parts[at];
    part_set_array(g, part);
    part_set_mark(g, part);
    int64_t kind = choose(g->from, 0, 15);
    if (kind == 15 || (depth == 0 && kind >= 12)) {
        if (depth < 4 && g->tree->n_parts + 2 < TREE_PARTS) {
            part->letter = 'T';
            part->child = list_generate(g, depth + 1);
            return;
        }
    }
    if (kind == 14) {
        part->letter = 'x';
        part->ndim = 0;
        part->mark_late = false;
    } else if (kind == 13) {
        part->is_complex = true;
        part->letter = "fd"[choose(g->from, 0, 1)];
    } else {
        bool native = g->mark == '@' || g->mark == '^';
        const char *letters = native ? NATIVE_MARK : ANY_MARK;
        part->letter = letters[choose(g->from, 0, (int64_t)strlen(letters) - 1)];
    }
}

/* Makes a list of parts. Returns the first one. */
static uint32_t list_generate(struct generator *g, uint32_t depth)
{
    static const uint8_t lengths[] = {1, 1, 1, 2, 3, 4, 2, 1};
    uint32_t n = depth ? (uint32_t)choose(g->from, 1, 5) : lengths[choose(g->from, 0, 7)];
    bool named = depth ? !choose_rarely(g->from, 8) : choose_rarely(g->from, 16);
    uint32_t first = TREE_NONE, last = TREE_NONE;
    for (uint32_t i = 0; i < n && g->tree->n_parts < TREE_PARTS; i++) {
        uint32_t at = part_new(g);
        part_generate(g, at, depth);
        if (g->tree->parts[at].letter != 'x')
            part_set_name(g, at, i, named);
        if (last == TREE_NONE)
            first = at;
        else
            g->tree->parts[last].next = at;
        last = at;
    }
    return first;
}

void tree_generate(struct tree *tree, struct choices *from)
{
    struct generator g = {.tree = tree, .from = from, .mark = '@'};
    tree->n_parts = 0;
    list_generate(&g, 0);
}

/* --- Writing ------------------------------------------------------------- */

struct writer {
    const struct tree *tree;
    char *text;
    size_t bytes, n;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(w->n < w->bytes ? w->text + w->n : NULL,
                      w->n < w->bytes ? w->bytes - w->n : 0, format, arguments);
    va_end(arguments);
    w->n += n > 0 ? (size_t)n : 0;
}

static void list_write(struct writer *w, uint32_t at);

static void part_write(struct writer *w, const struct part *part)
{
    if (part->mark && !part->mark_late)
        put(w, "%c", part->mark);
    for (uint32_t d = 0; d < part->ndim; d++)
        put(w, "%s%u%s", d ? "," : "(", part->shape[d], d + 1 == part->ndim ? ")" : "");
    if (part->mark && part->mark_late)
        put(w, "%c", part->mark);
    if (part->count)
        put(w, "%" PRIu64, part->count);
    put(w, "%s%c", part->is_complex ? "Z" : "", part->letter);
    if (part->letter == 'T') {
        put(w, "{");
        list_write(w, part->child);
        put(w, "}");
    }
    if (part->name[0])
        put(w, ":%s:", part->name);
}

static void list_write(struct writer *w, uint32_t at)
{
    for (; at != TREE_NONE; at = w->tree->parts[at].next)
        part_write(w, &w->tree->parts[at]);
}

size_t tree_write(const struct tree *tree, char *ret_text, size_t bytes)
{
    struct writer w = {.tree = tree, .text = ret_text, .bytes = bytes};
    list_write(&w, 0);
    return w.n;
}

/* --- Evaluating ---------------------------------------------------------- */

/* By docs.python.org, "struct"; standard 0 means that the letter has no standard size. */
static const struct leaf {
    char letter;
    bool is_complex;
    uint8_t native, align, standard;
    uint16_t native_dtype, standard_dtype;
} leaves[] = {
    {'b', false, 1, 1, 1, SHMVIEW_INT8, SHMVIEW_INT8},
    {'B', false, 1, 1, 1, SHMVIEW_UINT8, SHMVIEW_UINT8},
    {'?', false, sizeof(_Bool), alignof(_Bool), 1, SHMVIEW_BOOL, SHMVIEW_BOOL},
    {'c', false, 1, 1, 1, SHMVIEW_CHAR, SHMVIEW_CHAR},
    {'h', false, sizeof(short), alignof(short), 2, SHMVIEW_INT16, SHMVIEW_INT16},
    {'H', false, sizeof(short), alignof(short), 2, SHMVIEW_UINT16, SHMVIEW_UINT16},
    {'i', false, sizeof(int), alignof(int), 4, SHMVIEW_INT32, SHMVIEW_INT32},
    {'I', false, sizeof(int), alignof(int), 4, SHMVIEW_UINT32, SHMVIEW_UINT32},
    {'l', false, sizeof(long), alignof(long), 4, sizeof(long) == 8 ? SHMVIEW_INT64 : SHMVIEW_INT32,
     SHMVIEW_INT32},
    {'L', false, sizeof(long), alignof(long), 4,
     sizeof(long) == 8 ? SHMVIEW_UINT64 : SHMVIEW_UINT32, SHMVIEW_UINT32},
    {'q', false, sizeof(long long), alignof(long long), 8, SHMVIEW_INT64, SHMVIEW_INT64},
    {'Q', false, sizeof(long long), alignof(long long), 8, SHMVIEW_UINT64, SHMVIEW_UINT64},
    {'n', false, sizeof(ssize_t), alignof(ssize_t), 0,
     sizeof(ssize_t) == 8 ? SHMVIEW_INT64 : SHMVIEW_INT32, 0},
    {'N', false, sizeof(size_t), alignof(size_t), 0,
     sizeof(size_t) == 8 ? SHMVIEW_UINT64 : SHMVIEW_UINT32, 0},
    {'P', false, sizeof(void *), alignof(void *), 0, SHMVIEW_POINTER, 0},
    {'e', false, 2, 2, 2, SHMVIEW_FLOAT16, SHMVIEW_FLOAT16},
    {'f', false, sizeof(float), alignof(float), 4, SHMVIEW_FLOAT32, SHMVIEW_FLOAT32},
    {'d', false, sizeof(double), alignof(double), 8, SHMVIEW_FLOAT64, SHMVIEW_FLOAT64},
    {'g', false, sizeof(long double), alignof(long double), 0, SHMVIEW_LONGDOUBLE, 0},
    {'f', true, 2 * sizeof(float), alignof(float), 8, SHMVIEW_COMPLEX64, SHMVIEW_COMPLEX64},
    {'d', true, 2 * sizeof(double), alignof(double), 16, SHMVIEW_COMPLEX128, SHMVIEW_COMPLEX128},
    {'s', false, 1, 1, 1, SHMVIEW_BYTES, SHMVIEW_BYTES},
    {'p', false, 1, 1, 1, SHMVIEW_PASCAL, SHMVIEW_PASCAL},
    {'x', false, 1, 1, 1, SHMVIEW_STRUCT, SHMVIEW_STRUCT},
};

static const struct leaf *leaf_of(const struct part *part)
{
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++)
        if (leaves[i].letter == part->letter && leaves[i].is_complex == part->is_complex)
            return &leaves[i];
    return NULL;
}

struct evaluation {
    const struct tree *tree;
    struct meaning *meaning;
    char mark; /* holds until the next mark, across all braces */
    bool wants_alignment;
};

/* The size, and the alignment that @ gives: for a struct, the largest of its parts aligned by @. */
struct extent {
    uint64_t bytes;
    uint32_t align;
};

static struct extent list_evaluate(struct evaluation *e, uint32_t at, uint32_t depth,
                                   bool is_struct);

static uint64_t round_up(uint64_t n, uint32_t align)
{
    while (n % align)
        n++;
    return n;
}

/* Returns the product, at most 2^40. a and b may have been cut to that as well. */
static uint64_t times(uint64_t a, uint64_t b)
{
    const uint64_t most = (uint64_t)1 << 40;
    return a && b > most / a ? most : a * b;
}

static bool is_swapped(char mark)
{
    bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    return little ? mark == '>' || mark == '!' : mark == '<';
}

static struct extent leaf_evaluate(struct evaluation *e, const struct part *part,
                                   struct meaning_part *ret)
{
    const struct leaf *leaf = leaf_of(part);
    bool native = e->mark == '@' || e->mark == '^';
    bool is_text = strchr("spx", part->letter) != NULL;
    struct extent x = {native ? leaf->native : leaf->standard, leaf->align};
    ret->dtype = native ? leaf->native_dtype : leaf->standard_dtype;
    if (!native && !leaf->is_complex && x.bytes < x.align)
        x.align = leaf->standard; /* l of four bytes */
    e->wants_alignment = e->wants_alignment || (e->mark == '@' && x.align > 1);
    if (is_text)
        x.bytes = part->count ? part->count : 1;
    else if (x.bytes > 1 && is_swapped(e->mark))
        ret->dtype |= SHMVIEW_SWAPPED;
    return x;
}

static void part_set_shape(struct meaning *m, const struct part *part, struct meaning_part *ret)
{
    ret->repeat = 1;
    for (uint32_t d = 0; d < part->ndim; d++)
        ret->shape[ret->ndim++] = part->shape[d];
    bool is_counted = part->count > 1 && !strchr("spx", part->letter);
    if (is_counted && ret->ndim == SHMVIEW_MAX_NDIM)
        m->has_too_many = true;
    else if (is_counted)
        ret->shape[ret->ndim++] = part->count;
    for (uint32_t d = 0; d < ret->ndim; d++)
        ret->repeat = times(ret->repeat, ret->shape[d]);
}

/* Adds one part after the *offset bytes before it. Returns its alignment. */
static uint32_t part_evaluate(struct evaluation *e, const struct part *part, uint32_t depth,
                              uint64_t *offset)
{
    struct meaning *m = e->meaning;
    struct meaning_part scratch = {0}, *mine = &scratch;
    uint32_t first = m->n_parts;
    struct extent x;
    if (part->letter != 'x') {
        mine = &m->parts[m->n_parts++];
        memset(mine, 0, sizeof *mine);
    }
    if (part->mark)
        e->mark = part->mark;
    if (part->letter == 'T')
        x = list_evaluate(e, part->child, depth + 1, true);
    else
        x = leaf_evaluate(e, part, mine);
    part_set_shape(m, part, mine);
    if (e->mark == '@')
        *offset = round_up(*offset, x.align);
    for (uint32_t i = first; i < m->n_parts; i++)
        m->parts[i].offset += *offset;
    mine->bytes = x.bytes;
    mine->align = part->letter == 'T' ? 1 : x.align;
    mine->depth = depth;
    memcpy(mine->name, part->name, sizeof part->name);
    *offset += times(x.bytes, mine->repeat);
    return x.align;
}

/* Returns whether each leaf of the parts from first to end is aligned in every repetition at base.
 * depth is the depth of these parts. */
static bool leaves_aligned(const struct meaning *m, uint32_t first, uint32_t end, uint32_t depth,
                           uint64_t base)
{
    for (uint32_t i = first; i < end; i++) {
        const struct meaning_part *part = &m->parts[i];
        uint32_t last = i + 1;
        if (part->depth != depth)
            continue;
        while (last < end && m->parts[last].depth > depth)
            last++;
        for (uint64_t k = 0; k < part->repeat && k < 16; k++) { /* offsets repeat modulo 16 */
            uint64_t step = base + k * part->bytes;
            if (last > i + 1 ? !leaves_aligned(m, i + 1, last, depth + 1, step)
                             : (part->offset + step) % part->align)
                return false;
        }
    }
    return true;
}

static struct extent list_evaluate(struct evaluation *e, uint32_t at, uint32_t depth,
                                   bool is_struct)
{
    struct extent x = {0, 1};
    for (; at != TREE_NONE; at = e->tree->parts[at].next) {
        uint32_t align = part_evaluate(e, &e->tree->parts[at], depth, &x.bytes);
        x.align = e->mark == '@' && align > x.align ? align : x.align;
    }
    if (is_struct && e->mark == '@')
        x.bytes = round_up(x.bytes, x.align);
    return x;
}

/* Returns whether the element is one component that is no array and has no name. */
static bool is_alone(const struct meaning *m)
{
    const struct meaning_part *first = &m->parts[0];
    for (uint32_t i = 1; i < m->n_parts; i++)
        if (m->parts[i].depth == 0)
            return false;
    return m->n_parts > 0 && first->ndim == 0 && !first->name[0] && first->bytes == m->itemsize;
}

/* An element that is a single T{...} gets the fields of that struct. */
void meaning_unwrap(struct meaning *m)
{
    while (is_alone(m) && m->parts[0].dtype == SHMVIEW_STRUCT) {
        for (uint32_t i = 1; i < m->n_parts; i++) {
            m->parts[i - 1] = m->parts[i];
            m->parts[i - 1].depth--;
        }
        m->n_parts--;
    }
    m->dtype = is_alone(m) ? m->parts[0].dtype : SHMVIEW_STRUCT;
}

void tree_evaluate(const struct tree *tree, struct meaning *ret)
{
    struct evaluation e = {.tree = tree, .meaning = ret, .mark = '@'};
    memset(ret, 0, sizeof *ret);
    uint32_t most = 1;
    ret->itemsize = list_evaluate(&e, 0, 0, false).bytes;
    for (uint32_t i = 0; i < ret->n_parts; i++)
        most = ret->parts[i].align > most ? ret->parts[i].align : most;
    bool all = leaves_aligned(ret, 0, ret->n_parts, 0, 0) && ret->itemsize % most == 0;
    ret->align = all ? most : 1;
    ret->least_align = e.wants_alignment ? ret->align : 1;
    meaning_unwrap(ret);
}
