/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/mpi_split.h - arrays that are split over the ranks of a job, with halos.
 *
 * Each rank has a block of a global array, as a view of the segment that it shares with the other
 * ranks of its node. shmview_mpi_halo() brings the edges of the neighbours' blocks; copies to
 * another split, to one rank, and to a file move all elements.
 *
 *     const int64_t shape[] = {1000, 1000}, width[] = {1, 1};
 *     const struct shmview_mpi_split_spec spec = {
 *         .format = "float64", .ndim = 2, .shape = shape, .halo = width};
 *     uint64_t bytes;
 *     shmview_mpi_split_bytes(link, &spec, deadline, &bytes);
 *     ... one segment of that many bytes on each node ...
 *     shmview_mpi_split(link, &spec, segment, 0, deadline, &split);
 *     shmview_mpi_split_whole(split, &block);
 *     shmview_mpi_halo(split, deadline);
 *
 * mpi.h includes this header. The words are those of MPI_Type_create_darray(): block and cyclic
 * distributions over a grid of processes, in which ranks count with the last dimension fastest.
 *
 * Calls with a deadline are collective: every rank of the link calls them, in the same order, with
 * the same description. They wait until deadline_ns, a time of CLOCK_MONOTONIC. After
 * -SHMVIEW_ERR_TIMED_OUT or _PEER the link is lost, as shmview_mpi_send() describes. An error that
 * one rank finds before elements move is returned to all ranks; the text names the rank. None takes
 * a lock: no rank may write elements while another one's call reads them. */
#ifndef SHMVIEW_MPI_SPLIT_H
#define SHMVIEW_MPI_SPLIT_H

#include <shmview/mpi_type.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How one dimension is distributed over the processes of the grid in this dimension. */
enum shmview_mpi_distribution {
    SHMVIEW_MPI_BLOCK = 0,  /* one block for each */
    SHMVIEW_MPI_CYCLIC = 1, /* blocks by turns */
    SHMVIEW_MPI_WHOLE = 2,  /* not at all: the grid has one process in this dimension */
};

/* A global array and how it is split. The arrays have ndim members; where they are NULL or 0, there
 * is a default. */
struct shmview_mpi_split_spec {
    const char *format;   /* as in shmview_format_parse() */
    uint32_t ndim;        /* 1 to SHMVIEW_MAX_NDIM */
    uint32_t periodic;    /* bit d: in dimension d the first element follows the last one */
    const int64_t *shape; /* of the global array */
    const enum shmview_mpi_distribution *distribution; /* default: BLOCK */
    /* Elements of a block. Default: BLOCK the least that suffices, CYCLIC 1. */
    const int64_t *block;
    const int *grid; /* processes in each dimension. Default: MPI_Dims_create() chooses */
    /* Elements of the halo on each side, not for CYCLIC. It must not be wider than any block. */
    const int64_t *halo;
    /* The ranks that share a segment, on all ranks or on none. Default: as shmview_mpi_node_comm().
     */
    const MPI_Comm *node;
};

struct shmview_mpi_blocks;

/* Computes how many bytes the segment of this rank's node must have: the blocks of its ranks, halos
 * included, each from a multiple of 64 on.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_INVALID if a member of spec is wrong or the grid does
 * not have as many processes as the link has ranks, _FORMAT, _OVERFLOW, _CONVERSION if the
 * descriptions of two ranks differ, _TIMED_OUT, _PEER, _LOST or _NO_MEMORY. */
int shmview_mpi_split_bytes(struct shmview_mpi_link *link,
                            const struct shmview_mpi_split_spec *spec, int64_t deadline_ns,
                            uint64_t *ret_bytes);

/* Splits an array over the segments of all nodes. The blocks of a node begin at byte offset of its
 * segment, in the order of the ranks. Elements are not touched. The segment must stay attached and
 * the link open until shmview_mpi_split_free(). If it is attached for reading, the split can be
 * copied from, gathered and saved.
 *
 * Returns 0 on success, or an error of shmview_mpi_split_bytes() or shmview_view_make(), such as
 * -SHMVIEW_ERR_BOUNDS for a segment that is too small. */
int shmview_mpi_split(struct shmview_mpi_link *link, const struct shmview_mpi_split_spec *spec,
                      struct shmview_segment *segment, uint64_t offset, int64_t deadline_ns,
                      struct shmview_mpi_blocks **ret_split);

/* Frees a split. Not collective. NULL does nothing. Always returns 0. */
int shmview_mpi_split_free(struct shmview_mpi_blocks *split);

/* Copy the view of this rank's block, without or with its halo, to *ret_view. Valid until the
 * segment is detached. Do not block. Always return 0. */
int shmview_mpi_split_view(const struct shmview_mpi_blocks *split, struct shmview_view *ret_view);
int shmview_mpi_split_whole(const struct shmview_mpi_blocks *split, struct shmview_view *ret_view);

/* Computes the index in the global array of the element that has an index in this rank's block
 * (without halo). Both have ndim members. Does not block.
 *
 * Returns 0 on success, or -SHMVIEW_ERR_BOUNDS for an index outside the block. */
int shmview_mpi_split_global(const struct shmview_mpi_blocks *split, const int64_t *index,
                             int64_t *ret_index);

/* Copies the grid: the processes in each dimension, and where this rank is. ndim members each;
 * either may be NULL. Always returns 0. */
int shmview_mpi_split_grid(const struct shmview_mpi_blocks *split, int *ret_grid, int *ret_place);

/* Fills the halo of every block from the blocks beside it, corners included. At the end of a
 * dimension that is not periodic the halo stays as it is.
 *
 * Returns 0 on success, or -SHMVIEW_ERR_READ_ONLY if a rank's block is read-only, _TIMED_OUT,
 * _PEER, _LOST or _NO_MEMORY. */
int shmview_mpi_halo(struct shmview_mpi_blocks *split, int64_t deadline_ns);

/* Copies all elements of one split to another one of the same array, shape and type, in the same
 * link. Halos are not touched. The two must not share bytes.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_INVALID, on this rank alone, if the links differ;
 * _CONVERSION if shape or type do; _READ_ONLY if a rank's block of `to` is read-only; or an error
 * of shmview_mpi_halo(). */
int shmview_mpi_split_copy(const struct shmview_mpi_blocks *to,
                           const struct shmview_mpi_blocks *from, int64_t deadline_ns);

/* Copies all elements to a view of the whole array on rank root; view is not read on the others. As
 * shmview_mpi_split_copy(), and every rank fails if shape or type of the view are wrong, or with
 * -SHMVIEW_ERR_INVALID if there is no rank root or its view is NULL. */
int shmview_mpi_split_gather(const struct shmview_mpi_blocks *split, int root,
                             const struct shmview_view *view, int64_t deadline_ns);

/* Writes the global array to a file of numpy's format (.npy), in C order; an existing file is
 * replaced. Rank root receives at most 16 MiB at a time, or one row of the first dimension, and
 * writes them; other ranks need no access to the file. A struct, and a number that numpy does not
 * know, is written as raw bytes (V). path is not read on other ranks.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_SYSTEM on all ranks if the file cannot be written,
 * after which it is removed; _INVALID if there is no rank root or its path is NULL; or an error of
 * shmview_mpi_halo(). Writing to the disk is not subject to the deadline. */
int shmview_mpi_split_save(const struct shmview_mpi_blocks *split, int root, const char *path,
                           int64_t deadline_ns);

#ifdef __cplusplus
}
#endif
#endif
