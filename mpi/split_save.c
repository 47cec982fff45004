/* SPDX-License-Identifier: Apache-2.0 */
/* A split array as a file. One rank writes, because a file system need not be the same on all
 * nodes; and in slabs, because the array need not fit into its memory. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <shmview/error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npy.h"
#include "split.h"
#include "text.h"
#include "verdict.h"

#define SLAB_BYTES ((int64_t)16 << 20)

/* The file that the root writes, under another name until it is complete. */
struct save {
    const char *path;
    char *partial;
    int fd;
    unsigned char *slab;
    int result; /* of what was written so far */
};

static int system_failed(const char *doing, const char *path)
{
    return text_fail(-SHMVIEW_ERR_SYSTEM, "%s '%s': %s", doing, path, strerror(errno));
}

static void save_write(struct save *save, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n && save->result == 0) {
        ssize_t written = write(save->fd, at, n);
        if (written < 0 && errno != EINTR)
            save->result = system_failed("cannot write", save->partial);
        if (written > 0) {
            at += written;
            n -= (size_t)written;
        }
    }
}

static int save_begin(struct save *save, const char *path, uint64_t slab_bytes)
{
    if (!path)
        return text_fail(-SHMVIEW_ERR_INVALID, "there is no path of the file");
    size_t length = strlen(path) + sizeof ".partial";
    save->path = path;
    save->partial = malloc(length);
    save->slab = malloc(slab_bytes ? slab_bytes : 1);
    if (!save->partial || !save->slab)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory to write %llu bytes at a time",
                         (unsigned long long)slab_bytes);
    snprintf(save->partial, length, "%s.partial", path);
    save->fd = open(save->partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return save->fd < 0 ? system_failed("cannot create", save->partial) : 0;
}

/* Gives the file its name if result is 0, else removes it. */
static int save_end(struct save *save, int result)
{
    if (save->fd >= 0 && close(save->fd) < 0 && result == 0)
        result = system_failed("cannot write", save->partial);
    if (save->fd >= 0 && result == 0 && rename(save->partial, save->path) < 0)
        result = system_failed("cannot write", save->path);
    if (save->fd >= 0 && result < 0)
        unlink(save->partial);
    free(save->partial);
    free(save->slab);
    return result;
}

/* The rows of a slab. */
static int64_t rows_of(const struct split_map *map, uint32_t itemsize, int64_t *ret_row_bytes)
{
    int64_t row = itemsize;
    for (uint32_t d = 1; d < map->ndim; d++)
        if (__builtin_mul_overflow(row, map->axes[d].end, &row))
            row = INT64_MAX / 4;
    *ret_row_bytes = row;
    int64_t rows = row ? SLAB_BYTES / row : map->axes[0].end;
    return rows < 1 ? 1 : rows;
}

/* Moves all slabs to the root, which writes them. */
static int save_slabs(const struct shmview_mpi_blocks *split, int root, int64_t rows,
                      int64_t row_bytes, struct save *save, int64_t deadline_ns)
{
    struct split_map slab;
    split_on_root(&split->map, root, &slab);
    int64_t n = slab.axes[0].end;
    struct shmview_view view = {.data = save->slab, .itemsize = split->inner.itemsize};
    view.ndim = slab.ndim;
    view.strides[slab.ndim - 1] = view.itemsize;
    for (uint32_t d = slab.ndim; d-- > 1;)
        view.strides[d - 1] = (ptrdiff_t)(view.strides[d] * slab.axes[d].end);
    for (int64_t row = 0; row < n; row += rows) {
        slab.axes[0].begin = row;
        slab.axes[0].end = row + rows < n ? row + rows : n;
        slab.axes[0].block = rows;
        int result = split_move(split->link, &split->map, &split->inner, &slab, &view,
                                split->format, deadline_ns);
        if (result < 0) {
            /* MPI may still receive into the slab of a link that has failed. */
            if (split->link->is_broken)
                save->slab = NULL;
            return result;
        }
        if (split->link->me == root)
            save_write(save, save->slab, (size_t)((slab.axes[0].end - row) * row_bytes));
    }
    return 0;
}

int shmview_mpi_split_save(const struct shmview_mpi_blocks *split, int root, const char *path,
                           int64_t deadline_ns)
{
    struct shmview_mpi_link *link = split->link;
    struct save save = {.fd = -1};
    int64_t row_bytes = 0, shape[SHMVIEW_MAX_NDIM] = {0};
    int64_t rows = rows_of(&split->map, split->inner.itemsize, &row_bytes);
    for (uint32_t d = 0; d < split->map.ndim; d++)
        shape[d] = split->map.axes[d].end;
    int64_t slab_rows = rows < shape[0] ? rows : shape[0];
    int result = 0;
    if (root < 0 || root >= link->n)
        result = text_fail(-SHMVIEW_ERR_INVALID, "there is no rank %d among %d", root, link->n);
    else if (root == link->me)
        result = save_begin(&save, path, (uint64_t)(slab_rows * row_bytes));
    result = verdict_of_link(link, result, (uint64_t)root, "a file", deadline_ns);
    if (result < 0)
        return save_end(&save, result);
    char header[NPY_HEADER_BYTES];
    size_t n = npy_header(&split->inner, split->map.ndim, shape, header);
    if (link->me == root)
        save_write(&save, header, n);
    result = save_slabs(split, root, rows, row_bytes, &save, deadline_ns);
    if (result == 0)
        result = save.result;
    result = save_end(&save, result);
    return link->is_broken ? result : verdict_of_link(link, result, 0, "a file", deadline_ns);
}
