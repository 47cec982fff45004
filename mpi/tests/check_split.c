/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: 4. Every kind of distribution: elements are where MPI_Type_create_darray() has them, halos
 * are what the neighbours have, and copies to other splits, to one rank and to a file are whole. */
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/link.h"
#include "support_ranks.h"

#define BLOCK  SHMVIEW_MPI_BLOCK
#define CYCLIC SHMVIEW_MPI_CYCLIC
#define WHOLE  SHMVIEW_MPI_WHOLE

static const struct shmview_mpi_split_spec specs[] = {
    {.ndim = 1, .shape = (const int64_t[]){10}},
    {.ndim = 1,
     .shape = (const int64_t[]){11},
     .distribution = (const enum shmview_mpi_distribution[]){CYCLIC}},
    {.ndim = 1,
     .shape = (const int64_t[]){23},
     .distribution = (const enum shmview_mpi_distribution[]){CYCLIC},
     .block = (const int64_t[]){3}},
    {.ndim = 1, .shape = (const int64_t[]){0}},
    {.ndim = 2, .shape = (const int64_t[]){8, 6}},
    {.ndim = 2,
     .shape = (const int64_t[]){9, 7},
     .distribution = (const enum shmview_mpi_distribution[]){CYCLIC, BLOCK}},
    {.ndim = 2,
     .shape = (const int64_t[]){9, 7},
     .distribution = (const enum shmview_mpi_distribution[]){CYCLIC, CYCLIC},
     .block = (const int64_t[]){2, 3}},
    {.ndim = 2,
     .shape = (const int64_t[]){9, 7},
     .distribution = (const enum shmview_mpi_distribution[]){WHOLE, BLOCK}},
    {.ndim = 2, .shape = (const int64_t[]){9, 7}, .grid = (const int[]){4, 0}},
    {.ndim = 2, .shape = (const int64_t[]){9, 7}, .grid = (const int[]){1, 4}},
    {.ndim = 3,
     .shape = (const int64_t[]){5, 4, 6},
     .distribution = (const enum shmview_mpi_distribution[]){BLOCK, CYCLIC, WHOLE}},
    {.ndim = 2,
     .shape = (const int64_t[]){700, 300},
     .distribution = (const enum shmview_mpi_distribution[]){CYCLIC, BLOCK},
     .block = (const int64_t[]){7, 0}},
    {.ndim = 2, .shape = (const int64_t[]){700, 300}, .halo = (const int64_t[]){2, 1}},
};
#define N_SPECS (sizeof specs / sizeof *specs)

static struct shmview_mpi_link *link_;

static int64_t soon(void)
{
    return shmview_deadline(20000000000);
}

/* A split in memory of this rank alone, because a test needs no segment of the node here. */
struct mine {
    struct shmview_mpi_blocks *split;
    struct shmview_segment *segment;
    void *memory;
};

static void mine_init_with(struct mine *mine, struct shmview_mpi_split_spec spec, uint32_t flags)
{
    const MPI_Comm alone = MPI_COMM_SELF;
    uint64_t n_bytes = 0;
    spec.format = "i";
    spec.node = &alone;
    OK(shmview_mpi_split_bytes(link_, &spec, soon(), &n_bytes));
    mine->memory = calloc(1, n_bytes + 64);
    CHECK(mine->memory);
    OK(shmview_wrap(mine->memory, n_bytes, flags, NULL, NULL, &mine->segment));
    OK(shmview_mpi_split(link_, &spec, mine->segment, 0, soon(), &mine->split));
}

static void mine_init(struct mine *mine, struct shmview_mpi_split_spec spec)
{
    mine_init_with(mine, spec, 0);
}

static void mine_deinit(struct mine *mine)
{
    OK(shmview_mpi_split_free(mine->split));
    OK(shmview_detach(mine->segment));
    free(mine->memory);
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

/* The value of a global element: its place in C order, from 1 on. */
static int value_at(const struct shmview_mpi_split_spec *spec, const int64_t *global)
{
    int64_t value = 0;
    for (uint32_t d = 0; d < spec->ndim; d++)
        value = value * spec->shape[d] + global[d];
    return (int)value + 1;
}

/* Writes or checks the elements of a block. */
static void each(const struct mine *mine, const struct shmview_mpi_split_spec *spec, int checks)
{
    struct shmview_view view;
    OK(shmview_mpi_split_view(mine->split, &view));
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    if (view.nbytes == 0)
        return;
    do {
        int64_t local[SHMVIEW_MAX_NDIM] = {0}, global[SHMVIEW_MAX_NDIM] = {0};
        for (uint32_t d = 0; d < view.ndim; d++)
            local[d] = index[d];
        OK(shmview_mpi_split_global(mine->split, local, global));
        int *element = shmview_at(&view, index);
        if (checks)
            CHECK(*element == value_at(spec, global));
        else
            *element = value_at(spec, global);
    } while (advance(&view, index));
}

/* Compares with the elements that MPI's own type of the distribution selects. */
static void compare_with_darray(const struct mine *mine, const struct shmview_mpi_split_spec *spec)
{
    int grid[SHMVIEW_MAX_NDIM] = {0}, sizes[SHMVIEW_MAX_NDIM] = {0}, kinds[SHMVIEW_MAX_NDIM] = {0};
    int arguments[SHMVIEW_MAX_NDIM] = {0}, n = 1, n_bytes = 0;
    OK(shmview_mpi_split_grid(mine->split, grid, NULL));
    for (uint32_t d = 0; d < spec->ndim; d++) {
        enum shmview_mpi_distribution kind =
            spec->distribution ? spec->distribution[d] : SHMVIEW_MPI_BLOCK;
        sizes[d] = (int)spec->shape[d];
        n *= sizes[d];
        kinds[d] = kind == SHMVIEW_MPI_BLOCK    ? MPI_DISTRIBUTE_BLOCK
                   : kind == SHMVIEW_MPI_CYCLIC ? MPI_DISTRIBUTE_CYCLIC
                                                : MPI_DISTRIBUTE_NONE;
        arguments[d] =
            spec->block && spec->block[d] ? (int)spec->block[d] : MPI_DISTRIBUTE_DFLT_DARG;
    }
    if (n == 0)
        return;
    MPI_Datatype type;
    MPI_Type_create_darray(ranks_n(), ranks_me(), (int)spec->ndim, sizes, kinds, arguments, grid,
                           MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_size(type, &n_bytes);
    struct shmview_view view;
    OK(shmview_mpi_split_view(mine->split, &view));
    CHECK((uint64_t)n_bytes == view.nbytes);
    int *all = malloc((size_t)n * sizeof *all), *own = malloc((size_t)n_bytes + 1), position = 0;
    CHECK(all && own);
    for (int i = 0; i < n; i++)
        all[i] = i + 1;
    MPI_Pack(all, 1, type, own, n_bytes, &position, MPI_COMM_SELF);
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    int i = 0;
    if (view.nbytes)
        do
            CHECK(own[i++] == *(int *)shmview_at(&view, index));
        while (advance(&view, index));
    MPI_Type_free(&type);
    free(own);
    free(all);
}

static void try_gather(const struct mine *mine, const struct shmview_mpi_split_spec *spec, int root)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < spec->ndim; d++)
        n *= spec->shape[d];
    int *all = calloc((size_t)n + 1, sizeof *all);
    struct shmview_segment *segment;
    struct shmview_view view;
    CHECK(all);
    OK(shmview_wrap(all, (uint64_t)n * sizeof *all, 0, NULL, NULL, &segment));
    const struct shmview_view_spec made = {.format = "i", .ndim = spec->ndim, .shape = spec->shape};
    OK(shmview_view_make(segment, &made, &view));
    OK(shmview_mpi_split_gather(mine->split, root, ranks_me() == root ? &view : NULL, soon()));
    for (int64_t i = 0; i < n; i++)
        CHECK(all[i] == (ranks_me() == root ? i + 1 : 0));
    OK(shmview_detach(segment));
    free(all);
}

static void try_save(const struct mine *mine, const struct shmview_mpi_split_spec *spec, int root)
{
    char path[4096];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/split.npy", folder ? folder : "/tmp");
    OK(shmview_mpi_split_save(mine->split, root, ranks_me() == root ? path : NULL, soon()));
    if (ranks_me() != root)
        return;
    int64_t n = 1;
    for (uint32_t d = 0; d < spec->ndim; d++)
        n *= spec->shape[d];
    FILE *file = fopen(path, "rb");
    char prefix[10], dict[512] = "";
    CHECK(file && fread(prefix, 1, 10, file) == 10 && memcmp(prefix, "\x93NUMPY\x01", 8) == 0);
    size_t length = (unsigned char)prefix[8] + 256u * (unsigned char)prefix[9];
    CHECK((length + 10) % 64 == 0 && length < sizeof dict);
    CHECK(fread(dict, 1, length, file) == length && dict[length - 1] == '\n');
    CHECK(strstr(dict, "'descr': '<i4'"));
    int value = 0;
    for (int64_t i = 0; i < n; i++)
        CHECK(fread(&value, sizeof value, 1, file) == 1 && value == i + 1);
    CHECK(fread(&value, 1, 1, file) == 0);
    fclose(file);
    unlink(path);
}

static void try_copies(const struct mine *from, size_t at)
{
    for (size_t to = 0; to < N_SPECS; to++) {
        const struct shmview_mpi_split_spec *spec = &specs[to];
        if (spec->ndim != specs[at].ndim ||
            memcmp(spec->shape, specs[at].shape, spec->ndim * sizeof *spec->shape) != 0)
            continue;
        struct mine other;
        mine_init(&other, *spec);
        OK(shmview_mpi_split_copy(other.split, from->split, soon()));
        each(&other, spec, 1);
        mine_deinit(&other);
    }
}

/* The block of rank 1 is read-only: all ranks refuse to copy to it, and the link still works. */
static void try_read_only(const struct mine *other)
{
    struct mine made;
    mine_init_with(&made, specs[4], ranks_me() == 1 ? SHMVIEW_WRAP_READ_ONLY : 0);
    REFUSED(shmview_mpi_split_copy(made.split, other->split, soon()), READ_ONLY);
    CHECK(strcmp(shmview_mpi_error_text(), "rank 1: the block to copy to is read-only") == 0);
    OK(shmview_mpi_split_copy(other->split, made.split, soon()));
    mine_deinit(&made);
}

/* The root has passed NULL. */
static void try_nothing(const struct mine *made)
{
    REFUSED(shmview_mpi_split_gather(made->split, 3, NULL, soon()), INVALID);
    CHECK(strcmp(shmview_mpi_error_text(), "rank 3: there is no view to gather into") == 0);
    REFUSED(shmview_mpi_split_save(made->split, 2, NULL, soon()), INVALID);
    CHECK(strcmp(shmview_mpi_error_text(), "rank 2: there is no path of the file") == 0);
}

/* Rank 0 looks for the ranks of its node, and the others know them. */
static void try_node(void)
{
    const MPI_Comm alone = MPI_COMM_SELF;
    uint64_t n_bytes = 0;
    struct shmview_mpi_split_spec spec = specs[0];
    spec.format = "i";
    spec.node = ranks_me() == 0 ? NULL : &alone;
    REFUSED(shmview_mpi_split_bytes(link_, &spec, soon(), &n_bytes), CONVERSION);
}

/* More processes than an int can count, on so many ranks as only the plan needs. */
static void try_large_grid(void)
{
    const int n = link_->n;
    uint64_t n_bytes = 0;
    struct shmview_mpi_split_spec spec = specs[4];
    spec.format = "i";
    spec.grid = (const int[]){65536, 65536};
    link_->n = 65536;
    REFUSED(shmview_mpi_split_bytes(link_, &spec, soon(), &n_bytes), INVALID);
    link_->n = n;
    CHECK(strstr(shmview_mpi_error_text(), "65536 ranks do not fill a grid of 4294967296 "));
}

static void try_errors(void)
{
    uint64_t n_bytes = 0;
    struct mine made;
    struct shmview_mpi_split_spec spec = specs[0];
    spec.format = "i";
    spec.shape = ranks_me() == 2 ? (const int64_t[]){11} : specs[0].shape;
    REFUSED(shmview_mpi_split_bytes(link_, &spec, soon(), &n_bytes), CONVERSION);
    spec.shape = specs[0].shape;
    spec.halo = (const int64_t[]){2};
    REFUSED(shmview_mpi_split_bytes(link_, &spec, soon(), &n_bytes), INVALID);
    spec.halo = NULL;
    spec.grid = (const int[]){3};
    REFUSED(shmview_mpi_split_bytes(link_, &spec, soon(), &n_bytes), INVALID);
    spec.grid = NULL;
    spec.format = ranks_me() == 1 ? "nothing" : "i";
    REFUSED(shmview_mpi_split_bytes(link_, &spec, soon(), &n_bytes), FORMAT);
    CHECK(strncmp(shmview_mpi_error_text(), "rank 1: ", 8) == 0);
    CHECK(n_bytes == 0);
    try_large_grid();
    try_node();
    mine_init(&made, specs[4]);
    REFUSED(shmview_mpi_split_save(made.split, 3, "/nowhere/split.npy", soon()), SYSTEM);
    CHECK(strncmp(shmview_mpi_error_text(), "rank 3: ", 8) == 0);
    CHECK(strstr(shmview_mpi_error_text(), "/nowhere/split.npy"));
    struct shmview_view block;
    OK(shmview_mpi_split_view(made.split, &block));
    REFUSED(shmview_mpi_split_gather(made.split, 3, &block, soon()), CONVERSION);
    REFUSED(shmview_mpi_split_gather(made.split, 4, &block, soon()), INVALID);
    REFUSED(shmview_mpi_split_global(made.split, (const int64_t[]){0, 3}, (int64_t[2]){0}), BOUNDS);
    try_nothing(&made);
    try_read_only(&made);
    mine_deinit(&made);
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    OK(shmview_mpi_link_open(MPI_COMM_WORLD, &link_));
    for (size_t i = 0; i < N_SPECS; i++) {
        struct mine mine;
        mine_init(&mine, specs[i]);
        each(&mine, &specs[i], 0);
        compare_with_darray(&mine, &specs[i]);
        try_gather(&mine, &specs[i], (int)(i % 4));
        try_save(&mine, &specs[i], (int)((i + 1) % 4));
        try_copies(&mine, i);
        mine_deinit(&mine);
    }
    try_errors();
    OK(shmview_mpi_link_close(link_));
    return ranks_end();
}
