/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/error.h - every error that shmview reports, and how to read one.
 *
 * A call returns 0 on success and a negated SHMVIEW_ERR_* on failure. Some calls
 * have positive results, which their comments name, such as SHMVIEW_OWNER_DIED.
 * After a failure the out parameters are unchanged. The code is for the program;
 * the text is for people, and may change from version to version:
 *
 *     if (shmview_attach(conn, "demo", SHMVIEW_READ, 0, &seg) < 0)
 *         errx(1, "%s", shmview_error_text());
 *
 * In the comments of these headers, _NAME is short for -SHMVIEW_ERR_NAME.
 *
 * A wrong argument. The program should be corrected; the text names the argument:
 *
 *   INVALID          a name, a size, a flag, a struct_bytes or another argument is wrong
 *   FORMAT           the text is no format of an element; the text names the character
 *   MISALIGNED       a view would have elements at addresses that their type does not allow
 *   ILL_SIZED        the bytes or elements do not divide as requested
 *   BOUNDS           a view leads outside the segment, or an index outside the view; also a
 *                    row offset that another program has stored in the segment
 *   OVERFLOW         a size or an address does not fit into 63 bits
 *   CONVERSION       a value or a type cannot be converted as exactly as required
 *   CONTIGUOUS       the consumer does not accept the view's strides or suboffsets
 *   READ_ONLY        the attachment or the view does not allow writing
 *
 * The state of segments, which other programs change too:
 *
 *   NOT_FOUND        there is no such segment, or this user may not see it; no such field
 *   EXISTS           the name of the segment is taken: choose another one, or attach
 *   NO_LAYOUT        the segment has no such layout, or the layout has no such view
 *   LAYOUT_EXISTS    the segment already has a layout of this name
 *   STALE            the view belongs to another phase than the current one: open it again
 *   BUSY             something is still in use; the text names it
 *
 * Rights and limits:
 *
 *   DENIED           this user may not do this
 *   QUOTA            a configured quota is used up; the text has the figures
 *   LIMIT            a fixed limit is reached, which no configuration changes
 *   NO_SLOT          every slot in the lock of the segment is taken, until a client detaches
 *   NO_SPACE         there is not enough shared memory; the text has the figures
 *   NO_MEMORY        this process, or the daemon, is short of memory
 *
 * The lock, and the mutexes of family.h:
 *
 *   TIMED_OUT        the deadline passed; also of waits for mutexes, changes, phases and events
 *   NOT_OWNER        the calling thread does not hold the lock, or does not own the mutex
 *   DEADLOCK         the call would wait for the calling thread itself
 *   NO_LOCK          the segment has no lock, or its access is SHMVIEW_PEEK
 *   TOO_DEEP         the thread holds the lock 2^31 times, or a mutex 2^32 - 1 times
 *   LOST             the attachment has ended: detach the handle and attach again
 *
 * The daemon and the system:
 *
 *   NO_DAEMON        no daemon could be reached or started; the text lists what was tried
 *   DISCONNECTED     the daemon is gone, and may have carried out the request. The next call
 *                    connects again
 *   INTERRUPTED      the function given to shmview_on_wait() ended the wait
 *   PROTOCOL         the reply is not one of shmviewd, or it does not know the request
 *   UNSUPPORTED      the daemon has no events; or a tensor is of an unknown version of DLPack
 *   NOT_ATTACHED     the daemon knows no such attachment of this connection
 *   LAYOUT_VERSION   the lock is damaged, or from another version of shmview; or a mutex is
 *   SYSTEM           a system call failed, here or in the daemon; the text has the reason
 *
 * Jobs of many nodes, see mpi.h:
 *
 *   PEER             another process of the job has died or failed, or MPI reports an error */
#ifndef SHMVIEW_ERROR_H
#define SHMVIEW_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, value, Varlink error or "" for one that never crosses the socket, text)
 *
 * The one list of errors: the enum, the names in the protocol and the texts are
 * made from it. Values are part of the ABI. They are never changed, and the value
 * of a removed error is never used again. */
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
    X(READ_ONLY, 36, "io.shmview.SegmentFrozen", "the attachment is read-only")                    \
    X(NO_DAEMON, 37, "", "no shmviewd could be reached")                                           \
    X(DISCONNECTED, 38, "", "the daemon closed the connection")                                    \
    X(PROTOCOL, 39, "", "the daemon broke the protocol")                                           \
    X(LAYOUT_VERSION, 40, "", "shared memory of an unknown layout version")                        \
    X(BUSY, 41, "io.shmview.SegmentBusy", "still in use")                                          \
    X(NO_MEMORY, 42, "", "out of memory")                                                          \
    X(SYSTEM, 43, "io.shmview.Failed", "a system call failed")                                     \
    X(TOO_DEEP, 44, "", "the lock is held too many times by this thread")                          \
    X(STALE, 45, "", "the view is of a past phase")                                                \
    X(CONVERSION, 46, "", "a value cannot be converted without loss")                              \
    X(CONTIGUOUS, 47, "", "the view's strides are more than the consumer can bear")                \
    X(LOST, 48, "", "the lock was lost: the attachment has ended")                                 \
    X(INTERRUPTED, 49, "", "the caller ended the wait")                                            \
    X(PEER, 50, "", "another process of the job has failed")

/* The errors: SHMVIEW_ERR_INVALID = 1 and so on. */
enum shmview_error {
#define X(name, value, wire, text) SHMVIEW_ERR_##name = value,
    SHMVIEW_ERROR_LIST(X)
#undef X
};

/* A result of lock calls: the caller holds the lock exclusively, and the last
 * exclusive holder died inside, so that the bytes may be half written. See the
 * lock calls in shmview.h. */
#define SHMVIEW_OWNER_DIED 1

/* Returns the fixed English text of an error, which is SHMVIEW_ERR_* or its
 * negation. Returns "success" for 0, and "unknown error" for a value that is
 * none. The string is static. Any thread. Never fails. */
const char *shmview_strerror(int error);

/* Returns a sentence about the last failed call of the calling thread, with names
 * and figures:
 *
 *     view 'A': dimension 0 ends at byte 4004, the segment has 4000 bytes
 *
 * The string belongs to the thread, and is valid until the next call of that
 * thread that fails. It is "" if no call has failed yet. Read it only after a
 * failure, because a call that succeeds may leave it as it is. Never fails. */
const char *shmview_error_text(void);

#ifdef __cplusplus
}
#endif
#endif
