/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - the frames of a queue, see queue.c, and its words. */
#ifndef SYNC_RING_H
#define SYNC_RING_H

#include "monitor.h"

/* The words of a queue. */
enum {
    HEAD, /* where the next frame is written, modulo 2^32 */
    TAIL, /* where the next frame is read */
    ITEMS,
    PENDING,
    TAKEN,
    MAXSIZE,    /* of ITEMS + PENDING; 0: none */
    EARLY,      /* 1 + items that are not got yet and done already; 0: TAKEN is not counted */
    WRITER,     /* shmview_process_name() of the process between two frames of an item; two words */
    READER = 9, /* likewise */
    DIED = 11,  /* process id of one whose counts were taken back since the last join(); 0: none */
};

/* The bells. */
enum {
    ITEM_BELL,  /* an item, or a further frame */
    ROOM_BELL,  /* fewer than MAXSIZE items */
    SPACE_BELL, /* fewer bytes in the ring, or no WRITER */
    DONE_BELL,  /* fewer items that are not done */
};

/* The bytes of the table; the ring follows it. */
#define RING_TABLE 2048

/* The bytes of the ring: the largest power of 2 for which there is memory; 0: too little. */
uint32_t ring_capacity(struct monitor *m);

/* Inside: notes that a word gets smaller by n, but not below 0. */
void ring_note_less(struct monitor *m, int word, uint32_t n);

/* Inside: the items that were put and not got. */
uint32_t ring_size(struct monitor *m);

/* Inside: writes an item of one frame if there is room for it now. Returns whether it did. */
bool ring_try(struct monitor *m, const char *data, size_t n);
/* Outside: writes an item, waits as long as necessary. Returns 0, or -1 with an exception. */
int ring_write(struct monitor *m, const char *data, size_t n, bool was_pending);

/* Inside: reads an item; of several frames, waits for the others. Returns 1 with *ret_item,
 * outside; 0 if there is none, inside; or -1 with an exception, outside. */
int ring_read(struct monitor *m, PyObject **ret_item);
/* Inside: whether ring_read() finds an item. */
bool ring_has_item(struct monitor *m);
/* Inside: lets others read after a reader that has ended. */
void ring_forget_reader(struct monitor *m);

#endif
