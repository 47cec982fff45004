/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/control_peek.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/name.h"
#include "common/base/util.h"

/* --- Reading ------------------------------------------------------------- */

/* Returns a descriptor for reading, or -errno. The caller owns it if it is also in *ret_new. */
static int open_control(const struct segment *segment, int *ret_new)
{
    if (!segment->lock)
        return -ENOLCK;
    if (segment->use && segment->use->fds[CONTROL_WRITE] >= 0)
        return segment->use->fds[CONTROL_WRITE];
    struct object object;
    segment_object(segment, CONTROL, &object);
    *ret_new = object_open(&object, O_RDONLY);
    return *ret_new;
}

static int read_at(int fd, void *to, size_t bytes, size_t at)
{
    ssize_t n = pread(fd, to, bytes, (off_t)at);
    if (n < 0)
        return -errno;
    return (size_t)n == bytes ? 0 : -ENODATA;
}

int control_peek(const struct segment *segment, struct control_peek *ret)
{
    CLEANUP_FD int new = -1;
    int fd = open_control(segment, &new);
    ret->n_slots = 0;
    return fd < 0 ? fd : read_at(fd, &ret->control, sizeof ret->control, 0);
}

int control_peek_slots(const struct segment *segment, uint32_t n_slots, struct control_peek *ret)
{
    CLEANUP_FD int new = -1;
    int fd = open_control(segment, &new);
    int r = fd < 0 ? fd : read_at(fd, &ret->control, sizeof ret->control, 0);
    ret->n_slots = 0;
    if (r)
        return r;
    ssize_t n = pread(fd, ret->slots, n_slots * sizeof *ret->slots, (off_t)sizeof ret->control);
    ret->n_slots = n > 0 ? (uint32_t)((size_t)n / sizeof *ret->slots) : 0;
    return 0;
}

int control_peek_slot(const struct attachment *attachment, struct control_peek *ret)
{
    CLEANUP_FD int new = -1;
    uint32_t slot = attachment->slot;
    int fd = open_control(attachment->segment, &new);
    int r = fd < 0 ? fd : read_at(fd, &ret->control, sizeof ret->control, 0);
    ret->n_slots = 0;
    if (r == 0)
        r = read_at(fd, &ret->slots[slot], sizeof *ret->slots,
                    sizeof ret->control + slot * sizeof *ret->slots);
    if (r == 0)
        ret->n_slots = slot + 1;
    return r;
}

/* --- Understanding ------------------------------------------------------- */

/* Converts a time of CLOCK_MONOTONIC, which a client wrote, to microseconds of CLOCK_REALTIME.
 * Returns 0 for a time in the future. */
static int64_t real_us(uint64_t monotonic_ns)
{
    struct timespec t;
    int64_t now = now_ns();
    if (monotonic_ns == 0 || monotonic_ns > (uint64_t)now)
        return 0;
    clock_gettime(CLOCK_REALTIME, &t);
    return ((int64_t)t.tv_sec * 1000000000 + t.tv_nsec - (now - (int64_t)monotonic_ns)) / 1000;
}

void peek_party(const struct control_peek *peek, const struct attachment *attachment,
                struct peek_party *ret)
{
    const struct shmview_control *c = &peek->control;
    uint32_t number = attachment->slot;
    uint32_t id = attachment->generation << SHMVIEW_SLOT_BITS | number;
    *ret = (struct peek_party){0};
    ret->left_inside = (c->inside & SHMVIEW_LOCK_OWNER) == id;
    if ((c->lock & SHMVIEW_LOCK_OWNER) == id) {
        ret->held = SHMVIEW_EXCLUSIVE;
        ret->inside = ret->left_inside;
        if (c->held_version == c->inside) /* else the time belongs to an earlier owner */
            ret->since_us = real_us(c->held_since_ns);
    }
    if (number >= peek->n_slots)
        return;
    const struct shmview_slot *slot = &peek->slots[number];
    if (!ret->held && slot->readers & SHMVIEW_READER_COUNT_MASK &&
        slot->readers >> SHMVIEW_READER_COUNT_BITS == attachment->generation)
        ret->held = SHMVIEW_SHARED;
    if (slot->id != id)
        return; /* the client has not signed its slot: the words are those of an earlier user */
    command_copy(ret->command, slot->command);
    if (slot->waits == SHMVIEW_WAITS_EXCLUSIVE || slot->waits == SHMVIEW_WAITS_SHARED) {
        ret->waits = slot->waits == SHMVIEW_WAITS_SHARED ? SHMVIEW_SHARED : SHMVIEW_EXCLUSIVE;
        if (!ret->held)
            ret->since_us = real_us(slot->since_ns);
    }
}

void process_command(pid_t pid, char ret_command[16])
{
    char path[32], text[16] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    command_copy(ret_command, text);
}
