/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: 4. Halos of every width, grid and period: each element of a block and its halo is that of
 * the global array, with corners, and what lies beyond its ends is untouched. */
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdlib.h>
#include <string.h>

#include "support_ranks.h"

static const struct shmview_mpi_split_spec specs[] = {
    {.ndim = 1, .shape = (const int64_t[]){10}, .halo = (const int64_t[]){0}},
    {.ndim = 1, .shape = (const int64_t[]){10}, .block = (const int64_t[]){0}},
    {.ndim = 1, .shape = (const int64_t[]){12}, .halo = (const int64_t[]){1}},
    {.ndim = 1, .shape = (const int64_t[]){12}, .halo = (const int64_t[]){3}},
    {.ndim = 1, .shape = (const int64_t[]){11}, .halo = (const int64_t[]){2}},
    {.ndim = 2, .shape = (const int64_t[]){6, 8}, .halo = (const int64_t[]){1, 1}},
    {.ndim = 2, .shape = (const int64_t[]){7, 9}, .halo = (const int64_t[]){2, 3}},
    {.ndim = 2, .shape = (const int64_t[]){7, 9}, .halo = (const int64_t[]){0, 1}},
    {.ndim = 2,
     .shape = (const int64_t[]){7, 8},
     .halo = (const int64_t[]){3, 2},
     .grid = (const int[]){1, 4}},
    {.ndim = 2,
     .shape = (const int64_t[]){8, 5},
     .halo = (const int64_t[]){1, 2},
     .grid = (const int[]){4, 1}},
    {.ndim = 3, .shape = (const int64_t[]){4, 5, 6}, .halo = (const int64_t[]){1, 2, 1}},
    {.ndim = 4, .shape = (const int64_t[]){4, 3, 4, 3}, .halo = (const int64_t[]){1, 1, 2, 1}},
    /* The edges of the first dimension are longer than a piece, those of the second have gaps. */
    {.ndim = 2,
     .shape = (const int64_t[]){12, 80000},
     .halo = (const int64_t[]){2, 1},
     .grid = (const int[]){2, 2}},
    {.ndim = 2,
     .shape = (const int64_t[]){20000, 12},
     .halo = (const int64_t[]){1, 3},
     .grid = (const int[]){2, 2}},
};
#define N_SPECS (sizeof specs / sizeof *specs)

static struct shmview_mpi_link *link_;

static int64_t soon(void)
{
    return shmview_deadline(20000000000);
}

/* The value of a global element, from 1 on; 0 outside of the array. */
static int value_at(const struct shmview_mpi_split_spec *spec, const int64_t *global)
{
    int64_t value = 0;
    for (uint32_t d = 0; d < spec->ndim; d++) {
        int64_t n = spec->shape[d], i = global[d];
        if ((i < 0 || i >= n) && !(spec->periodic >> d & 1))
            return 0;
        value = value * n + (i % n + n) % n;
    }
    return (int)value + 1;
}

static int advance(const struct shmview_view *view, ptrdiff_t *index)
{
    for (uint32_t d = view->ndim; d-- > 0;) {
        if (++index[d] < view->shape[d])
            return 1;
        index[d] = 0;
    }
    return 0;
}

/* Writes the elements of a view whose first element is at a global index, or checks them. */
static void each(const struct shmview_view *view, const struct shmview_mpi_split_spec *spec,
                 const int64_t *first, int checks)
{
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    do {
        int64_t global[SHMVIEW_MAX_NDIM] = {0};
        for (uint32_t d = 0; d < view->ndim; d++)
            global[d] = first[d] + index[d];
        int *element = shmview_at(view, index);
        if (checks)
            CHECK(*element == value_at(spec, global));
        else
            *element = value_at(spec, global);
    } while (advance(view, index));
}

static void try_halo(struct shmview_mpi_split_spec spec)
{
    const MPI_Comm alone = MPI_COMM_SELF;
    const int64_t zeros[SHMVIEW_MAX_NDIM] = {0};
    uint64_t n_bytes = 0;
    struct shmview_segment *segment;
    struct shmview_mpi_blocks *split;
    struct shmview_view inner, whole;
    spec.format = "i";
    spec.node = &alone;
    OK(shmview_mpi_split_bytes(link_, &spec, soon(), &n_bytes));
    void *memory = calloc(1, n_bytes);
    CHECK(memory);
    OK(shmview_wrap(memory, n_bytes, 0, NULL, NULL, &segment));
    OK(shmview_mpi_split(link_, &spec, segment, 0, soon(), &split));
    OK(shmview_mpi_split_view(split, &inner));
    OK(shmview_mpi_split_whole(split, &whole));
    int64_t first[SHMVIEW_MAX_NDIM] = {0}, outer[SHMVIEW_MAX_NDIM] = {0};
    OK(shmview_mpi_split_global(split, zeros, first));
    for (uint32_t d = 0; d < spec.ndim; d++)
        outer[d] = first[d] - (spec.halo ? spec.halo[d] : 0);
    each(&inner, &spec, first, 0);
    for (int round = 0; round < 2; round++) {
        OK(shmview_mpi_halo(split, soon()));
        each(&whole, &spec, outer, 1);
    }
    OK(shmview_mpi_split_free(split));
    OK(shmview_detach(segment));
    free(memory);
}

/* Rank 2 has its block for reading: no rank exchanges halos, and none is left waiting. A split
 * without halos has nothing to exchange. */
static void try_read_only(void)
{
    const MPI_Comm alone = MPI_COMM_SELF;
    struct shmview_mpi_split_spec spec = specs[5];
    spec.format = "i";
    spec.node = &alone;
    for (int has_halo = 1; has_halo >= 0; has_halo--) {
        uint64_t n_bytes = 0;
        struct shmview_segment *segment;
        struct shmview_mpi_blocks *split;
        spec.halo = has_halo ? specs[5].halo : NULL;
        OK(shmview_mpi_split_bytes(link_, &spec, soon(), &n_bytes));
        void *memory = calloc(1, n_bytes);
        CHECK(memory);
        const uint32_t flags = ranks_me() == 2 ? SHMVIEW_WRAP_READ_ONLY : 0;
        OK(shmview_wrap(memory, n_bytes, flags, NULL, NULL, &segment));
        OK(shmview_mpi_split(link_, &spec, segment, 0, soon(), &split));
        if (has_halo) {
            REFUSED(shmview_mpi_halo(split, soon()), READ_ONLY);
            CHECK(strncmp(shmview_mpi_error_text(), "rank 2: ", 8) == 0);
        } else {
            OK(shmview_mpi_halo(split, soon()));
        }
        OK(shmview_mpi_split_free(split));
        OK(shmview_detach(segment));
        free(memory);
    }
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    OK(shmview_mpi_link_open(MPI_COMM_WORLD, &link_));
    for (int carry = 0; carry < 3; carry++) {
        OK(shmview_mpi_link_carry(link_, (enum shmview_mpi_carry)carry));
        for (size_t i = 0; i < N_SPECS; i++)
            for (uint32_t periodic = 0; periodic < 1u << specs[i].ndim; periodic++) {
                struct shmview_mpi_split_spec spec = specs[i];
                spec.periodic = periodic;
                try_halo(spec);
            }
    }
    try_read_only();
    OK(shmview_mpi_link_close(link_));
    return ranks_end();
}
