/* SPDX-License-Identifier: Apache-2.0 */
/* The handle of a segment, or of foreign memory (shmview_wrap()), which has no connection.
 *
 * A handle is the attachment of one process. A forked child inherits its bytes, but gets an
 * attachment of its own at the first call that needs one (segment_step_in()). */
#ifndef CLIENT_SEGMENT_H
#define CLIENT_SEGMENT_H

#include <sys/types.h>

#include <shmview/placement.h>

#include "client/link/call.h"
#include "client/lock/lock.h"
#include "client/segment/known.h"
#include "client/segment/mappings.h"
#include "common/views/view.h"

#pragma GCC visibility push(hidden)

/* data, size, id, mapping and name never change, access only once (freeze.c). known and change_fd
 * change under process->details, and within NOT_FORKED where a fork could copy half of a change. */
struct shmview_segment {
    struct lock lock; /* first, see lock_of(). Without a lock: attachment and process */
    struct shmview_connection *connection;
    void *data;
    uint64_t size;
    uint64_t id;
    struct mapping *mapping; /* of its objects, or NULL */
    bool stays_mapped;       /* when it is detached, for the next attachment */
    bool is_sealed;          /* its backing: only such a segment can be frozen */
    _Atomic int access;
    struct known known;  /* its layouts */
    int change_fd;       /* -1 until shmview_change_fd() */
    dev_t change_device; /* of change_fd, as of a connection's socket */
    ino_t change_inode;
    struct formats formats;     /* pool of its views; changes within NOT_FORKED */
    _Atomic uint32_t n_buffers; /* not yet released; see export.h */
    void (*release)(void *arg); /* of foreign memory; connection is NULL then */
    void *release_arg;
    struct shmview_placed placed; /* what it got when it was created */
    char name[LIMIT_NAME_BYTES + 1];
};

/* Makes the attachment this process's own: a forked child attaches the segment again. Does nothing
 * in the process that attached. Blocks as a request. Returns 0 or an error. */
int segment_step_in(struct shmview_segment *segment);
/* Sets the error text with the reason why there is no lock. Returns -SHMVIEW_ERR_NO_LOCK. */
int fail_no_lock(const struct shmview_segment *segment);

/* --- map.c --------------------------------------------------------------- */

/* Checks that the descriptors are those that the attachment announces. Returns 0 or an error. */
int segment_check_attachment(const struct wire_attachment *a, const struct frame_descriptors *fds);
/* Checks and maps the objects of a segment whose id, size and access are set, or shares a mapping
 * that this process has. flags are those of shmview_attach(). Returns 0, and the caller owes
 * mappings_release(); or an error. Does not close the descriptors. */
int segment_map(struct shmview_segment *segment, const struct wire_attachment *a,
                const struct frame_descriptors *fds, unsigned flags);

/* If nobody can change the data any longer, notes that for all handles of this process. For an
 * attachment of the segment, which is mapped. */
void segment_note_frozen(const struct shmview_segment *segment, const struct wire_attachment *a,
                         const struct frame_descriptors *fds);

/* Maps the data again at the same address, from a descriptor of the same object. Returns 0, or
 * -errno; then the data may no longer be mapped. */
int mapping_replace(struct mapping *mapping, int fd, int protection);

/* --- placement.c ------------------------------------------------------------ */

/* Checks what a creator wants, and enters it into *ret. placement may be NULL. Returns 0 or an
 * error. */
int placement_read(const struct shmview_placement *placement, struct wire_create *ret);
/* Remembers what the segment got. */
void placement_take(struct shmview_segment *segment, const struct shmview_description *told);
/* Maps the data so that its huge pages can be mapped as such: at an address that is a multiple of
 * their size. `bytes` are those of the data, fd is its object, flags are more of mmap(). Returns
 * the address, with what must be unmapped in *ret_bytes; or MAP_FAILED with errno. */
void *placement_map(const struct shmview_placed *placed, int fd, uint64_t bytes, int protection,
                    int flags, size_t *ret_bytes);
/* Maps the data again where placement_map() has mapped it. Returns 0 or -errno; then the data may
 * no longer be mapped. The mapping of a guard page that is not of the object, as after hugetlb
 * pages, does not change. */
int placement_map_at(uint32_t huge_by, void *at, int fd, uint64_t bytes, int protection, int flags);

/* --- change.c ------------------------------------------------------------ */

/* Closes the descriptor of shmview_change_fd(), if there is one and it is still ours. */
void change_close(struct shmview_segment *segment);

#pragma GCC visibility pop

#endif
