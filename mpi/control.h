/* SPDX-License-Identifier: Apache-2.0 */
/* The control area of a node: where its members meet.
 *
 * A segment of its own beside that of the data, without a lock, which ends with the job. It is made
 * by the leader, zeroed by the daemon, and used by the members of one job only, which trust each
 * other. All words are native-endian and naturally aligned. Words that two members may touch at
 * once are C11 atomics.
 *
 * A meeting brings all members together, lets the leader work, and ends for all with one status:
 *
 *   member    writes its record (status, views, text), then adds 1 to `arrived`, and wakes the
 *             leader if it is the last one
 *   leader    waits until `arrived` is the number of this meeting times that of the members; reads
 *             the records; works; writes the result; then stores the number of the meeting in
 *             `released`, and wakes all. If a member does not come, it works after that
 *   member    waits until `released` is the number of this meeting, and reads the result
 *
 *   arrived    0 -> n_members -> 2 * n_members ... (wraps); added to by members, read by the leader
 *   released   0 -> 1 -> 2 ... (wraps); stored by the leader
 *
 * A record is written by its member before its arrival, and read by the others after the release;
 * by the leader after the arrival. The member writes it again only for the next meeting, before
 * which every reader has arrived itself or has ended its reading.
 *
 * There are two results, of even and of odd meetings: if a member dies, the leader ends the next
 * meeting without those that are still reading the result of the last one.
 *
 * A wait ends after 0.1 s at the latest, to look at the deadline, and whether a process is dead for
 * which it waits. So a death before an arrival is found by the leader, and the death of the leader
 * by each member. After a failed meeting the area is not used any longer.
 *
 * tests/model/meeting.pml is this protocol as a model, with a planted fault for each rule. */
#ifndef MPI_CONTROL_H
#define MPI_CONTROL_H

#include <shmview/mpi.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_MAGIC   0x69704d53u /* "SMpi" */
#define CONTROL_VERSION 1u

/* A view of the data segment, as spec of shmview_view_make(). */
struct control_view {
    uint64_t offset;
    uint32_t is_there;
    uint32_t ndim;
    int64_t shape[SHMVIEW_MAX_NDIM];
    int64_t strides[SHMVIEW_MAX_NDIM];
    char format[SHMVIEW_FORMAT_BYTES];
};

struct control_record {
    uint64_t process; /* its name, shmview_process_name(); written once */
    uint64_t value;   /* what all members of the job must share in this meeting */
    int32_t status;   /* 0, a positive outcome, or an error */
    uint32_t met;     /* the meeting for which the record is; atomic */
    uint32_t reserved[10];
    struct control_view from, to;
    char text[SHMVIEW_MPI_TEXT_BYTES];
};

/* How a meeting has ended, written by the leader. */
struct control_result {
    int32_t status;
    int32_t rank;   /* that has this error; -1: unknown */
    int32_t broken; /* 1: the job's handle is broken */
    uint32_t reserved[13];
    char text[SHMVIEW_MPI_TEXT_BYTES];
};

struct control {
    uint32_t magic, version;
    uint32_t n_members;
    uint32_t reserved[13];
    _Atomic uint32_t arrived; /* a cache line of its own */
    uint32_t reserved_arrived[15];
    _Atomic uint32_t released;
    uint32_t reserved_released[15];
    struct control_result results[2]; /* of even and of odd meetings */
    struct control_record records[];
};

_Static_assert(sizeof(struct control_view) == 16 + 128 + 1024, "whole words");
_Static_assert(sizeof(struct control_record) == 64 + 2 * 1168 + 512, "whole words");
_Static_assert(offsetof(struct control, arrived) == 64, "a cache line");
_Static_assert(offsetof(struct control, released) == 128, "a cache line");
_Static_assert(sizeof(struct control_result) == 64 + 512, "whole cache lines");
_Static_assert(offsetof(struct control, results) == 192, "after the words");
_Static_assert(offsetof(struct control, records) == 192 + 2 * 576, "after the results");
_Static_assert(sizeof(_Atomic uint32_t) == 4, "an atomic is a word");

struct shmview_mpi;

/* The bytes of the area of n members. */
uint64_t control_bytes(int n_members);
/* The leader makes the area, before others have it. */
void control_init(struct control *control, int n_members);
/* Returns 0, or -SHMVIEW_ERR_LAYOUT_VERSION if the memory is no area for so many members. */
int control_check(const struct control *control, uint64_t bytes, int n_members);
/* Writes the name of this process into its record. Returns 0 or an error. */
int control_enter(struct shmview_mpi *job);

/* The record of this rank, to be filled before a meeting; and that of a member after it. */
struct control_record *control_mine(struct shmview_mpi *job);
const struct control_record *control_of(const struct shmview_mpi *job, int member);

/* Between meetings: returns 0, or -SHMVIEW_ERR_PEER if a member of the node is dead, and the handle
 * is broken then. */
int control_look(struct shmview_mpi *job);

/* The leader's work in a meeting, after all members of the node have come. status is the first
 * error of a member, or 0. It returns the status of the meeting. It may set *ret_broken. If a
 * member has not come, *ret_broken is 1, status is the error, and so is the status of the meeting.
 */
typedef int control_work(struct shmview_mpi *job, int status, void *arg, int *ret_broken);

/* Meets the other members of the node, with the status of this rank, whose text is stored if it is
 * an error. Returns the status of the meeting, whose text is stored. If a member or the leader does
 * not come, the handle is broken. */
int control_meet(struct shmview_mpi *job, int status, uint64_t value, control_work *work, void *arg,
                 int64_t deadline_ns);

#endif
