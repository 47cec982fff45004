/* SPDX-License-Identifier: Apache-2.0 */
/* Datatypes of views and of layouts, each made once. */
#ifndef MPI_TYPE_H
#define MPI_TYPE_H

#include <mpi.h>
#include <shmview/element.h>

#include "layout.h"

struct type_cache {
    struct type_entry *entries;
    unsigned n_layouts;
};

/* Frees all types and zeroes the cache. */
void type_cache_deinit(struct type_cache *cache);

/* Finds or makes the committed type of a view's elements, from the view's data on. */
int type_of_view(struct type_cache *cache, const struct shmview_view *view, MPI_Datatype *ret_type);

/* Like type_of_view(), for the bytes of a layout that layout_fits_datatype(). The type is valid
 * until the next call, because a cache of many is emptied. */
int type_of_layout(struct type_cache *cache, const struct layout *layout, MPI_Datatype *ret_type);

#endif
