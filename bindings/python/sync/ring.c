/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a queue: queue.c describes them. */
#include "ring.h"

#include <string.h>

#define FIRST 1u
#define LAST  2u

struct frame {
    uint32_t bytes, flags;
    uint64_t total; /* bytes of the item */
};
#define FRAME ((uint32_t)sizeof(struct frame))

static char *ring_of(struct monitor *m)
{
    return (char *)m->memory + MONITOR_PARTIES + RING_TABLE;
}

uint32_t ring_capacity(struct monitor *m)
{
    uint32_t bytes = m->base.bytes - MONITOR_PARTIES - RING_TABLE;
    return bytes < 1024 ? 0 : UINT32_C(1) << (31 - __builtin_clz(bytes));
}

/* The most bytes of a frame: a quarter of the ring, so that writer and reader work at once. */
static uint32_t most(struct monitor *m)
{
    return ring_capacity(m) / 4 - FRAME;
}

/* The bytes in the ring; never more than it has. */
static uint32_t used(struct monitor *m)
{
    uint32_t bytes = monitor_word(m, HEAD) - monitor_word(m, TAIL), capacity = ring_capacity(m);
    return bytes > capacity ? capacity : bytes;
}

static uint32_t padded(uint32_t n)
{
    return (n + FRAME - 1) / FRAME * FRAME;
}

/* Copy between the ring and other memory; the bytes may continue at the ring's beginning. */
static void copy_in(struct monitor *m, uint32_t at, const void *from, uint32_t n)
{
    uint32_t capacity = ring_capacity(m), place = at % capacity,
             straight = n < capacity - place ? n : capacity - place;
    memcpy(ring_of(m) + place, from, straight);
    memcpy(ring_of(m), (const char *)from + straight, n - straight);
}

static void copy_out(struct monitor *m, uint32_t at, void *to, uint32_t n)
{
    uint32_t capacity = ring_capacity(m), place = at % capacity,
             straight = n < capacity - place ? n : capacity - place;
    memcpy(to, ring_of(m) + place, straight);
    memcpy((char *)to + straight, ring_of(m), n - straight);
}

void ring_note_less(struct monitor *m, int word, uint32_t n)
{
    uint32_t value = monitor_word(m, word);
    monitor_note_word(m, word, value > n ? value - n : 0);
}

uint32_t ring_size(struct monitor *m)
{
    return monitor_word(m, ITEMS) + monitor_word(m, PENDING);
}

/* --- The process between two frames -------------------------------------- */

static uint64_t name_in(struct monitor *m, int word)
{
    uint64_t name;
    uint32_t halves[2] = {monitor_word(m, word), monitor_word(m, word + 1)};
    memcpy(&name, halves, sizeof name);
    return name;
}

static void note_name(struct monitor *m, int word, uint64_t name)
{
    uint32_t halves[2];
    memcpy(halves, &name, sizeof name);
    monitor_note_word(m, word, halves[0]);
    monitor_note_word(m, word + 1, halves[1]);
}

/* Clears WRITER or READER if that process has ended. */
static void forget(struct monitor *m, int word, int bell)
{
    uint64_t name = name_in(m, word);
    if (name && shmview_process_has_ended(name)) {
        note_name(m, word, 0);
        monitor_commit(m);
        monitor_ring(m, bell, 0);
    }
}

void ring_forget_reader(struct monitor *m)
{
    forget(m, READER, ITEM_BELL);
}

/* --- Writing ------------------------------------------------------------- */

/* Copies a frame to HEAD, and notes the new HEAD. */
static void note_frame(struct monitor *m, const char *data, uint32_t n, uint32_t flags,
                       uint64_t total)
{
    struct frame frame = {n, flags, total};
    uint32_t head = monitor_word(m, HEAD);
    copy_in(m, head, &frame, FRAME);
    copy_in(m, head + FRAME, data, n);
    monitor_note_word(m, HEAD, head + FRAME + padded(n));
    if (flags & FIRST)
        monitor_note_word(m, ITEMS, monitor_word(m, ITEMS) + 1);
}

static bool has_space(struct monitor *m, uint32_t n)
{
    return ring_capacity(m) - used(m) >= FRAME + padded(n);
}

bool ring_try(struct monitor *m, const char *data, size_t n)
{
    if (n > most(m) || name_in(m, WRITER) || !has_space(m, (uint32_t)n))
        return false;
    note_frame(m, data, (uint32_t)n, FIRST | LAST, n);
    monitor_commit(m);
    monitor_ring(m, ITEM_BELL, name_in(m, READER) ? 0 : 1);
    return true;
}

/* Notes that an item of this process is not pending any more. */
static void note_in_ring(struct monitor *m)
{
    struct party *own = monitor_own(m);
    if (own && monitor_load(&own->a))
        monitor_note(m, &own->a, monitor_load(&own->a) - 1);
    ring_note_less(m, PENDING, 1);
}

/* Inside: waits until the ring has space for a frame and, if must_be_free, no other process is
 * between two frames. Returns 0, or -1 with an exception and outside. */
static int wait_for_space(struct monitor *m, uint32_t n, bool must_be_free)
{
    while ((must_be_free && name_in(m, WRITER)) || !has_space(m, n)) {
        int how = monitor_wait(m, SPACE_BELL, SHMVIEW_FOREVER);
        if (how < 0)
            return -1;
        if (how == MONITOR_QUIET && must_be_free)
            forget(m, WRITER, SPACE_BELL);
    }
    return 0;
}

/* After an exception between two frames: this process writes no more of the item. */
static void give_up(struct monitor *m, int word)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (monitor_enter(m) == 0) {
        note_name(m, word, 0);
        monitor_commit(m);
        monitor_ring(m, ITEM_BELL, 0);
        monitor_ring(m, SPACE_BELL, 0);
        monitor_leave(m);
    }
    PyErr_Restore(type, value, trace);
}

int ring_write(struct monitor *m, const char *data, size_t n, bool was_pending)
{
    uint32_t part = n < most(m) ? (uint32_t)n : most(m);
    uint64_t me;
    if (monitor_enter(m) || wait_for_space(m, part, true))
        return -1;
    if (shmview_process_name(&me)) {
        monitor_leave(m);
        PyErr_SetString(PyExc_OSError, shmview_error_text());
        return -1;
    }
    for (size_t done = 0;;) {
        uint32_t flags = (done == 0 ? FIRST : 0) | (n - done == part ? LAST : 0);
        note_frame(m, data + done, part, flags, n);
        if (flags != (FIRST | LAST))
            note_name(m, WRITER, flags & LAST ? 0 : me);
        if (flags & FIRST && was_pending)
            note_in_ring(m);
        monitor_commit(m);
        monitor_ring(m, ITEM_BELL, flags == (FIRST | LAST) && !name_in(m, READER) ? 1 : 0);
        if (flags == LAST)
            monitor_ring(m, SPACE_BELL, 0);
        if (flags & LAST)
            break;
        done += part;
        part = n - done < part ? (uint32_t)(n - done) : part;
        if (wait_for_space(m, part, false)) {
            give_up(m, WRITER);
            return -1;
        }
    }
    monitor_leave(m);
    return 0;
}

/* --- Reading ------------------------------------------------------------- */

/* Inside: finds the frame at TAIL. If its numbers cannot be right, empties the ring. Returns
 * whether there is one. */
static bool find_frame(struct monitor *m, struct frame *ret)
{
    uint32_t bytes = used(m);
    if (bytes == 0)
        return false;
    copy_out(m, monitor_word(m, TAIL), ret, FRAME);
    if (bytes >= FRAME && ret->bytes <= bytes - FRAME && padded(ret->bytes) <= bytes - FRAME &&
        ret->total >= ret->bytes && ret->total <= PY_SSIZE_T_MAX / 2)
        return true;
    monitor_note_word(m, TAIL, monitor_word(m, HEAD));
    monitor_note_word(m, ITEMS, 0);
    monitor_commit(m);
    return false;
}

/* Copies the bytes of the frame at TAIL, and notes the new TAIL. */
static void note_read(struct monitor *m, const struct frame *frame, char *to)
{
    uint32_t tail = monitor_word(m, TAIL);
    if (to)
        copy_out(m, tail + FRAME, to, frame->bytes);
    monitor_note_word(m, TAIL, tail + FRAME + padded(frame->bytes));
}

bool ring_has_item(struct monitor *m)
{
    struct frame frame;
    if (name_in(m, READER))
        return false;
    while (find_frame(m, &frame) && !(frame.flags & FIRST)) {
        note_read(m, &frame, NULL); /* the rest of an item whose reader or writer has died */
        monitor_commit(m);
        monitor_ring(m, SPACE_BELL, 0);
    }
    return used(m) > 0;
}

/* Notes that this process has taken an item. Returns whether it counts in TAKEN. */
static bool note_taken(struct monitor *m)
{
    uint32_t early = monitor_word(m, EARLY);
    struct party *own = early == 1 ? monitor_own(m) : NULL;
    if (early > 1)
        monitor_note_word(m, EARLY, early - 1); /* task_done() was called for it before */
    if (early != 1)
        return false;
    monitor_note_word(m, TAKEN, monitor_word(m, TAKEN) + 1);
    if (own)
        monitor_note(m, &own->b, monitor_load(&own->b) + 1);
    return true;
}

/* Inside: drops the item that this process reads, because its writer has died. */
static void drop(struct monitor *m, bool is_taken)
{
    struct party *own = is_taken ? monitor_own(m) : NULL;
    note_name(m, READER, 0);
    if (is_taken)
        ring_note_less(m, TAKEN, 1);
    if (own && monitor_load(&own->b))
        monitor_note(m, &own->b, monitor_load(&own->b) - 1);
    monitor_commit(m);
    monitor_ring(m, ITEM_BELL, 0);
    monitor_ring(m, DONE_BELL, 0);
}

/* Reads the frames after the first, of `got` bytes, into data. Returns 1; 0 if the item is lost,
 * inside; or -1 with an exception and outside. */
static int read_rest(struct monitor *m, char *data, size_t got, size_t total)
{
    struct frame frame;
    while (got < total) {
        if (!find_frame(m, &frame)) {
            if (!name_in(m, WRITER))
                return 0;
            int how = monitor_wait(m, ITEM_BELL, SHMVIEW_FOREVER);
            if (how < 0) {
                give_up(m, READER);
                return -1;
            }
            if (how == MONITOR_QUIET)
                forget(m, WRITER, SPACE_BELL);
            continue;
        }
        if (frame.flags & FIRST || frame.bytes > total - got || frame.bytes == 0)
            return 0;
        note_read(m, &frame, data + got);
        got += frame.bytes;
        if (got == total)
            note_name(m, READER, 0);
        monitor_commit(m);
        monitor_ring(m, SPACE_BELL, 0);
    }
    monitor_ring(m, ITEM_BELL, 1);
    return 1;
}

int ring_read(struct monitor *m, PyObject **ret_item)
{
    struct frame frame;
    uint64_t me;
    if (!ring_has_item(m) || !find_frame(m, &frame))
        return 0;
    PyObject *item = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)frame.total);
    if (!item || shmview_process_name(&me)) {
        monitor_leave(m);
        Py_XDECREF(item);
        return PyErr_Occurred() ? -1 : (PyErr_NoMemory(), -1);
    }
    bool is_whole = frame.bytes == frame.total;
    note_read(m, &frame, PyBytes_AS_STRING(item));
    ring_note_less(m, ITEMS, 1);
    bool is_taken = note_taken(m);
    if (!is_whole)
        note_name(m, READER, me);
    monitor_commit(m);
    monitor_ring(m, ROOM_BELL, 1);
    monitor_ring(m, SPACE_BELL, 0);
    int r = is_whole ? 1 : read_rest(m, PyBytes_AS_STRING(item), frame.bytes, (size_t)frame.total);
    if (r == 0)
        drop(m, is_taken);
    if (r == 1) {
        monitor_leave(m);
        *ret_item = item;
    } else {
        Py_DECREF(item);
    }
    return r;
}
