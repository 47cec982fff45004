/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/error.h - every error that shmview reports, and how to read one.
 *
 * A call returns 0 on success, a negated SHMVIEW_ERR_* on failure, and a
 * positive outcome where its comment names one (SHMVIEW_OWNER_DIED). Out
 * parameters are untouched on failure. The text that goes with the last failed
 * call of a thread is in shmview_error_text(). */
#ifndef SHMVIEW_ERROR_H
#define SHMVIEW_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, value, Varlink error or "" for one that never crosses the socket, text)
 * The one list: the enum, the names on the wire and the texts come from it.
 * Values are part of the ABI: they are never changed or used again. */
#define SHMVIEW_ERROR_LIST(X)                                                                      \
    X(INVALID, 1, "org.varlink.service.InvalidParameter", "invalid argument")                      \
    X(DENIED, 2, "org.varlink.service.PermissionDenied", "permission denied")                      \
    X(NOT_FOUND, 3, "io.shmview.SegmentNotFound", "no such segment")                               \
    X(EXISTS, 4, "io.shmview.SegmentExists", "a segment of this name exists already")              \
    X(NO_SPACE, 5, "io.shmview.NoSpace", "not enough shared memory")                               \
    X(LIMIT, 6, "io.shmview.LimitExceeded", "a limit is exceeded")                                 \
    X(NO_LAYOUT, 7, "io.shmview.LayoutNotFound", "no such layout or view")                         \
    X(LAYOUT_EXISTS, 8, "io.shmview.LayoutExists", "a layout of this name exists already")         \
    X(NO_SLOT, 9, "io.shmview.SlotsExhausted", "every lock slot of the segment is taken")          \
    X(NOT_ATTACHED, 10, "io.shmview.NotAttached", "no such attachment on this connection")         \
    X(FORMAT, 11, "io.shmview.InvalidFormat", "invalid element format")                            \
    X(MISALIGNED, 12, "io.shmview.MisalignedView", "view is not aligned to its element")           \
    X(ILL_SIZED, 13, "io.shmview.IllSizedView", "bytes do not divide into whole elements")         \
    X(BOUNDS, 14, "io.shmview.ViewOutOfBounds", "view reaches outside the segment")                \
    X(OVERFLOW, 15, "io.shmview.ViewOverflow", "size of the view overflows")                       \
    X(UNSUPPORTED, 16, "org.varlink.service.MethodNotImplemented", "not supported by the daemon")  \
    X(QUOTA, 17, "io.shmview.QuotaExceeded", "a quota is exceeded")                                \
    X(TIMED_OUT, 32, "", "the deadline passed")                                                    \
    X(NOT_OWNER, 33, "", "the calling thread does not hold the lock")                              \
    X(DEADLOCK, 34, "", "the call would wait for itself")                                          \
    X(NO_LOCK, 35, "", "the segment, or this access to it, has no lock")                           \
    X(READ_ONLY, 36, "", "the attachment is read-only")                                            \
    X(NO_DAEMON, 37, "", "no shmviewd could be reached")                                           \
    X(DISCONNECTED, 38, "", "the daemon closed the connection")                                    \
    X(PROTOCOL, 39, "", "the daemon broke the protocol")                                           \
    X(LAYOUT_VERSION, 40, "", "shared memory of an unknown layout version")                        \
    X(BUSY, 41, "", "still in use")                                                                \
    X(NO_MEMORY, 42, "", "out of memory")                                                          \
    X(SYSTEM, 43, "io.shmview.Failed", "a system call failed")                                     \
    X(TOO_DEEP, 44, "", "the lock is held too many times by this thread")                          \
    X(STALE, 45, "", "the view is of a past phase")                                                \
    X(CONVERSION, 46, "", "a value cannot be converted without loss")                              \
    X(CONTIGUOUS, 47, "", "the view's strides are more than the consumer can bear")                \
    X(LOST, 48, "", "the lock was lost: the attachment has ended")                                 \
    X(INTERRUPTED, 49, "", "the caller ended the wait for the daemon")

enum shmview_error {
#define X(name, value, wire, text) SHMVIEW_ERR_##name = value,
    SHMVIEW_ERROR_LIST(X)
#undef X
};

/* Outcome of a lock call that succeeded: the last holder died inside. */
#define SHMVIEW_OWNER_DIED 1

/* Returns the fixed English text of an error: takes SHMVIEW_ERR_* or its
 * negation. The string is static. Never fails, any thread. */
const char *shmview_strerror(int error);

/* Returns the whole story of the last failed call of the calling thread, with
 * names and figures, for instance
 *   view 'A': dimension 0 ends at byte 4004, the segment has 4000 bytes
 * The string belongs to the thread and lives until its next failed call.
 * "" if no call has failed yet. Never fails. */
const char *shmview_error_text(void);

#ifdef __cplusplus
}
#endif
#endif
