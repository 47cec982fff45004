/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of elements (shmview/value.h): steps through the fields of structs and the entries of
 * arrays, however deep.
 *
 * The components of a format are a flat list: a struct comes before its fields, which are one level
 * deeper. So the fields of a component are the components after it, up to the next one that is not
 * deeper. A part needs no memory and no recursion: it is a component, the number of indices that
 * are already applied, and an offset. */
#include <shmview/value.h>

#include <stdbool.h>
#include <stddef.h>

#include <shmview/view.h>

typedef const struct shmview_component component;

/* Returns the component after c and, if c is a struct, after its fields. */
static component *after(component *c, component *end)
{
    component *next = c + 1;
    while (next < end && next->depth > c->depth)
        next++;
    return next;
}

/* Counts the components from c to end, without the fields of structs among them. */
static uint32_t count_fields(component *c, component *end)
{
    uint32_t n = 0;
    for (; c < end; c = after(c, end))
        n++;
    return n;
}

/* Makes the part of component c that begins at offset. If c is an array, its first `dimension`
 * dimensions have an index already: the part is the array of the others, or one entry. end is the
 * end of the list that c is in. */
static inline void part_at(component *c, component *end, uint32_t dimension, uint32_t index,
                           uint32_t offset, struct shmview_part *ret)
{
    uint32_t nbytes = c->itemsize;
    for (uint32_t d = dimension; d < c->ndim; d++)
        nbytes *= c->shape[d];
    end = after(c, end);
    *ret = (struct shmview_part){
        .component = c,
        .offset = offset,
        .nbytes = nbytes,
        .dtype = c->dtype,
        .is_array = dimension < c->ndim,
        .n_parts = dimension < c->ndim ? c->shape[dimension] : count_fields(c + 1, end),
        .index = index,
        .dimension = dimension,
        .fields = c + 1,
        .end = end,
    };
}

void shmview_part_of(const struct shmview_format *format,
                     const struct shmview_component *components, struct shmview_part *ret)
{
    const bool is_struct = format->dtype == SHMVIEW_STRUCT;
    *ret = (struct shmview_part){
        .nbytes = format->itemsize,
        .dtype = format->dtype,
        .n_parts = is_struct ? count_fields(components, components + format->n_components) : 0,
        .fields = components,
        .end = components + format->n_components,
    };
}

int shmview_part_next(const struct shmview_part *whole, struct shmview_part *part)
{
    component *c = part->component;
    const uint32_t index = c ? part->index + 1 : 0;
    if (index >= whole->n_parts)
        return 0;
    if (whole->is_array) {
        uint32_t step = whole->nbytes / whole->n_parts;
        part_at(whole->component, whole->end, whole->dimension + 1, index,
                whole->offset + index * step, part);
        return 1;
    }
    /* the offset of a component within an array is that in the first entry; shift leads to this
     * entry */
    uint32_t shift = whole->component ? whole->offset - whole->component->offset : 0;
    c = c ? after(c, whole->end) : whole->fields;
    part_at(c, whole->end, 0, index, c->offset + shift, part);
    return 1;
}
