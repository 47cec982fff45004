/* SPDX-License-Identifier: Apache-2.0 */
#include "common/views/format.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include "common/views/format_read.h"

/* A format of a pool, in both forms, in one allocation with its nodes and then its texts. */
struct kept_format {
    struct kept_format *next;
    uint32_t hash; /* of the text, because many texts can begin with the same long struct */
    struct format format;
    struct format free;
    struct format_node nodes[];
};

/* --- Types that are not made of others ----------------------------------- */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORDER "<"
#else
#define ORDER ">"
#endif

/* Static formats of the base types, so that the common ones need no pool and no memory: code, type,
 * the mark of the free form, text. Types without a mark have no free form. */
#define EACH_PLAIN(X)                                                                              \
    X(SHMVIEW_INT8, int8_t, "", "b")                                                               \
    X(SHMVIEW_UINT8, uint8_t, "", "B")                                                             \
    X(SHMVIEW_INT16, int16_t, ORDER, "h")                                                          \
    X(SHMVIEW_UINT16, uint16_t, ORDER, "H")                                                        \
    X(SHMVIEW_INT32, int32_t, ORDER, "i")                                                          \
    X(SHMVIEW_UINT32, uint32_t, ORDER, "I")                                                        \
    X(SHMVIEW_INT64, int64_t, ORDER, "q")                                                          \
    X(SHMVIEW_UINT64, uint64_t, ORDER, "Q")                                                        \
    X(SHMVIEW_FLOAT32, float, ORDER, "f")                                                          \
    X(SHMVIEW_FLOAT64, double, ORDER, "d")                                                         \
    X(SHMVIEW_FLOAT16, uint16_t, ORDER, "e")                                                       \
    X(SHMVIEW_COMPLEX64, float _Complex, ORDER, "Zf")                                              \
    X(SHMVIEW_COMPLEX128, double _Complex, ORDER, "Zd")                                            \
    X(SHMVIEW_LONGDOUBLE, long double, "^", "g")                                                   \
    X(SHMVIEW_BOOL, bool, "", "?")                                                                 \
    X(SHMVIEW_CHAR, char, "", "c")                                                                 \
    X(SHMVIEW_POINTER, void *, "^", "P")                                                           \
    X(SHMVIEW_BYTES, char, "", "s")                                                                \
    X(SHMVIEW_PASCAL, char, "", "p")                                                               \
    X(SHMVIEW_BFLOAT16, uint16_t, "", "bfloat16")                                                  \
    X(SHMVIEW_FLOAT8_E3M4, uint8_t, "", "float8_e3m4")                                             \
    X(SHMVIEW_FLOAT8_E4M3, uint8_t, "", "float8_e4m3")                                             \
    X(SHMVIEW_FLOAT8_E4M3B11FNUZ, uint8_t, "", "float8_e4m3b11fnuz")                               \
    X(SHMVIEW_FLOAT8_E4M3FN, uint8_t, "", "float8_e4m3fn")                                         \
    X(SHMVIEW_FLOAT8_E4M3FNUZ, uint8_t, "", "float8_e4m3fnuz")                                     \
    X(SHMVIEW_FLOAT8_E5M2, uint8_t, "", "float8_e5m2")                                             \
    X(SHMVIEW_FLOAT8_E5M2FNUZ, uint8_t, "", "float8_e5m2fnuz")                                     \
    X(SHMVIEW_FLOAT8_E8M0FNU, uint8_t, "", "float8_e8m0fnu")

#define NODE(code, type, mark, text) [code] = {.bytes = sizeof(type), .repeat = 1, .dtype = (code)},
static const struct format_node plain_nodes[] = {EACH_PLAIN(NODE)};
#undef NODE

#define PLAIN(code, type, mark, text)                                                              \
    [code] = {sizeof(type), _Alignof(type), code, 1, &plain_nodes[code], text, NULL},
static const struct format plain[] = {EACH_PLAIN(PLAIN)};
#undef PLAIN

#define FREE(code, type, mark, text)                                                               \
    [code] = {sizeof(type), 1, code, 1, &plain_nodes[code], mark text, &plain[code]},
static const struct format plain_free[] = {EACH_PLAIN(FREE)};
#undef FREE

/* --- Alignment ----------------------------------------------------------- */

/* The largest alignment of a leaf, if every leaf is aligned in every entry of every array; else 1.
 * Computed from the offsets and not from the marks in the text, because the canonical text has no
 * marks for alignment, and equal formats must have equal alignment. */
static uint32_t alignment(const struct format_tree *t)
{
    uint32_t align = 1;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->nodes[i].dtype && dtype_of(t->nodes[i].dtype)->align > align)
            align = dtype_of(t->nodes[i].dtype)->align;
    if (t->itemsize % align)
        return 1;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct format_node *node = &t->nodes[i];
        uint32_t own = 1;
        if (node->dtype) {
            own = dtype_of(node->dtype)->align;
        } else {
            for (uint32_t k = i + 1; k < t->n && t->nodes[k].depth > node->depth; k++)
                if (t->nodes[k].dtype && dtype_of(t->nodes[k].dtype)->align > own)
                    own = dtype_of(t->nodes[k].dtype)->align;
        }
        if ((node->dtype && node->offset % own) || (node->repeat > 1 && node->bytes % own))
            return 1;
    }
    return align;
}

/* The base type if the element is just one, else SHMVIEW_STRUCT. */
static uint32_t dtype_of_tree(const struct format_tree *t)
{
    bool is_one = format_is_plain(t) && t->nodes[0].repeat == 1 && t->nodes[0].ndim == 0;
    return is_one ? t->nodes[0].dtype : SHMVIEW_STRUCT;
}

/* --- Keeping ------------------------------------------------------------- */

void formats_deinit(struct formats *pool)
{
    while (pool->first) {
        struct kept_format *k = pool->first;
        pool->first = k->next;
        free(k);
    }
}

/* Returns the aligned format, or its free form if there is one and no leaf wants its alignment. */
static const struct format *form_of(const struct format *aligned, const struct format *free_form,
                                    const struct format_tree *t)
{
    return t->wants_alignment || aligned->align == 1 ? aligned : free_form;
}

/* Returns the formats of the pool with this canonical text; adds them if there are none. */
static struct kept_format *keep(struct formats *pool, struct format_tree *t, const char *text)
{
    char free_text[SHMVIEW_FORMAT_BYTES];
    uint32_t hash = 0;
    for (size_t i = 0; text[i]; i++)
        hash = hash * 31 + (unsigned char)text[i];
    for (struct kept_format *k = pool->first; k; k = k->next)
        if (k->hash == hash && strcmp(k->format.text, text) == 0)
            return k;
    bool has_free_text = format_write_free(t, free_text);
    size_t nodes_bytes = t->n * sizeof *t->nodes, text_bytes = strlen(text) + 1;
    size_t free_bytes = has_free_text ? strlen(free_text) + 1 : 0;
    struct kept_format *k = malloc(sizeof *k + nodes_bytes + text_bytes + free_bytes);
    if (!k)
        return NULL;
    char *own_text = (char *)k->nodes + nodes_bytes;
    memcpy(k->nodes, t->nodes, nodes_bytes);
    memcpy(own_text, text, text_bytes);
    memcpy(own_text + text_bytes, free_text, free_bytes);
    k->format = (struct format){
        .itemsize = t->itemsize,
        .align = alignment(t),
        .dtype = dtype_of_tree(t),
        .n_nodes = t->n,
        .nodes = k->nodes,
        .text = own_text,
    };
    k->free = k->format;
    k->free.align = 1;
    k->free.text = own_text + (has_free_text ? text_bytes : 0);
    k->free.aligned = &k->format;
    k->hash = hash;
    k->next = pool->first;
    pool->first = k;
    return k;
}

/* Makes a format of a tree, whose names point into the text `from`. */
static const struct format *format_from(struct formats *pool, struct format_tree *t,
                                        const char *from, struct format_fault *fault)
{
    char text[SHMVIEW_FORMAT_BYTES];
    uint32_t dtype = dtype_of_tree(t);
    bool is_string = dtype == SHMVIEW_BYTES || dtype == SHMVIEW_PASCAL;
    if (dtype && !(dtype & SHMVIEW_SWAPPED) && (!is_string || t->itemsize == 1))
        return dtype == SHMVIEW_BFLOAT16 ? &plain[dtype] /* no text can have its free form */
                                         : form_of(&plain[dtype], &plain_free[dtype], t);
    fault->at = 0;
    if (format_write(t, from, text)) {
        strcpy(fault->why, "its canonical form is too long");
        return NULL;
    }
    fault->why[0] = '\0';
    const struct kept_format *k = keep(pool, t, text);
    return k ? form_of(&k->format, &k->free, t) : NULL;
}

/* --- Reading ------------------------------------------------------------- */

/* Makes the format of a base type. mark is the mark of byte order before its name, or '\0'. */
static const struct format *from_type(struct formats *pool, const struct dtype *type, char mark,
                                      bool swapped, struct format_fault *fault)
{
    struct format_tree t = {.itemsize = type->itemsize, .n = 1, .wants_alignment = !mark};
    t.nodes[0] = plain_nodes[type->code];
    if (swapped && type->is_ordered)
        t.nodes[0].dtype = (uint16_t)(t.nodes[0].dtype | SHMVIEW_SWAPPED);
    return format_from(pool, &t, "", fault);
}

/* Whether p is a typestr such as S5, numpy's string of 5 bytes. */
static bool is_string_typestr(const char *p)
{
    size_t digits = p[0] == 'S' ? strspn(p + 1, "0123456789") : 0;
    return digits && p[1] != '0' && digits < 10 && p[1 + digits] == '\0';
}

/* Reads a name or a typestr, which must be the whole text. Returns false if text is neither; else
 * *ret is NULL if memory is short. */
static bool from_alias(struct formats *pool, const char *text, const struct format **ret,
                       struct format_fault *fault)
{
    const struct dtype *type = dtype_by_name(text);
    const char *p = text;
    bool swapped = false;
    char mark = '\0';
    if (!type && *p && strchr("<>=|", *p)) {
        swapped = *p == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
        mark = *p++;
    }
    if (!type && is_string_typestr(p)) {
        struct format_tree t = {.n = 1};
        t.itemsize = (uint32_t)strtoul(p + 1, NULL, 10);
        if (t.itemsize > INT32_MAX)
            return false;
        t.nodes[0] = (struct format_node){.bytes = t.itemsize, .repeat = 1, .dtype = SHMVIEW_BYTES};
        *ret = format_from(pool, &t, "", fault);
        return true;
    }
    if (!type)
        type = dtype_by_typestr(p);
    if (!type || (*text == '|' && type->is_ordered) ||
        (swapped && type->code == SHMVIEW_LONGDOUBLE)) /* has no form in the other order */
        return false;
    *ret = from_type(pool, type, mark, swapped, fault);
    return true;
}

const struct format *formats_get(struct formats *pool, const char *text,
                                 struct format_fault *ret_fault)
{
    const struct format *f;
    struct format_tree t;
    *ret_fault = (struct format_fault){0};
    if (text[0] && !text[1]) { /* the common case, without parsing */
        const struct dtype *type = dtype_by_letter(text[0], true);
        if (type && text[0] != 'F' && text[0] != 'D')
            return &plain[type->code];
    }
    if (from_alias(pool, text, &f, ret_fault))
        return f;
    if (format_read(text, &t, ret_fault))
        return NULL;
    return format_from(pool, &t, text, ret_fault);
}

const struct format *formats_get_node(struct formats *pool, const struct format *f, uint32_t node)
{
    struct format_tree t = {.n = 1};
    struct format_fault fault;
    uint32_t base = f->nodes[node].offset;
    uint8_t depth = f->nodes[node].depth;
    t.itemsize = f->nodes[node].bytes;
    if (f->nodes[node].dtype) {
        t.nodes[0] = f->nodes[node];
        t.nodes[0].repeat = 1;
        t.nodes[0].ndim = 0;
        t.nodes[0].offset = 0;
        t.nodes[0].depth = 0;
        t.nodes[0].name_bytes = 0;
        return format_from(pool, &t, f->text, &fault);
    }
    /* a struct: its fields become the direct components */
    for (t.n = 0; ++node < f->n_nodes && f->nodes[node].depth > depth; t.n++) {
        t.nodes[t.n] = f->nodes[node];
        t.nodes[t.n].offset -= base;
        t.nodes[t.n].depth = (uint8_t)(t.nodes[t.n].depth - depth - 1);
    }
    format_take_braces_off(&t);
    return format_from(pool, &t, f->text, &fault);
}

int format_find(const struct format *f, const char *name)
{
    int found = -1;
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        const struct format_node *node = &f->nodes[i];
        if (node->depth)
            continue;
        if (!name && found >= 0)
            return -1;
        if (name ? node->name_bytes && strlen(name) == node->name_bytes &&
                       memcmp(name, f->text + node->name_at, node->name_bytes) == 0
                 : node->name_bytes == 0)
            found = (int)i;
        if (name ? found >= 0 : found < 0)
            break;
    }
    return found;
}

const char *format_name(const struct format *f)
{
    f = format_aligned(f);
    bool by_name = f->dtype && !(f->dtype & SHMVIEW_SWAPPED) && f->text == plain[f->dtype].text;
    return by_name ? dtype_of(f->dtype)->name : f->text;
}
