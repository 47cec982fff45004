/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/stream_layout.h - the bytes of a stream, layout version 1.
 *
 * Programs need stream.h, which hides all of this. It is for tools, and for implementations in
 * other languages. docs/LAYOUT.md has the steps, and tests/model/stream.pml checks them.
 *
 * A stream is a segment whose data object begins with the header below. The segment has a layout
 * called "frame", which declares the views of a frame in slot 0. In slot i each view begins
 * i * frame_bytes later.
 *
 * What writers store lies in the data object, and what readers store in the control object, because
 * a reader gets the data object read-only. A reader with SHMVIEW_PEEK has the data object alone: it
 * can follow the frames, and disturb nobody.
 *
 *     data      header | stages: words and a ring of each | slots: words of each | frames
 *     control   stream_readers, stream_writers: gates | of each client: stream_* in its slot
 *
 * "Slot" has two meanings: a slot of the stream holds a frame; a client has a slot of the lock. The
 * latter is always called a client's slot here.
 *
 * All words are native-endian and naturally aligned. Words that two processes may touch at once are
 * accessed as C11 atomics of the same size. Nothing that is found here is trusted: a number of a
 * slot, a length or a count is copied, the copy is checked, and the copy is used. */
#ifndef SHMVIEW_STREAM_LAYOUT_H
#define SHMVIEW_STREAM_LAYOUT_H

#include <shmview/layout.h>

/* The first word of the data object, and the version of all that follows. */
#define SHMVIEW_STREAM_MAGIC          0x73764d53u /* "SMvs" */
#define SHMVIEW_STREAM_LAYOUT_VERSION 1u

/* Bytes that the program of a writer adds to a frame, and the most views of one. */
#define SHMVIEW_STREAM_USER_BYTES 64u
#define SHMVIEW_STREAM_VIEWS_MAX  64u

/* An entry of a ring.  sequence:54 slot:10
 *
 * 54 bits do not wrap: at ten million frames a second they last for 57 years. An entry that was
 * never used is 0, because sequence numbers begin with 1. */
#define SHMVIEW_STREAM_SLOT_BITS 10u
#define SHMVIEW_STREAM_SLOT_MASK 0x3ffu

/* In a number that a slot shows: a reader passes the frame on, and may have died at that. */
#define SHMVIEW_STREAM_PASSING (UINT64_C(1) << 63)

/* A gate: where clients wait until something is published, or released.
 *
 * A client that will park sets PARKED by a CAS, looks once more, and parks on the word. One that
 * has an event loop sets WATCHED instead. The client that publishes or releases looks at the word
 * after it has done so. If a bit is set, it changes the word by a CAS: it clears both bits and adds
 * OPENED, so that a client which is about to park does not. Then it wakes all that are parked, and
 * rings for the event loops. So nobody makes a system call unless somebody waits. */
#define SHMVIEW_GATE_PARKED  1u
#define SHMVIEW_GATE_WATCHED 2u
#define SHMVIEW_GATE_OPENED  4u

/* A writer that has died, for people. The next writer stores it when it takes over. */
struct shmview_stream_mark {
    uint32_t id; /* in the lock: slot and generation of the client */
    uint32_t pid;
    uint64_t when_ns; /* CLOCK_MONOTONIC */
    char command[16];
};

/* The beginning of the data object.
 *
 *   magic ... frame_bytes
 *            the creator stores them before any other process reads them, and magic last. A client
 *            that finds 0 in magic waits for a moment, because the creator may be about to store it
 *   writer   of a stream with one writer: the id of that client; 0: none. A writer CASes it from 0,
 *            or from the id of a dead client, to its own, and back to 0 when it closes the stream
 *   deaths   how many writers have died at work, stored by the writer that took over from them, or
 *            that took the last of their slots, after it has stored the mark. If two writers take
 *            the last two slots at once, both may count that death */
struct shmview_stream_header {
    uint32_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint32_t mode;    /* SHMVIEW_LOSSLESS, SHMVIEW_LATEST */
    uint32_t n_slots; /* 2 to SHMVIEW_STREAM_SLOTS_MAX */
    uint32_t n_cells; /* entries of a ring: the power of two that is n_slots or the next above it */
    uint32_t n_stages; /* 1 to SHMVIEW_STREAM_STAGES_MAX */
    uint32_t n_views;  /* of the layout "frame" */
    uint32_t history;  /* frames that a reader gets that joins late; less than n_slots */
    uint32_t flags;    /* SHMVIEW_MANY_WRITERS */
    uint64_t stages_offset;
    uint64_t stage_bytes; /* from one stage to the next */
    uint64_t slots_offset;
    uint64_t slot_bytes; /* from one slot's words to those of the next */
    uint64_t frames_offset;
    uint64_t frame_bytes; /* from one frame to the next */
    uint8_t pad0[40];
    uint32_t writer;
    uint32_t deaths;
    struct shmview_stream_mark mark;
    uint8_t pad1[88];
};

/* One stage: a sequence of published frames. The ring follows: n_cells entries of 64 bits. The
 * frame with sequence number q is in cell q % n_cells. The CAS that stores its entry publishes it.
 *
 *   published  a number that is published, perhaps not the last: the writer stores it after the
 *              entry, and may die in between. Only grows
 *   tail       in lossless mode: a reader that joins begins here or later. A writer moves it past a
 *              frame before it looks whether any reader still waits for that frame. Only grows
 *   ended      the number after the last frame, once a writer has ended the stage; 0: not ended. It
 *              means nothing once a later frame is published. It has a line of its own, because
 *              readers that poll look at it while a writer stores published */
struct shmview_stream_stage {
    uint64_t published;
    uint64_t tail;
    uint8_t pad0[48];
    uint64_t ended;
    uint8_t pad1[56];
};

/* The words of one slot. The lengths follow: of each view of the frame the elements in its leading
 * dimension, as 64 bits; 1 for a view without dimensions.
 *
 *   owner       the id of the client that fills the slot; 0: none. A writer CASes it from 0, or
 *               from the id of a dead client, to its own, and stores 0 after the ring has the frame
 *   user_bytes, time_ns, user, lengths
 *               the owner, before it publishes
 *   shows       of each stage the number of the frame that is in the slot; 0: none. The owner
 *               stores 0 before it looks whether a reader holds the slot, and the number before it
 *               publishes. A reader that passes the frame on CASes that of the other stage from 0,
 *               and sets PASSING in it until the ring has the entry. A number counts only if the
 *               ring has the entry: its writer may have died before. PASSING is cleared before
 *               that entry is overwritten */
struct shmview_stream_slot {
    uint32_t owner;
    uint32_t user_bytes; /* at most SHMVIEW_STREAM_USER_BYTES */
    int64_t time_ns;     /* CLOCK_MONOTONIC */
    uint64_t shows[SHMVIEW_STREAM_STAGES_MAX];
    uint8_t user[SHMVIEW_STREAM_USER_BYTES];
};

/* In the slot of a client (struct shmview_slot), written by that client alone:
 *
 *   stream_user    its id, once it has joined as a reader. If the id is not that of the living user
 *                  of the slot, the other words mean nothing. A client that joins stores 0 here,
 *                  then the other words, and its id last. The daemon stores 0 when the generations
 *                  of the client's slot wrap, because ids repeat from then on
 *   stream_stage   the stage from which it takes
 *   stream_next    the number that it will take next; UINT64_MAX once it has left. In lossless mode
 *                  a writer reuses no slot with a frame from here on
 *   stream_holds   a bit of each slot whose frame it holds. It sets the bit before it looks whether
 *                  the slot still shows the frame
 *   stream_missed  how many frames it has missed, for people */

SHMVIEW_LAYOUT_ASSERT(sizeof(struct shmview_stream_mark) == 32, "mark");
SHMVIEW_AT_OFFSET(shmview_stream_mark, pid, 4);
SHMVIEW_AT_OFFSET(shmview_stream_mark, when_ns, 8);
SHMVIEW_AT_OFFSET(shmview_stream_mark, command, 16);
SHMVIEW_LAYOUT_ASSERT(sizeof(struct shmview_stream_header) == 256, "stream header");
SHMVIEW_AT_OFFSET(shmview_stream_header, version, 4);
SHMVIEW_AT_OFFSET(shmview_stream_header, header_bytes, 8);
SHMVIEW_AT_OFFSET(shmview_stream_header, mode, 12);
SHMVIEW_AT_OFFSET(shmview_stream_header, n_slots, 16);
SHMVIEW_AT_OFFSET(shmview_stream_header, n_cells, 20);
SHMVIEW_AT_OFFSET(shmview_stream_header, n_stages, 24);
SHMVIEW_AT_OFFSET(shmview_stream_header, n_views, 28);
SHMVIEW_AT_OFFSET(shmview_stream_header, history, 32);
SHMVIEW_AT_OFFSET(shmview_stream_header, flags, 36);
SHMVIEW_AT_OFFSET(shmview_stream_header, stages_offset, 40);
SHMVIEW_AT_OFFSET(shmview_stream_header, stage_bytes, 48);
SHMVIEW_AT_OFFSET(shmview_stream_header, slots_offset, 56);
SHMVIEW_AT_OFFSET(shmview_stream_header, slot_bytes, 64);
SHMVIEW_AT_OFFSET(shmview_stream_header, frames_offset, 72);
SHMVIEW_AT_OFFSET(shmview_stream_header, frame_bytes, 80);
SHMVIEW_AT_OFFSET(shmview_stream_header, writer, 128);
SHMVIEW_AT_OFFSET(shmview_stream_header, deaths, 132);
SHMVIEW_AT_OFFSET(shmview_stream_header, mark, 136);
SHMVIEW_LAYOUT_ASSERT(sizeof(struct shmview_stream_stage) == 128, "stage");
SHMVIEW_AT_OFFSET(shmview_stream_stage, tail, 8);
SHMVIEW_AT_OFFSET(shmview_stream_stage, ended, 64);
SHMVIEW_LAYOUT_ASSERT(sizeof(struct shmview_stream_slot) == 128, "slot of a stream");
SHMVIEW_AT_OFFSET(shmview_stream_slot, user_bytes, 4);
SHMVIEW_AT_OFFSET(shmview_stream_slot, time_ns, 8);
SHMVIEW_AT_OFFSET(shmview_stream_slot, shows, 16);
SHMVIEW_AT_OFFSET(shmview_stream_slot, user, 64);

#endif
