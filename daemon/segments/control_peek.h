/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the control object of a segment: its lock, its phase and its slots. The daemon uses this
 * only for reports: events, Stats, the log, and the record of a dead owner. It decides nothing by
 * it.
 *
 * Clients write the control object, so its contents are untrusted and may be truncated. Therefore
 * the daemon reads a copy by pread(). It looks only at words that name an attachment which the
 * daemon has made, and replaces characters that cannot be printed. A client can still falsify what
 * it finds there: for example, it can hide that somebody holds the lock. */
#ifndef DAEMON_CONTROL_PEEK_H
#define DAEMON_CONTROL_PEEK_H

#include "daemon/segments/attachment.h"

/* A copy of a control object. It is large, so callers keep it in static memory. */
struct control_peek {
    struct shmview_control control;
    uint32_t
        n_slots; /* slots [0, n_slots) were read; control_peek_slot(): only the last of these */
    struct shmview_slot slots[SHMVIEW_SLOTS_MAX];
};

/* What one attachment does with the lock. */
struct peek_party {
    int64_t held;     /* SHMVIEW_EXCLUSIVE or SHMVIEW_SHARED; 0: nothing */
    int64_t waits;    /* the mode that it waits for; 0: it does not wait */
    int64_t since_us; /* CLOCK_REALTIME; since when it holds or, if not, waits; 0: unknown */
    bool left_inside; /* `inside` names it: the bytes may be half written, even if it holds nothing
                       */
    bool inside;      /* left_inside, and it holds the lock exclusively */
    char command[16]; /* printable; "" if the slot is not signed */
};

/* Reads the header only. Returns 0; -ENOLCK if the segment has no lock; -ENODATA if the object is
 * truncated; or another -errno. */
int control_peek(const struct segment *segment, struct control_peek *ret);

/* Like control_peek(), but also reads up to n_slots slots, fewer if the object is truncated.
 * n_slots must be at most SHMVIEW_SLOTS_MAX. */
int control_peek_slots(const struct segment *segment, uint32_t n_slots, struct control_peek *ret);

/* Like control_peek(), but also reads the slot of the attachment, which must have one. */
int control_peek_slot(const struct attachment *attachment, struct control_peek *ret);

/* Finds out what the attachment does. It must have a slot. *peek is a copy of the control object of
 * its segment; without the slot in it only exclusive holding is known. */
void peek_party(const struct control_peek *peek, const struct attachment *attachment,
                struct peek_party *ret);

/* Reads the name of the program of a process from /proc, made printable; "" if that fails. Only for
 * reports: another process may have the pid by now. */
void process_command(pid_t pid, char ret_command[16]);

#endif
