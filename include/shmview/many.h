/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/many.h - many segments created or attached at once.
 *
 * A process that needs many segments pays for one exchange with the daemon for
 * each shmview_create() and shmview_attach(), and for one message for each
 * shmview_detach(). These calls send the requests together, and read the replies
 * as they come.
 *
 *     const char *const names[] = {"weights", "gradients", "frames"};
 *     struct shmview_segment *segments[3];
 *     if (shmview_attach_many(conn, names, 3, SHMVIEW_WRITE, 0, segments))
 *         return complain();
 *     ...
 *     shmview_detach_many(segments, 3); */
#ifndef SHMVIEW_MANY_H
#define SHMVIEW_MANY_H

#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates the n segments called names, each like shmview_create(): names[i] has
 * sizes[i] bytes, and all have the same options. Stores the handle of names[i] in
 * segments[i]. Each is detached on its own. n may be 0.
 *
 * All or none: if one segment cannot be created, the call removes and detaches the
 * others, stores NULL in all of segments, and returns the error of the first one
 * that failed; shmview_error_text() names it. The errors are those of
 * shmview_create(), and _INVALID for a name that is NULL, with nothing sent. After
 * _DISCONNECTED and _INTERRUPTED the daemon may have created segments whose
 * replies did not come.
 *
 * Blocks until all memory is allocated. Any thread may call. Other threads' calls
 * on the connection wait for at most 32 replies. */
int shmview_create_many(struct shmview_connection *connection, const char *const *names,
                        const uint64_t *sizes, size_t n,
                        const struct shmview_create_options *options,
                        struct shmview_segment **segments);

/* Attaches the n segments called names, each like shmview_attach(): with the same
 * access (SHMVIEW_PEEK, _READ or _WRITE) and flags. Stores the handle of names[i]
 * in segments[i]. Each is detached on its own. A name may occur several times, and
 * has a handle and an attachment for each. n may be 0.
 *
 * All or none: if one segment cannot be attached, the call detaches the others,
 * stores NULL in all of segments, and returns the error of the first one that
 * failed; shmview_error_text() names it. The errors are those of
 * shmview_attach(), and _INVALID for a name that is NULL, with nothing sent.
 *
 * Blocks until the daemon has answered, like shmview_attach(). Any thread may
 * call. Other threads' calls on the connection wait for at most 32 replies. */
int shmview_attach_many(struct shmview_connection *connection, const char *const *names, size_t n,
                        int access, unsigned flags, struct shmview_segment **segments);

/* Detaches the n segments, each like shmview_detach(), and sets their handles in
 * segments to NULL. A handle that is NULL is skipped. They may belong to several
 * connections; those that belong to the connection of the first one are reported
 * to the daemon together. Does not wait for the daemon.
 *
 * Returns 0, or the error of the first one that cannot be detached (_BUSY). That
 * one and those after it keep their handles. */
int shmview_detach_many(struct shmview_segment **segments, size_t n);

/* Unmaps all segments that this process has detached. Without it a mapping stays for
 * the next attachment with the same access, which then takes about half the time, if
 * there may be one: the segment has the lifetime SHMVIEW_MANUAL, or others had attached
 * it, too. At most 32 such mappings stay, with 4 MiB of data in all, until the first
 * call to attach or detach after a second, or until shmview_disconnect(). The memory
 * of a segment that is removed is free when the last process has unmapped it.
 *
 * Does not block, never fails. Any thread may call. A forked child has copies of the
 * mappings of its parent, and unmaps its own. */
void shmview_trim(void);

#ifdef __cplusplus
}
#endif

#endif
