/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/mpi.h - one segment on each node of an MPI job, and collectives between the nodes.
 *
 * The ranks of a node share the node's segment, so that data that every rank needs is in the memory
 * of a node once, and crosses the network once.
 *
 *     const struct shmview_view_spec table = {.name = "table", .format = "float64", .ndim = 2,
 *                                             .shape = (int64_t[]){1000, 1000}};
 *     const struct shmview_mpi_layout ready = {.name = "ready", .views = &table, .n_views = 1};
 *     const struct shmview_mpi_spec spec = {
 *         .struct_bytes = sizeof spec, .size = 8000000, .layouts = &ready, .n_layouts = 1};
 *     struct shmview_mpi *job;
 *     struct shmview_view view;
 *     shmview_mpi_open(MPI_COMM_WORLD, NULL, "tables", &spec, &job);
 *     shmview_view_open(shmview_mpi_segment(job), "ready", "table", &view);
 *     if (rank == 0)
 *         read_table(&view);
 *     shmview_mpi_bcast(job, &view, 0, "ready");
 *     ... every rank reads the view ...
 *     shmview_mpi_close(job);
 *
 * This is a library of its own, which links the program's MPI: libshmview-mpi-openmpi or
 * libshmview-mpi-mpich. docs/MPI.md is the guide.
 *
 * Collective calls. All calls below but those under "Facts" are collective: every rank of the
 * communicator must make the same calls in the same order, with the same arguments where the
 * comment names no difference. One rank of each node, its leader, moves the bytes between the
 * nodes, directly from and to the segments. It holds the segment's lock exclusively while bytes
 * arrive. Then it makes the layout `phase` current, or counts a change if phase is NULL, and
 * unlocks. The others sleep until then. So a program that reads under the lock, or waits for the
 * phase, never sees half of a result. No rank may hold the lock when it calls.
 *
 * Views. Every view is one of shmview_mpi_segment(), of any format, dimension and strides, without
 * suboffsets. What one view sends and another receives has the same shape and the same format. The
 * view that one rank receives into must not overlap the view of another rank, unless the comment
 * allows it, or one that is sent.
 *
 * Failure. Arguments are compared before a byte is moved, and a wrong one is an error of every
 * rank, after which the job may go on. After any other error the handle is broken: each further
 * collective call fails with _LOST, and the program should close it and end. A wait ends at a
 * deadline (struct shmview_mpi_spec). If a rank dies for which others of its node wait, they find
 * out within 0.1 s; most MPIs end the whole job then. If bytes may be half written, the lock is
 * left as by a dead owner, so that the next owner gets SHMVIEW_OWNER_DIED, and the phase stays as
 * it was.
 *
 * Results. Each call returns 0 on success and a negated enum shmview_error on failure; _NAME is
 * short for -SHMVIEW_ERR_NAME. After a failure the out parameters are unchanged, and
 * shmview_mpi_error_text() returns a sentence with names and figures. Each collective call may
 * return an error of jobs:
 *     _INVALID      an argument is wrong, or the ranks do not agree; the text names rank and node
 *     _TIMED_OUT    a rank did not make the call, a transfer did not end, or another program did
 *                   not give the lock of a segment back, before the deadline
 *     _PEER         a rank has died, or MPI reports an error; shmview_mpi_failed_rank()
 *     _LOST         an earlier call has failed, or the attachment has ended
 *     _NO_MEMORY, _SYSTEM   memory is short, or a system call failed, on any rank
 *
 * Threads. One thread at a time may use a handle, and MPI must allow calls from it
 * (MPI_THREAD_SERIALIZED if it is not always the same thread). A forked child must not use it. */
#ifndef SHMVIEW_MPI_H
#define SHMVIEW_MPI_H

#include <mpi.h>

#include <shmview/mpi_split.h>
#include <shmview/mpi_type.h>
#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Opening ------------------------------------------------------------- */

/* The segments of a job, one on each node. */
struct shmview_mpi;

/* A layout of every segment, as for shmview_define(). */
struct shmview_mpi_layout {
    const char *name;
    const struct shmview_view_spec *views;
    size_t n_views;
};

/* The segments to open. Set struct_bytes to sizeof. A member that is 0 has its default. */
struct shmview_mpi_spec {
    uint32_t struct_bytes;
    uint32_t lifetime;  /* SHMVIEW_ATTACHED (the default) or SHMVIEW_MANUAL */
    uint64_t size;      /* bytes of each segment */
    int64_t timeout_ns; /* the longest time that a collective call waits; 0: 60 s */
    const struct shmview_mpi_layout *layouts;
    size_t n_layouts;
};

/* Opens the segment called name on each node of comm, for writing on every rank.
 *
 * The ranks of shmview_mpi_node_comm() are a node. Its leader, the lowest of them, creates the
 * segment, or adopts the one of that name, if size and layouts agree. It declares the layouts that
 * are missing. connection is this rank's connection, which must outlive the handle. If it is NULL,
 * the library connects as shmview_connect(NULL, 0) does: on a node without a daemon the leader
 * starts a session daemon. Either all ranks of a node pass a connection to the same daemon, or all
 * pass NULL. The library duplicates comm. The caller must pass *ret_job to shmview_mpi_close().
 *
 * Returns 0 on success, or SHMVIEW_OWNER_DIED (1), which is a success too: a node has adopted a
 * segment in which the last owner has died, so its bytes may be half written. Every rank gets the
 * same result. On failure no segment is left that the call has created: returns an error of jobs,
 * _EXISTS if a segment has another size or lifetime or no lock, _LAYOUT_EXISTS if it has another
 * layout of that name, or what shmview_connect(), shmview_create(), shmview_attach() and
 * shmview_define() return. The text names the node. If comm is MPI_COMM_NULL or an
 * intercommunicator, returns _INVALID without waiting for other ranks. */
int shmview_mpi_open(MPI_Comm comm, struct shmview_connection *connection, const char *name,
                     const struct shmview_mpi_spec *spec, struct shmview_mpi **ret_job);

/* Detaches the segments and frees the handle, also a broken one. job may be NULL. Segments of
 * SHMVIEW_MANUAL stay: the next job of this name adopts them, and finds in the phase of each
 * segment which result was the last complete one. If the handle is not broken, waits for the other
 * ranks.
 *
 * Returns 0 on success. If it returns an error of jobs, the handle is freed too. Returns
 * -SHMVIEW_ERR_BUSY and does nothing if a thread of this process holds the lock or a buffer of the
 * segment. */
int shmview_mpi_close(struct shmview_mpi *job);

/* Like shmview_mpi_close(), but does not detach the segment: the caller then owns *ret_segment, and
 * must pass it to shmview_detach() before it ends the connection. For programs whose views must
 * outlive the job. *ret_segment is NULL if MPI may still write to the segment, which then stays
 * mapped until the process ends. The job must have been opened with a connection.
 *
 * Returns as shmview_mpi_close(), but never _BUSY. If it returns an error of jobs, *ret_segment is
 * set too. Returns -SHMVIEW_ERR_INVALID and does nothing, on this rank alone, for a job that was
 * opened without a connection. */
int shmview_mpi_close_keeping(struct shmview_mpi *job, struct shmview_segment **ret_segment);

/* --- Facts --------------------------------------------------------------- */

/* Divides comm into nodes: the ranks that run under one kernel and have the same /dev/shm, and
 * therefore can share a segment. MPI_Comm_split_type() with MPI_COMM_TYPE_SHARED may return fewer
 * ranks, those among which MPI itself uses shared memory: in an MPICH over UCX each rank is alone.
 * The members of *ret_node have the order of their ranks in comm. The caller frees it by
 * MPI_Comm_free().
 *
 * Collective over comm; blocks until all of its ranks are there, without a deadline. Returns 0 on
 * success. On failure every rank returns -SHMVIEW_ERR_NO_MEMORY; _SYSTEM if a rank cannot read what
 * identifies its kernel and its /dev/shm, with the name of its node; or _PEER if MPI reports an
 * error and the error handler of comm returns. If comm is MPI_COMM_NULL or an intercommunicator,
 * returns _INVALID without waiting for other ranks. */
int shmview_mpi_node_comm(MPI_Comm comm, MPI_Comm *ret_node);

/* Facts of a handle, which do not block and never fail. The segment is valid until the handle is
 * closed; the program must not detach it. Nodes are numbered from 0 in the order of their lowest
 * rank. */
struct shmview_segment *shmview_mpi_segment(const struct shmview_mpi *job);
int shmview_mpi_is_leader(const struct shmview_mpi *job); /* 1 if this rank is its node's leader */
int shmview_mpi_nodes(const struct shmview_mpi *job);     /* how many */
int shmview_mpi_node(const struct shmview_mpi *job, int rank); /* of that rank, or -1 */

/* Returns the rank in comm whose failure broke the handle, or -1 if that is not known. Never
 * fails. */
int shmview_mpi_failed_rank(const struct shmview_mpi *job);

/* The longest text of shmview_mpi_error_text(), its NUL included. */
#define SHMVIEW_MPI_TEXT_BYTES 512

/* Returns a sentence about the last failed call of this header in the calling thread, "" if none
 * has failed. The string belongs to the thread, and is valid until its next call that fails. Never
 * fails. */
const char *shmview_mpi_error_text(void);

/* --- Collectives --------------------------------------------------------- */

/* Copies the elements of the view on the node of rank root to the views on all other nodes. All
 * ranks of a node pass the same view. Blocks until this node has the elements. Returns 0 or an
 * error of jobs. */
int shmview_mpi_bcast(struct shmview_mpi *job, const struct shmview_view *view, int root,
                      const char *phase);

/* Combines the elements of all ranks one by one, in the order of the ranks. from is the
 * contribution of this rank. All ranks of a node pass the same view `to`, whose result is that of
 * all nodes, or with shmview_mpi_reduce() of the node of rank root; on other nodes its bytes are
 * undefined afterwards, and the phase stays. `to` may be the same view as a contribution, else it
 * must not overlap any.
 *
 * Each rank combines a slice of its node's contributions in the segment, then the leaders combine
 * the results of the nodes. op is an operation of MPI or of the program. An operation of MPI needs
 * elements that it is defined for: numbers, or for MPI_MINLOC and MPI_MAXLOC a struct that is laid
 * out as one of MPI's pairs ("T{d:value:i:index:}"). Swapped numbers are converted. An operation of
 * the program gets the MPI datatype of the number, or contiguous bytes for every other format. Two
 * operations of the program are compared only by whether they commute.
 * Blocks until this node has the result. Returns 0, _CONVERSION if op is not defined for the
 * format, or an error of jobs. */
int shmview_mpi_reduce(struct shmview_mpi *job, const struct shmview_view *from,
                       const struct shmview_view *to, MPI_Op op, int root, const char *phase);
int shmview_mpi_allreduce(struct shmview_mpi *job, const struct shmview_view *from,
                          const struct shmview_view *to, MPI_Op op, const char *phase);

/* Divide a view along its first dimension into blocks, one for each rank: its length is a multiple
 * of the number of ranks, and a block has the shape of what one rank passes.
 *
 *   scatter    block r of the view `from` of rank root is copied to `to` of rank r
 *   gather     `from` of rank r is copied to block r of the view `to` of rank root
 *   allgather  `from` of rank r is copied to block r of `to` on every node. All ranks of a node
 *              pass the same view `to`
 *   alltoall   block s of `from` of rank r is copied to block r of `to` of rank s
 *
 * The large view of scatter and gather is ignored on other ranks than root, and may be NULL. Only a
 * node whose segment has received elements begins the phase. Blocks until this node has its
 * elements. Returns 0 or an error of jobs. */
int shmview_mpi_scatter(struct shmview_mpi *job, const struct shmview_view *from,
                        const struct shmview_view *to, int root, const char *phase);
int shmview_mpi_gather(struct shmview_mpi *job, const struct shmview_view *from,
                       const struct shmview_view *to, int root, const char *phase);
int shmview_mpi_allgather(struct shmview_mpi *job, const struct shmview_view *from,
                          const struct shmview_view *to, const char *phase);
int shmview_mpi_alltoall(struct shmview_mpi *job, const struct shmview_view *from,
                         const struct shmview_view *to, const char *phase);

#ifdef __cplusplus
}
#endif
#endif
