/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/layout.h - the bytes that daemon and clients share, layout version 1.
 *
 * A segment is up to three objects. The data object holds the user's bytes and
 * nothing of ours. The control object is written by clients, the liveness object
 * only by the daemon. Programs use shmview.h; this header is for tools and other
 * implementations. docs/LAYOUT.md shows the same as a byte map.
 *
 * All words are native-endian and naturally aligned; words that two processes
 * may touch at once are accessed as C11 atomics of the same size. Nothing found
 * in an object is trusted: copy a field once, check the copy, use the copy. */
#ifndef SHMVIEW_LAYOUT_H
#define SHMVIEW_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define SHMVIEW_CONTROL_MAGIC  0x63764d53u /* "SMvc" */
#define SHMVIEW_LIVENESS_MAGIC 0x6c764d53u /* "SMvl" */
#define SHMVIEW_LAYOUT_VERSION 1u

#define SHMVIEW_SLOTS_MAX   1000u
#define SHMVIEW_LAYOUTS_MAX 64u

/* The lock word.  W:1 R:1 generation:20 slot:10
 *
 *   free (low 30 bits 0) -> held by an id -> free
 *   held by an id that is dead -> held by another id
 *
 * An id is a slot and the generation that the daemon gave its user. W and R say
 * that writers, readers may be parked. */
#define SHMVIEW_LOCK_WRITERS      0x80000000u
#define SHMVIEW_LOCK_READERS      0x40000000u
#define SHMVIEW_LOCK_OWNER        0x3fffffffu
#define SHMVIEW_INSIDE_VERSION    0x40000000u /* one, in the version part of inside */
#define SHMVIEW_SLOT_BITS         10u
#define SHMVIEW_SLOT_MASK         0x3ffu
#define SHMVIEW_GENERATION_MASK   0xfffffu
#define SHMVIEW_READER_COUNT_BITS 12u
#define SHMVIEW_READER_COUNT_MASK 0xfffu

/* What both objects begin with. Written by the daemon before anybody else can
 * open the object, never changed. Unknown magic, version or feature: refuse. */
struct shmview_object_header {
    uint32_t magic;
    uint32_t version;
    uint32_t header_bytes; /* size of the whole header of this object */
    uint32_t features;     /* 0 in version 1 */
    uint64_t segment_id;
    uint64_t reserved;
};

/* A client's place in the lock of one segment.
 *
 * readers is written by the slot's user (count and its own generation), and set
 * to 0 by an owner that finds its user dead. The rest is written by the user and
 * read by whoever wants to name it: id, pid and command when it attaches, waits
 * and since when it begins and ends to wait. */
struct shmview_slot {
    uint32_t readers;  /* generation:20 count:12 */
    uint32_t id;       /* generation:20 slot:10 of the user that wrote the rest */
    uint32_t pid;      /* as its own pid namespace has it */
    uint32_t waits;    /* what one of its threads waits for: SHMVIEW_WAITS_* */
    char command[16];  /* its program, NUL-terminated */
    uint64_t since_ns; /* CLOCK_MONOTONIC; since when it waits */
    uint8_t reserved[88];
};

#define SHMVIEW_WAITS_NOT       0u
#define SHMVIEW_WAITS_EXCLUSIVE 1u
#define SHMVIEW_WAITS_SHARED    2u

/* The control object: this header, then the slots.
 *
 * What the owner touches shares a line with the word:
 *   lock          CAS by whoever takes or gives back the lock
 *   inside        low 30 bits, not 0 while an owner is inside; found not 0 by the
 *                 next owner when the last one died inside, or said "not repaired".
 *                 The value is the id of that owner, for people: only "not 0" is
 *                 ever decided on. The high 34 bits are the version, advanced by
 *                 the owner on the way out
 *   readers_used  set to 1, for good, before anybody takes the lock shared for the
 *                 first time: until then an owner need not look at the slots
 *   held_...      the first who had to wait for the owner notes the version and
 *                 the time; for people
 * The words that others park on have lines of their own:
 *   reader_gate   event counter: bumped and woken when the word is given back
 *                 while readers wait
 *   drain         event counter: bumped and woken when a slot's last reader leaves
 *                 while the word is owned
 *   phase         written by the owner, in one store; woken after
 *   change        counts the notifications
 *   change_waits  bit 0: somebody may be parked here; the rest counts the times that
 *                 they were woken
 * What a switch finds a layout by, so that it need not ask the daemon:
 *   layouts       by index, the hashes of their names (FNV-1a, 64 bits; 1 for 0); 0 = there is no
 *                 such layout. Written by the daemon before anybody else knows of the layout. Two
 *                 of one segment never have the same
 * The file is as long as the slots in use need; the daemon lets it grow before it
 * gives out a slot. */
struct shmview_control {
    struct shmview_object_header header;
    uint32_t slots_offset; /* of slot 0, in bytes */
    uint32_t slot_bytes;
    uint8_t pad0[88];
    uint32_t lock;
    uint32_t readers_used;
    uint64_t inside;
    uint64_t held_version;
    uint64_t held_since_ns; /* CLOCK_MONOTONIC */
    uint8_t pad1[96];
    uint32_t reader_gate;
    uint8_t pad2[124];
    uint32_t drain;
    uint8_t pad3[124];
    uint64_t phase; /* low half: generation, 0 = none yet; high half: layout index + 1 */
    uint8_t pad4[120];
    uint32_t change;
    uint32_t change_waits;
    uint8_t pad5[376];
    uint64_t layouts[SHMVIEW_LAYOUTS_MAX];
};

/* No id has it: whoever compares a generation with that of an id need not know. */
#define SHMVIEW_GENERATION_DEAD 0x80000000u

/* The last user that ended inside the lock, for the next owner. One is enough: until the next owner
 * has gone in, nobody else can end inside. */
struct shmview_liveness_death {
    uint32_t id;
    uint32_t pid;     /* as the daemon's pid namespace has it */
    uint64_t when_ns; /* CLOCK_MONOTONIC */
    char command[16]; /* as the slot had it, whose next user overwrites it */
};

/* The liveness object: one page, read-only for clients.
 *
 *   generation[s]   that of slot s's user; with SHMVIEW_GENERATION_DEAD, dead or free: the
 *                   rest is that of its last user; 0 = never used
 *   deaths          event counter, bumped and woken after a user was marked as dead
 *   high            slots [0, high) have ever been used
 *   watches         how many attachments watch for changes in an event loop
 *   owner_deaths    how many died while they held the lock exclusively; for people */
struct shmview_liveness {
    struct shmview_object_header header;
    uint32_t deaths;
    uint32_t high;
    struct shmview_liveness_death owner;
    uint8_t pad[16];
    uint32_t watches;
    uint32_t owner_deaths;
    uint32_t generation[SHMVIEW_SLOTS_MAX];
};

#ifdef __cplusplus
#define SHMVIEW_LAYOUT_ASSERT static_assert
#else
#define SHMVIEW_LAYOUT_ASSERT _Static_assert
#endif
#define SHMVIEW_AT_OFFSET(type, member, offset)                                                    \
    SHMVIEW_LAYOUT_ASSERT(offsetof(struct type, member) == (offset), #type "." #member)

SHMVIEW_LAYOUT_ASSERT(sizeof(struct shmview_object_header) == 32, "header");
SHMVIEW_AT_OFFSET(shmview_object_header, version, 4);
SHMVIEW_AT_OFFSET(shmview_object_header, header_bytes, 8);
SHMVIEW_AT_OFFSET(shmview_object_header, features, 12);
SHMVIEW_AT_OFFSET(shmview_object_header, segment_id, 16);
SHMVIEW_LAYOUT_ASSERT(sizeof(struct shmview_slot) == 128, "two cache lines: prefetch pairs them");
SHMVIEW_AT_OFFSET(shmview_slot, id, 4);
SHMVIEW_AT_OFFSET(shmview_slot, pid, 8);
SHMVIEW_AT_OFFSET(shmview_slot, waits, 12);
SHMVIEW_AT_OFFSET(shmview_slot, command, 16);
SHMVIEW_AT_OFFSET(shmview_slot, since_ns, 32);
SHMVIEW_LAYOUT_ASSERT(sizeof(struct shmview_control) == 1536, "control header");
SHMVIEW_AT_OFFSET(shmview_control, slots_offset, 32);
SHMVIEW_AT_OFFSET(shmview_control, slot_bytes, 36);
SHMVIEW_AT_OFFSET(shmview_control, lock, 128);
SHMVIEW_AT_OFFSET(shmview_control, readers_used, 132);
SHMVIEW_AT_OFFSET(shmview_control, inside, 136);
SHMVIEW_AT_OFFSET(shmview_control, held_version, 144);
SHMVIEW_AT_OFFSET(shmview_control, held_since_ns, 152);
SHMVIEW_AT_OFFSET(shmview_control, reader_gate, 256);
SHMVIEW_AT_OFFSET(shmview_control, drain, 384);
SHMVIEW_AT_OFFSET(shmview_control, phase, 512);
SHMVIEW_AT_OFFSET(shmview_control, change, 640);
SHMVIEW_AT_OFFSET(shmview_control, change_waits, 644);
SHMVIEW_AT_OFFSET(shmview_control, layouts, 1024);
SHMVIEW_LAYOUT_ASSERT(sizeof(struct shmview_liveness_death) == 32, "death");
SHMVIEW_LAYOUT_ASSERT(sizeof(struct shmview_liveness) == 4096, "one page");
SHMVIEW_AT_OFFSET(shmview_liveness, deaths, 32);
SHMVIEW_AT_OFFSET(shmview_liveness, high, 36);
SHMVIEW_AT_OFFSET(shmview_liveness_death, when_ns, 8);
SHMVIEW_AT_OFFSET(shmview_liveness_death, command, 16);
SHMVIEW_AT_OFFSET(shmview_liveness, owner, 40);
SHMVIEW_AT_OFFSET(shmview_liveness, watches, 88);
SHMVIEW_AT_OFFSET(shmview_liveness, owner_deaths, 92);
SHMVIEW_AT_OFFSET(shmview_liveness, generation, 96);

#endif
