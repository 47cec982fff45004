/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/mpi_type.h - views as MPI datatypes, and views from rank to rank.
 *
 *     struct shmview_mpi_link *link;
 *     shmview_mpi_link_open(MPI_COMM_WORLD, &link);
 *     if (rank == 0)
 *         shmview_mpi_send(link, &column, 1, shmview_deadline(5000000000));
 *     else if (rank == 1)
 *         shmview_mpi_receive(link, &row, 0, shmview_deadline(5000000000));
 *     shmview_mpi_link_close(link);
 *
 * mpi.h includes this header and describes results and error texts. The calls accept every view but
 * those with suboffsets. One thread at a time may use a link, and only one of those that MPI
 * permits to call it. A link must not be used in a forked child. */
#ifndef SHMVIEW_MPI_TYPE_H
#define SHMVIEW_MPI_TYPE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include <shmview/element.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A link between the ranks of a communicator: what transfers of views need. */
struct shmview_mpi_link;

/* Opens a link between all ranks of comm, with communicators of its own, so that its messages never
 * meet those of the program. Collective: each rank of comm calls, and blocks until all do. The
 * first call of a process with other ranks measures for about 15 ms how this MPI transfers views
 * best (shmview_mpi_link_carry()). The caller must pass *ret_link to shmview_mpi_link_close()
 * before MPI_Finalize().
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_INVALID for MPI_COMM_NULL or a communicator between
 * two groups, _NO_MEMORY or _PEER. */
int shmview_mpi_link_open(MPI_Comm comm, struct shmview_mpi_link **ret_link);

/* Closes a link, and frees the datatypes of shmview_mpi_type(). Collective, and blocks like
 * MPI_Comm_free(), unless the link is lost. NULL does nothing. Always returns 0. */
int shmview_mpi_link_close(struct shmview_mpi_link *link);

/* How a transfer carries elements that have gaps between them. Elements without gaps always move
 * directly from the view or into it. */
enum shmview_mpi_carry {
    SHMVIEW_MPI_MEASURED = 0, /* as was measured for runs of this length: the default */
    SHMVIEW_MPI_DATATYPE = 1, /* by a datatype of MPI */
    SHMVIEW_MPI_PACKED = 2,   /* packed into two small buffers by turns */
};

/* Overrides the choice for the transfers that this rank takes part in from now on. Where the two
 * sides of a transfer have different ones, PACKED wins, then DATATYPE. The environment variable
 * SHMVIEW_MPI_CARRY (measured, datatype, packed) of rank 0 sets what a new link has. Does not
 * block.
 *
 * Returns 0 on success, or -SHMVIEW_ERR_INVALID for another value. */
int shmview_mpi_link_carry(struct shmview_mpi_link *link, enum shmview_mpi_carry carry);

/* Finds the datatype of all elements of a view: MPI_Send(view.data, 1, type, ...) sends them in C
 * order. A number is the basic type of MPI that has the same bytes, such as MPI_FLOAT for float32
 * and MPI_C_DOUBLE_COMPLEX for complex128. A struct is a struct of its fields, whose padding is not
 * sent. Elements that MPI has no type for are bytes: float16, bfloat16, float8, strings, addresses,
 * and numbers of the other byte order.
 *
 * The type is committed. It belongs to the link and must not be freed; it is valid until the link
 * is closed. Views that have the same shape, strides and format have the same type. Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_CONTIGUOUS for a view with suboffsets, _OVERFLOW if a
 * length is more than an int holds, _NO_MEMORY or _PEER. */
int shmview_mpi_type(struct shmview_mpi_link *link, const struct shmview_view *view,
                     MPI_Datatype *ret_type);

/* Sends all elements of a view to a rank of the link's communicator, or receives them from one. The
 * two views must have the same shape and elements of the same type; strides may differ. There are
 * no tags: the n-th send to a rank meets the n-th receive there. A rank cannot send to itself; use
 * shmview_copy().
 *
 * Block until the view may be used again, or until deadline_ns, an absolute time of CLOCK_MONOTONIC
 * (shmview_deadline()). Elements with gaps are never copied as a whole: a transfer needs at most
 * 128 KiB of buffers. No lock is taken: hold the segment's lock if other programs use the elements.
 *
 * Return 0 on success. Return -SHMVIEW_ERR_CONVERSION if shape or type differ; the receiver's view
 * is unchanged, with the exception below. Both sides fail, but a send of 64 KiB or less may have
 * returned 0 by then. The link remains usable. Return _CONTIGUOUS for a view with suboffsets,
 * _READ_ONLY to receive into a read-only view, or _INVALID for a wrong rank. After _TIMED_OUT, or
 * _PEER if MPI fails, MPI may still use the view, and all further calls return _LOST: close the
 * link. Return _NO_MEMORY. The text names the rank.
 *
 * A difference is certain to be found where both views have more than 64 KiB. A shorter message is
 * known by its tag alone, which has a hash of shape and type (14 bits) and the end of its number
 * (16 bits; MPIs whose MPI_TAG_UB is below 2^31 - 1 leave fewer, at least 6 and 8). A receive takes
 * another message in which all these bits are alike. If it has fewer bytes, the receive fails with
 * _CONVERSION, but may have written into the view; if it has more, with _PEER. Its number is
 * another one only if the sender is at least 65536 messages ahead (256, with 8 bits). If that is a
 * longer one, its sender gets _TIMED_OUT. */
int shmview_mpi_send(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                     int64_t deadline_ns);
int shmview_mpi_receive(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                        int64_t deadline_ns);

/* Sends to one rank and receives from one, both at once, as shmview_mpi_send() and
 * shmview_mpi_receive(). If both ranks are the caller's own, it copies. The views must not overlap.
 */
int shmview_mpi_sendrecv(struct shmview_mpi_link *link, const struct shmview_view *to_send,
                         int to_rank, const struct shmview_view *to_receive, int from_rank,
                         int64_t deadline_ns);

#ifdef __cplusplus
}
#endif
#endif
