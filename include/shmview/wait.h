/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/wait.h - one wait for any of several streams, changes and phases. */
#ifndef SHMVIEW_WAIT_H
#define SHMVIEW_WAIT_H

#include <shmview/shmview.h>
#include <shmview/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an entry waits for. */
#define SHMVIEW_WAIT_CHANGE 1u /* of segment: the counter of changes is not seen */
#define SHMVIEW_WAIT_PHASE  2u /* of segment: the generation of the phase is not seen */
#define SHMVIEW_WAIT_FRAME  3u /* of stream: a take would not wait, unless it finds a held frame */

/* The most entries of one wait. */
#define SHMVIEW_WAIT_MAX 64

struct shmview_wait {
    uint32_t kind; /* SHMVIEW_WAIT_* */
    uint32_t seen; /* of a change or a phase */
    struct shmview_segment *segment;
    struct shmview_stream *stream;
};

/* Waits until one of n entries is ready, or until deadline_ns (as in shmview_wait_change()). The
 * first entry that is ready has its index in *ret_index. It takes nothing: another thread or
 * process may be first. The entries may belong to several daemons. Any thread.
 *
 * It sleeps in the kernel on all entries at once (futex_waitv, Linux 5.16). Where that is missing
 * or forbidden, it looks again after 1 to 10 ms.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_TIMED_OUT after the deadline, _INVALID for an unknown
 * kind, a member that is NULL, n that is 0 or above SHMVIEW_WAIT_MAX, or if another thread leaves
 * one of the streams during the call, _NO_LOCK, _LOST, _INTERRUPTED, or what a forked child may
 * get. */
int shmview_wait_any(const struct shmview_wait *entries, size_t n, int64_t deadline_ns,
                     size_t *ret_index);

#ifdef __cplusplus
}
#endif
#endif
