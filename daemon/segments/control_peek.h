/* SPDX-License-Identifier: Apache-2.0 */
/* What a segment's control object says of its lock and phase. Clients write it, so it is read
 * by system calls, never mapped, and all of it is hearsay: a segment, a slot or a holder that
 * the daemon does not know by itself is not believed. */
#ifndef DAEMON_CONTROL_PEEK_H
#define DAEMON_CONTROL_PEEK_H

#include "daemon/segments/attachment.h"

struct control_peek {
    struct shmview_control control;
    uint32_t n_slots; /* that could be read */
    struct shmview_slot slots[SHMVIEW_SLOTS_MAX];
};

/* What one attachment does, by its slot. */
struct peek_party {
    int64_t held;     /* SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED; 0: nothing */
    int64_t waits;    /* the same: what it waits for */
    int64_t since_us; /* CLOCK_REALTIME, of what it holds or else waits for; 0: unknown */
    bool left_inside; /* the bytes may be half written because of it, whether it holds the lock */
    bool inside;      /* holds exclusively, and the bytes may be half written */
    char command[16]; /* "" if it has not said; printable */
};

/* Reads the header and no more. Returns 0; -ENODATA if it has been truncated; or -errno. */
int control_peek(const struct segment *segment, struct control_peek *ret);

/* The same, and the first n_slots slots, as far as they are there. */
int control_peek_slots(const struct segment *segment, uint32_t n_slots, struct control_peek *ret);

/* The header, and the slot of that attachment alone. It has one. */
int control_peek_slot(const struct attachment *attachment, struct control_peek *ret);

/* What the attachment, which has a slot that was looked at, does. */
void peek_party(const struct control_peek *peek, const struct attachment *attachment,
                struct peek_party *ret);

/* The program of a process, as the kernel has it; "" where it cannot be told. */
void process_command(pid_t pid, char ret_command[16]);

#endif
