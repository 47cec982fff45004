/* SPDX-License-Identifier: Apache-2.0 */
#include "type.h"

#include <limits.h>
#include <shmview/error.h>
#include <shmview/view.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define MAX_COMPONENTS 64
#define MAX_LAYOUTS    256

/* A type is that of a layout over elements of a format. */
struct type_entry {
    struct type_entry *next;
    MPI_Datatype type;
    struct layout layout; /* data is NULL */
    char format[];        /* "" for bytes */
};

void type_cache_deinit(struct type_cache *cache)
{
    while (cache->entries) {
        struct type_entry *entry = cache->entries;
        cache->entries = entry->next;
        MPI_Type_free(&entry->type);
        free(entry);
    }
    cache->n_layouts = 0;
}

static bool layouts_equal(const struct layout *a, const struct layout *b)
{
    bool equal = a->n_bytes == b->n_bytes && a->run == b->run && a->n_loops == b->n_loops;
    for (uint32_t d = 0; equal && d < a->n_loops; d++)
        equal = a->loops[d].n == b->loops[d].n && a->loops[d].stride == b->loops[d].stride;
    return equal;
}

/* The type of MPI that has the bytes of a dtype, or MPI_BYTE. */
static MPI_Datatype basic_type(uint32_t dtype)
{
    switch (dtype) {
    case SHMVIEW_INT8:
        return MPI_INT8_T;
    case SHMVIEW_UINT8:
        return MPI_UINT8_T;
    case SHMVIEW_INT16:
        return MPI_INT16_T;
    case SHMVIEW_UINT16:
        return MPI_UINT16_T;
    case SHMVIEW_INT32:
        return MPI_INT32_T;
    case SHMVIEW_UINT32:
        return MPI_UINT32_T;
    case SHMVIEW_INT64:
        return MPI_INT64_T;
    case SHMVIEW_UINT64:
        return MPI_UINT64_T;
    case SHMVIEW_FLOAT32:
        return MPI_FLOAT;
    case SHMVIEW_FLOAT64:
        return MPI_DOUBLE;
    case SHMVIEW_COMPLEX64:
        return MPI_C_FLOAT_COMPLEX;
    case SHMVIEW_COMPLEX128:
        return MPI_C_DOUBLE_COMPLEX;
    case SHMVIEW_LONGDOUBLE:
        return MPI_LONG_DOUBLE;
    case SHMVIEW_BOOL:
        return MPI_C_BOOL;
    case SHMVIEW_CHAR:
        return MPI_CHAR;
    default:
        return MPI_BYTE;
    }
}

/* Makes the type of repeat numbers or strings of itemsize bytes. */
static int make_numbers(uint32_t dtype, uint64_t itemsize, uint64_t repeat, MPI_Datatype *ret_type)
{
    MPI_Datatype basic = basic_type(dtype);
    uint64_t n = basic == MPI_BYTE ? itemsize * repeat : repeat;
    if (n > INT_MAX)
        return text_fail(-SHMVIEW_ERR_OVERFLOW, "an element has more than 2 GiB");
    return text_check(MPI_Type_contiguous((int)n, basic, ret_type), "a datatype");
}

/* Makes a type of n parts, whose types it frees, with an extent of itemsize bytes. */
static int make_parts(int n, MPI_Datatype *parts, const MPI_Aint *offsets, uint64_t itemsize,
                      MPI_Datatype *ret_type)
{
    int lengths[MAX_COMPONENTS];
    for (int i = 0; i < MAX_COMPONENTS; i++)
        lengths[i] = 1;
    MPI_Datatype whole = MPI_DATATYPE_NULL, sized = MPI_DATATYPE_NULL;
    int result =
        text_check(MPI_Type_create_struct(n, lengths, offsets, parts, &whole), "a datatype");
    for (int i = 0; i < n; i++)
        MPI_Type_free(&parts[i]);
    if (result < 0)
        return result;
    result =
        text_check(MPI_Type_create_resized(whole, 0, (MPI_Aint)itemsize, &sized), "a datatype");
    MPI_Type_free(&whole);
    if (result == 0)
        *ret_type = sized;
    return result;
}

/* Makes the type of the n components at and below depth, without those that are deeper; base is the
 * offset of the struct they are in. */
static int make_struct(const struct shmview_component *components, uint32_t n, uint32_t depth,
                       uint32_t base, uint64_t itemsize, MPI_Datatype *ret_type)
{
    MPI_Datatype parts[MAX_COMPONENTS] = {0};
    MPI_Aint offsets[MAX_COMPONENTS] = {0};
    int n_parts = 0, result = 0;
    for (uint32_t i = 0, next; i < n && result == 0; i = next) {
        const struct shmview_component *c = &components[i];
        for (next = i + 1; next < n && components[next].depth > depth; next++)
            ;
        MPI_Datatype part = MPI_DATATYPE_NULL;
        if (c->dtype == SHMVIEW_STRUCT) {
            MPI_Datatype one = MPI_DATATYPE_NULL;
            result = make_struct(c + 1, next - i - 1, depth + 1, c->offset, c->itemsize, &one);
            if (result == 0) {
                result = text_check(MPI_Type_contiguous((int)c->repeat, one, &part), "a datatype");
                MPI_Type_free(&one);
            }
        } else {
            result = make_numbers(c->dtype, c->itemsize, c->repeat, &part);
        }
        if (result == 0) {
            offsets[n_parts] = (MPI_Aint)(c->offset - base);
            parts[n_parts++] = part;
        }
    }
    if (result == 0)
        return make_parts(n_parts, parts, offsets, itemsize, ret_type);
    for (int i = 0; i < n_parts; i++)
        MPI_Type_free(&parts[i]);
    return result;
}

/* Makes the type of one element. */
static int make_element(const struct shmview_view *view, MPI_Datatype *ret_type)
{
    if (view->dtype != SHMVIEW_STRUCT)
        return make_numbers(view->dtype, view->itemsize, 1, ret_type);
    struct shmview_format *format = calloc(1, sizeof *format);
    struct shmview_component *components = calloc(MAX_COMPONENTS, sizeof *components);
    int result;
    if (!format || !components)
        result = text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a datatype");
    else if (shmview_format_parse(view->format, format, components, MAX_COMPONENTS) < 0)
        result = text_core(-SHMVIEW_ERR_FORMAT, "a datatype");
    else
        result = make_struct(components, format->n_components, 0, 0, view->itemsize, ret_type);
    free(components);
    free(format);
    return result;
}

/* Makes the type of one loop over blocks of n_block. Open MPI 4.1 takes blocks that follow each
 * other downwards for ones that follow upwards, unless their places are listed. */
static int make_loop(const struct layout_loop *loop, int n_block, MPI_Datatype type,
                     MPI_Datatype *ret_type)
{
    if (loop->stride >= 0)
        return text_check(
            MPI_Type_create_hvector((int)loop->n, n_block, (MPI_Aint)loop->stride, type, ret_type),
            "a datatype");
    MPI_Aint *places = calloc((size_t)loop->n, sizeof *places);
    if (!places)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a datatype");
    for (int64_t i = 0; i < loop->n; i++)
        places[i] = (MPI_Aint)(i * loop->stride);
    int result =
        text_check(MPI_Type_create_hindexed_block((int)loop->n, n_block, places, type, ret_type),
                   "a datatype");
    free(places);
    return result;
}

/* Makes the type of the loops of a layout over elements. Frees the element's type. */
static int make_loops(const struct layout *layout, uint64_t itemsize, MPI_Datatype element,
                      MPI_Datatype *ret_type)
{
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int n = (int)(layout->n_bytes ? layout->run / itemsize : 0), result;
    /* The innermost loop takes its runs as blocks. */
    if (layout->n_loops == 0)
        result = text_check(MPI_Type_contiguous(n, element, &type), "a datatype");
    else
        result = make_loop(&layout->loops[layout->n_loops - 1], n, element, &type);
    if (element != MPI_BYTE)
        MPI_Type_free(&element);
    for (uint32_t d = layout->n_loops; result == 0 && d-- > 1;) {
        MPI_Datatype inner = type;
        result = make_loop(&layout->loops[d - 1], 1, inner, &type);
        MPI_Type_free(&inner);
    }
    if (result == 0)
        result = text_check(MPI_Type_commit(&type), "a datatype");
    if (result == 0)
        *ret_type = type;
    return result;
}

/* Finds the type, or adds an entry without one. Returns NULL without memory. */
static struct type_entry *find_entry(struct type_cache *cache, const struct layout *layout,
                                     const char *format)
{
    struct type_entry *entry = cache->entries;
    while (entry && !(layouts_equal(&entry->layout, layout) && strcmp(entry->format, format) == 0))
        entry = entry->next;
    if (entry)
        return entry;
    size_t length = strlen(format) + 1;
    entry = calloc(1, sizeof *entry + length);
    if (!entry)
        return NULL;
    entry->type = MPI_DATATYPE_NULL;
    entry->layout = *layout;
    memcpy(entry->format, format, length);
    entry->next = cache->entries;
    cache->entries = entry;
    return entry;
}

static void drop_first(struct type_cache *cache)
{
    struct type_entry *entry = cache->entries;
    cache->entries = entry->next;
    free(entry);
}

int type_of_view(struct type_cache *cache, const struct shmview_view *view, MPI_Datatype *ret_type)
{
    if (view->flags & SHMVIEW_VIEW_INDIRECT)
        return text_fail(-SHMVIEW_ERR_CONTIGUOUS, "a view with suboffsets has no datatype");
    struct layout layout;
    layout_of_view(view, &layout);
    if (layout.run / (view->itemsize ? view->itemsize : 1) > INT_MAX)
        return text_fail(-SHMVIEW_ERR_OVERFLOW, "a row of %llu bytes is too long for a datatype",
                         (unsigned long long)layout.run);
    for (uint32_t d = 0; d < layout.n_loops; d++)
        if (layout.loops[d].n > INT_MAX)
            return text_fail(-SHMVIEW_ERR_OVERFLOW, "%lld elements are too many for a datatype",
                             (long long)layout.loops[d].n);
    layout.data = NULL;
    struct type_entry *entry = find_entry(cache, &layout, view->format);
    MPI_Datatype element = MPI_DATATYPE_NULL;
    int result = 0;
    if (!entry)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a datatype");
    if (entry->type == MPI_DATATYPE_NULL) {
        result = make_element(view, &element);
        if (result == 0)
            result = make_loops(&layout, view->itemsize, element, &entry->type);
    }
    if (result < 0)
        drop_first(cache);
    else
        *ret_type = entry->type;
    return result;
}

int type_of_layout(struct type_cache *cache, const struct layout *layout, MPI_Datatype *ret_type)
{
    struct layout plain = *layout;
    plain.data = NULL;
    int result = 0;
    /* Messages that are under way keep their types. */
    if (cache->n_layouts > MAX_LAYOUTS)
        type_cache_deinit(cache);
    struct type_entry *entry = find_entry(cache, &plain, "");
    if (!entry)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a datatype");
    if (entry->type == MPI_DATATYPE_NULL) {
        cache->n_layouts++;
        result = make_loops(&plain, 1, MPI_BYTE, &entry->type);
    }
    if (result < 0)
        drop_first(cache);
    else
        *ret_type = entry->type;
    return result;
}
