/* SPDX-License-Identifier: Apache-2.0 */
#include "format_rules.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <shmview/error.h>
#include <shmview/view.h>

bool trial_differs(struct format_trial *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t->wrong, sizeof t->wrong, format, arguments);
    va_end(arguments);
    return false;
}

/* --- The parser's result ------------------------------------------------- */

void meaning_of(const struct format *f, struct meaning *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->itemsize = f->itemsize;
    ret->align = format_aligned(f)->align;
    ret->least_align = f->align;
    ret->dtype = f->dtype;
    ret->n_parts = f->n_nodes;
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        const struct format_node *node = &f->nodes[i];
        struct meaning_part *part = &ret->parts[i];
        part->offset = node->offset;
        part->bytes = node->bytes;
        part->repeat = node->repeat;
        part->dtype = node->dtype;
        part->depth = node->depth;
        part->ndim = node->ndim;
        for (uint32_t d = 0; d < node->ndim; d++)
            part->shape[d] = node->shape[d];
        if (node->name_bytes)
            snprintf(part->name, sizeof part->name, "%.*s", node->name_bytes,
                     f->text + node->name_at);
    }
}

static bool same_part(struct format_trial *t, uint32_t i, const struct meaning_part *got,
                      const struct meaning_part *wanted)
{
    if (memcmp(got, wanted, offsetof(struct meaning_part, align)) == 0)
        return true;
    return trial_differs(t,
                         "part %u: offset %" PRIu64 ", %" PRIu64 " bytes, %" PRIu64
                         " times, dtype %u, depth %u, %u dimensions, name "
                         "'%s'; not %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %u, %u, %u, '%s'",
                         i, got->offset, got->bytes, got->repeat, got->dtype, got->depth, got->ndim,
                         got->name, wanted->offset, wanted->bytes, wanted->repeat, wanted->dtype,
                         wanted->depth, wanted->ndim, wanted->name);
}

bool same_meaning(struct format_trial *t, const struct meaning *got, const struct meaning *wanted)
{
    if (got->itemsize != wanted->itemsize || got->align != wanted->align ||
        got->least_align != wanted->least_align || got->dtype != wanted->dtype ||
        got->n_parts != wanted->n_parts)
        return trial_differs(t,
                             "%" PRIu64 " bytes, aligned to %u or %u, dtype %u, %u parts; "
                             "not %" PRIu64 ", %u, %u, %u, %u",
                             got->itemsize, got->align, got->least_align, got->dtype, got->n_parts,
                             wanted->itemsize, wanted->align, wanted->least_align, wanted->dtype,
                             wanted->n_parts);
    for (uint32_t i = 0; i < got->n_parts; i++)
        if (!same_part(t, i, &got->parts[i], &wanted->parts[i]))
            return false;
    return true;
}

/* --- What holds of every format ------------------------------------------ */

static bool check_sane(struct format_trial *t, const struct format *f)
{
    if (f->itemsize == 0 || f->align == 0 || (f->align & (f->align - 1)))
        return trial_differs(t, "%u bytes, aligned to %u", f->itemsize, f->align);
    if (strlen(f->text) >= SHMVIEW_FORMAT_BYTES || f->n_nodes > LIMIT_FORMAT_NODES)
        return trial_differs(t, "%u nodes, canonical text of %zu bytes", f->n_nodes,
                             strlen(f->text));
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        const struct format_node *node = &f->nodes[i];
        uint64_t repeat = 1;
        for (uint32_t d = 0; d < node->ndim && node->ndim <= SHMVIEW_MAX_NDIM; d++)
            repeat *= node->shape[d];
        if (node->ndim > SHMVIEW_MAX_NDIM || repeat != node->repeat || node->bytes == 0)
            return trial_differs(t, "node %u: %u bytes, %u times", i, node->bytes, node->repeat);
        if (node->offset + repeat * node->bytes > f->itemsize)
            return trial_differs(t, "node %u ends outside the element", i);
        if (node->depth > (i ? f->nodes[i - 1].depth + 1 : 0) || node->depth > LIMIT_FORMAT_DEPTH)
            return trial_differs(t, "node %u lies %u deep", i, node->depth);
        if (node->name_bytes && node->name_at + node->name_bytes > strlen(f->text))
            return trial_differs(t, "node %u is called what lies outside the text", i);
    }
    return true;
}

/* A text that was accepted has as many opening as closing braces, and all its names are closed. */
static bool check_braces(struct format_trial *t)
{
    int open = 0;
    bool in_name = false;
    for (const char *p = t->text; *p && open >= 0; p++) {
        in_name = in_name != (*p == ':');
        if (!in_name)
            open += (*p == '{') - (*p == '}');
    }
    return (open == 0 && !in_name) || trial_differs(t, "accepted with braces or names left open");
}

/* The canonical text has the same meaning, and its canonical text is itself. That of a struct has
 * marks without alignment, so it gives the free form. */
static bool check_canonical(struct format_trial *t, struct formats *pool, const struct format *f)
{
    struct format_fault fault = {0};
    const struct format *again = formats_get(pool, f->text, &fault);
    if (!again)
        return trial_differs(t, "canonical %s is refused: %s", f->text, fault.why);
    if (strcmp(again->text, f->text) != 0)
        return trial_differs(t, "canonical %s becomes %s", f->text, again->text);
    meaning_of(f, &t->wanted);
    meaning_of(again, &t->got);
    if (again->aligned == f)
        t->wanted.least_align = 1;
    if (same_meaning(t, &t->got, &t->wanted))
        return true;
    size_t n = strlen(t->wrong);
    snprintf(t->wrong + n, sizeof t->wrong - n, " (of canonical %s)", f->text);
    return false;
}

/* A component parsed by itself has the meaning that it has within the element. */
static bool check_component(struct format_trial *t, struct formats *pool, const struct format *f,
                            uint32_t at)
{
    const struct format_node *node = &f->nodes[at];
    const struct format *part = formats_get_node(pool, f, at);
    if (!part || part->itemsize != node->bytes)
        return trial_differs(t, "node %u by itself is %s of %u bytes", at, part ? part->text : "",
                             part ? part->itemsize : 0);
    if (!check_sane(t, part) || !check_canonical(t, pool, part))
        return false;
    struct meaning whole;
    meaning_of(f, &whole);
    meaning_of(part, &t->got);
    memset(&t->wanted, 0, sizeof t->wanted);
    t->wanted.itemsize = node->bytes;
    t->wanted.align = format_aligned(part)->align;
    t->wanted.least_align = node->dtype == SHMVIEW_BFLOAT16 ? 2 : 1; /* which has no mark */
    for (uint32_t i = at; i < f->n_nodes && (i == at || f->nodes[i].depth > node->depth); i++) {
        struct meaning_part *inner = &t->wanted.parts[t->wanted.n_parts++];
        *inner = whole.parts[i];
        inner->offset -= node->offset;
        inner->depth -= node->depth;
    }
    struct meaning_part *first = &t->wanted.parts[0];
    first->ndim = 0;
    first->repeat = 1;
    memset(first->shape, 0, sizeof first->shape);
    memset(first->name, 0, sizeof first->name);
    meaning_unwrap(&t->wanted);
    return same_meaning(t, &t->got, &t->wanted);
}

static bool check_found(struct format_trial *t, const struct format *f)
{
    uint32_t n_direct = 0;
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        char name[SHMVIEW_FORMAT_BYTES] = "";
        const struct format_node *node = &f->nodes[i];
        n_direct += node->depth == 0;
        if (node->name_bytes)
            snprintf(name, sizeof name, "%.*s", node->name_bytes, f->text + node->name_at);
        int at = name[0] ? format_find(f, name) : (int)i;
        if (node->depth == 0 && at != (int)i)
            return trial_differs(t, "'%s' is found at %d, not %u", name, at, i);
    }
    bool is_alone = n_direct == 1 && f->nodes[0].name_bytes == 0;
    if (format_find(f, NULL) != (is_alone ? 0 : -1))
        return trial_differs(t, "the only component is found at %d", format_find(f, NULL));
    /* a colon ends each name, so no format has this one */
    return (format_find(f, "no:name") == -1 && format_find(f, "") == -1) ||
           trial_differs(t, "what is not there is found");
}

static bool check_all(struct format_trial *t, struct formats *pool, const struct format *f)
{
    struct format_fault fault = {0};
    if (formats_get(pool, t->text, &fault) != f)
        return trial_differs(t, "another format when asked again");
    if (!check_braces(t) || !check_sane(t, f) || !check_canonical(t, pool, f) || !check_found(t, f))
        return false;
    for (uint32_t i = 0; i < f->n_nodes; i++)
        if (!check_component(t, pool, f, i))
            return false;
    return true;
}

/* --- The public call ----------------------------------------------------- */

static bool same_component(const struct shmview_component *c, const struct format *f, uint32_t i)
{
    const struct format_node *node = &f->nodes[i];
    bool same_shape = c->ndim == node->ndim;
    for (uint32_t d = 0; d < node->ndim && same_shape; d++)
        same_shape = c->shape[d] == node->shape[d];
    return same_shape && c->offset == node->offset && c->itemsize == node->bytes &&
           c->repeat == node->repeat && c->dtype == node->dtype && c->depth == node->depth &&
           strlen(c->name) == node->name_bytes &&
           (!node->name_bytes || memcmp(c->name, f->text + node->name_at, node->name_bytes) == 0);
}

/* Compares the public call with f, the result of the internal parser; NULL: refused at byte
 * `at`. */
static bool check_public(struct format_trial *t, const struct format *f, size_t at)
{
    static struct shmview_component components[LIMIT_FORMAT_NODES + 1];
    struct shmview_format format;
    memset(&format, 0x5a, sizeof format);
    memset(components, 0x5a, sizeof components);
    uint32_t room = f && f->n_nodes > 2 ? f->n_nodes - 1 : LIMIT_FORMAT_NODES;
    int r = shmview_format_parse(t->text, &format, components, room);
    if (r != (f ? 0 : -SHMVIEW_ERR_FORMAT))
        return trial_differs(t, "the public call returns %d", r);
    if (!f)
        return (format.error_at == at && format.itemsize == 0x5a5a5a5a) ||
               trial_differs(t, "the public call names character %u", format.error_at);
    if (format.itemsize != f->itemsize || format.align != format_aligned(f)->align ||
        format.least_align != f->align || format.dtype != f->dtype ||
        format.n_components != f->n_nodes || strcmp(format.text, format_aligned(f)->text) != 0)
        return trial_differs(t, "the public call says %s of %u bytes", format.text,
                             format.itemsize);
    for (uint32_t i = 0; i < f->n_nodes && i < room; i++)
        if (!same_component(&components[i], f, i))
            return trial_differs(t, "the public call tells component %u otherwise", i);
    if (components[room].offset != 0x5a5a5a5a)
        return trial_differs(t, "the public call tells more components than there is room for");
    return true;
}

bool trial_parse(struct format_trial *t, struct formats *pool, const struct format **ret)
{
    struct format_fault fault = {.at = SIZE_MAX};
    *ret = formats_get(pool, t->text, &fault);
    if (*ret)
        return check_all(t, pool, *ret) && check_public(t, *ret, 0);
    size_t n = strnlen(fault.why, sizeof fault.why);
    if (n == 0 || n == sizeof fault.why)
        return trial_differs(t, "refused without a reason");
    if (fault.at > strlen(t->text))
        return trial_differs(t, "character %zu is at fault", fault.at);
    return check_public(t, NULL, fault.at);
}
