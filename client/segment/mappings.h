/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of this process. Handles of the same segment share one, and the last ones that were
 * left stay for the next attachment.
 *
 * Making three mappings and undoing them costs as much as the rest of an attachment. So a mapping
 * that no handle uses stays for a while: at most MAPPINGS_IDLE of them with MAPPINGS_IDLE_BYTES of
 * data in all. It goes at the first attachment or detachment after MAPPINGS_IDLE_NS, or when the
 * process closes a connection. The memory of a segment that was removed in the meantime is free
 * only after that, hence the bounds.
 *
 * A mapping is found by device and inode of its data object and of its control object, and by the
 * access. Nothing else can get these numbers while it is mapped, so they prove that descriptors
 * which the daemon has sent are of these objects. The data alone prove too little: a client may
 * hand the memory of a segment that was removed over for another one, or to another daemon. */
#ifndef CLIENT_MAPPINGS_H
#define CLIENT_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <shmview/layout.h>

#pragma GCC visibility push(hidden)

#define MAPPINGS_IDLE       32
#define MAPPINGS_IDLE_BYTES ((uint64_t)4 << 20)
#define MAPPINGS_IDLE_NS    1000000000

/* The mapped objects of one segment. device to live never change, except access. The rest changes
 * under process->details and within NOT_FORKED. */
struct mapping {
    dev_t device; /* of the data object */
    ino_t inode;
    dev_t control_device; /* of the control object, which only a daemon makes; 0 without a lock */
    ino_t control_inode;
    int access; /* MAPPING_ALONE while it is being frozen */
    uint64_t size;
    void *data;
    size_t data_bytes;               /* mapped, with what follows the data */
    uint32_t huge_by;                /* enum shmview_huge_by of its huge pages; 0: it has none */
    struct shmview_control *control; /* NULL without a lock */
    const struct shmview_liveness *live;
    unsigned n_handles;     /* that use the data */
    _Atomic bool is_frozen; /* by the seals nobody can change the data */
    bool keeps_lock;        /* a handle was closed whose lock a thread may still look at */
    unsigned n_held;        /* descriptors of a sealed segment (descriptors.c) */
    struct {
        int fd;
        dev_t device; /* objects of huge pages have another one */
        ino_t inode;
    } held[3];
    int64_t idle_since;
    LIST_ENTRY(mapping) same; /* in the table */
    TAILQ_ENTRY(mapping) idle;
    struct mapping *next; /* of those that are being freed */
};

/* Returns the mapping of this data object and this control object (NULL: there is none) with this
 * access, or NULL. The caller owes mappings_release(). */
struct mapping *mappings_take(const struct stat *data, const struct stat *control, int access);

/* Adds a new mapping, which the caller uses from now on and owes mappings_release(). */
void mappings_add(struct mapping *mapping);

/* The handle uses the mapping no longer. If stays, it stays as an idle one as far as the bounds
 * allow, when no other handle uses it. If keeps_lock, control and live stay mapped for good. */
void mappings_release(struct mapping *mapping, bool stays, bool keeps_lock);

/* An access that no attachment has, so that no further handle finds the mapping. */
#define MAPPING_ALONE 0

/* Sets the access of a mapping. Returns false if it is MAPPING_ALONE and the mapping has several
 * handles; then nothing has changed. */
bool mappings_set_access(struct mapping *mapping, int access);

/* Sets is_frozen of all mappings of this object. */
void mappings_note_frozen(const struct mapping *mapping);

/* Unmaps and frees all mappings that no handle uses. */
void mappings_drop_idle(void);

/* --- map.c --------------------------------------------------------------- */

/* Unmaps the data, and also control and live unless keeps_lock; in that case the struct stays.
 * Otherwise frees it. */
void mapping_free(struct mapping *mapping);

/* --- descriptors.c ------------------------------------------------------- */

/* Holds copies of the n descriptors of a sealed mapping's objects, as far as the bound allows,
 * unless it has some. */
void mapping_hold(struct mapping *mapping, const int *fds, size_t n);
/* Closes them, when the last handle of the mapping is closed. The caller has process->details. */
void mapping_let_go(struct mapping *mapping);

#pragma GCC visibility pop

#endif
