/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/layout.h - the bytes that daemon and clients share, layout version 3.
 *
 * Programs do not need this header: shmview.h and view.h hide all of it. It is
 * for tools, and for implementations of the client side in other languages.
 * docs/LAYOUT.md has the same as a byte map, with the steps by which clients take
 * and release the lock.
 *
 * A segment consists of up to three objects, files in /dev/shm:
 *
 *     data       the user's bytes, from byte 0 on, and nothing else
 *     control    the lock, the phase, the counter of changes and the slots: written by clients
 *     liveness   which slots belong to living clients: written by the daemon, and by nobody else
 *
 * There are three objects because each has other rights. A client that only reads
 * gets a read-only descriptor of the data, but must write its slot to take the
 * lock. A client must not be able to declare another one dead or alive. A client
 * with SHMVIEW_PEEK gets the data only, so that it can disturb nobody.
 *
 * All words are native-endian and naturally aligned. Words that two processes may
 * touch at once are accessed as C11 atomics of the same size. Nothing that is
 * found in an object is trusted, because each client that may lock can write into
 * the control object, and each writer into the data: copy a field once, check the
 * copy, and use the copy. The objects hold no pointers, so a wrong value cannot
 * make a client write to another address. */
#ifndef SHMVIEW_LAYOUT_H
#define SHMVIEW_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

/* The first word of an object, and the version of all that follows. A client
 * refuses an object with other values, instead of guessing what its bytes
 * mean. */
#define SHMVIEW_CONTROL_MAGIC  0x63764d53u /* "SMvc" */
#define SHMVIEW_LIVENESS_MAGIC 0x6c764d53u /* "SMvl" */
#define SHMVIEW_LAYOUT_VERSION 3u

/* The most attachments with a slot, and the most layouts, of one segment. The
 * slots are as many as fit into the page of the liveness object. */
#define SHMVIEW_SLOTS_MAX   1000u
#define SHMVIEW_LAYOUTS_MAX 64u
/* The most slots and stages of a stream (stream_layout.h), whose readers have words here. */
#define SHMVIEW_STREAM_SLOTS_MAX  512u
#define SHMVIEW_STREAM_STAGES_MAX 6u

/* The lock word.  W:1 R:1 generation:20 slot:10
 *
 *   free (low 30 bits 0) -> held by an id -> free
 *   held by an id that is dead -> held by another id
 *
 * An id consists of a slot and of the generation that the daemon gave to its
 * user. The generation makes the id of a slot's next user another one, so that
 * the lock of a dead client is not mistaken for that of its successor. W means
 * that writers may be parked on the word, R that readers may be parked on
 * reader_gate. The client that releases the lock must then make a system call to
 * wake them. */
#define SHMVIEW_LOCK_WRITERS 0x80000000u
#define SHMVIEW_LOCK_READERS 0x40000000u
#define SHMVIEW_LOCK_OWNER   0x3fffffffu
/* One step of the version in the high 34 bits of inside. */
#define SHMVIEW_INSIDE_VERSION 0x40000000u
/* Parts of an id. */
#define SHMVIEW_SLOT_BITS       10u
#define SHMVIEW_SLOT_MASK       0x3ffu
#define SHMVIEW_GENERATION_MASK 0xfffffu
/* Parts of the word readers in a slot: how many threads of its user share the
 * lock. */
#define SHMVIEW_READER_COUNT_BITS 12u
#define SHMVIEW_READER_COUNT_MASK 0xfffu

/* The word reader_groups.  takeovers:17 groups:47
 *
 * Slot s belongs to group s % 47. Up to 47 clients are alone in theirs. The number is prime, so
 * that the slots of one group do not share the same sets of a processor's cache. */
#define SHMVIEW_READER_GROUPS      47u
#define SHMVIEW_READER_GROUPS_MASK 0x7fffffffffffu
#define SHMVIEW_READER_TAKEOVER    0x800000000000u

/* The beginning of the control and of the liveness object. The daemon writes it
 * before another process can open the object, and does not change it. A client
 * refuses an unknown magic, version or feature. */
struct shmview_object_header {
    uint32_t magic;
    uint32_t version;
    uint32_t header_bytes; /* size of the whole header of this object */
    uint32_t features;     /* 0 in version 3 */
    uint64_t segment_id;
    uint64_t reserved;
};

/* A client's place in the lock of one segment.
 *
 * The user of the slot writes all of it; others only read it, with two
 * exceptions. An owner that finds the user dead sets readers to 0, because a dead
 * reader cannot. The daemon sets it and stream_user to 0 when the generations of the slot wrap,
 * because ids repeat from then on. The user signs the slot before it uses the
 * lock for the first time: it stores 0 in id, writes pid, command and waits,
 * stores its generation with count 0 in readers, and stores its id last. A reader
 * of the slot that finds the id it expects finds that user's words. If another
 * client has overwritten readers, the user stores its generation there again.
 *
 * Only readers decides anything about the lock. The other words before stream_next name the client
 * to people. The words stream_* belong to the streams of stream_layout.h, which describes them;
 * they are of no use in a segment that is no stream. */
struct shmview_slot {
    uint32_t readers;  /* generation:20 count:12 */
    uint32_t id;       /* generation:20 slot:10 of the user that wrote the other words */
    uint32_t pid;      /* in the user's own pid namespace */
    uint32_t waits;    /* what one of its threads waits for: SHMVIEW_WAITS_* */
    char command[16];  /* the name of its program, NUL-terminated */
    uint64_t since_ns; /* CLOCK_MONOTONIC; since when it waits */
    uint64_t stream_next;
    uint32_t stream_user;
    uint32_t stream_stage;
    uint64_t stream_missed;
    uint64_t stream_holds[SHMVIEW_STREAM_SLOTS_MAX / 64];
};

/* Values of waits. */
#define SHMVIEW_WAITS_NOT       0u
#define SHMVIEW_WAITS_EXCLUSIVE 1u
#define SHMVIEW_WAITS_SHARED    2u

/* The control object: this header, then the slots.
 *
 * The words that an owner uses at each take and release share a line with the lock word:
 *   lock           changed by CAS only, by each client that takes, awaits or releases the lock
 *   inside         the low 30 bits are the id of the owner while it is inside, else 0. If the next
 *                  owner finds them set, the last one died inside or left the bytes not repaired.
 *                  Clients only test for 0, because the client that repairs may die too; the id is
 *                  for people. The high 34 bits are a version, which the owner advances when it
 *                  leaves: optimistic readers compare it
 *   reader_groups  groups: an owner need not look at the slots of a group whose bit is 0. A reader
 *                  that has counted itself sets the bit, if it is 0, before it reads the lock word.
 *                  An owner may clear bits after it has found no reader; it then looks again.
 *                  takeovers: how many owners took the lock from a dead client; each of them sets
 *                  all bits
 *   reporter       the time until which one waiter alone reports to the daemon that it waits, in ms
 *                  of CLOCK_MONOTONIC. It decides nothing else
 *   held_version, held_since_ns
 *                  written by the first client that waits for an owner: inside as it was then, and
 *                  the time. For people
 *
 * Each word on which clients park has a line of its own, so that they do not slow
 * down the owner. Lines are 128 bytes apart, because processors fetch pairs of
 * 64:
 *   reader_gate    event counter: an owner that releases a word with R adds 1 and wakes all
 *   drain          event counter: the last reader that leaves a slot while the word is owned adds 1
 *                  and wakes the owner, which waits until no reader is left
 *   phase          written by the exclusive owner, in one store of 64 bits, so that a client that
 *                  dies in a switch leaves the old phase or the new one
 *   change         counts the notifications
 *   change_waits   bit 0: a client may be parked here. The other bits count the times that the
 *                  parked clients were woken
 *   stream_readers, stream_writers
 *                  gates of a stream: where readers of each stage wait for a frame, and writers for
 * a slot; see stream_layout.h
 *
 * layouts has, by index, a hash of the name of each layout (FNV-1a with 64 bits;
 * 1 instead of 0), and 0 if there is no such layout. A client that switches finds
 * the layout there, because it holds the lock and must not wait for the daemon.
 * The daemon writes an entry before it replies to the client that declares the
 * layout. It refuses a layout whose hash another layout of the segment has.
 *
 * The file has room for the slots in use. The daemon lets it grow before it gives
 * out a slot. */
struct shmview_control {
    struct shmview_object_header header;
    uint32_t slots_offset; /* of slot 0, in bytes */
    uint32_t slot_bytes;   /* from one slot to the next */
    uint8_t pad0[88];
    uint32_t lock;
    uint32_t reporter;
    uint64_t inside;
    uint64_t held_version;
    uint64_t held_since_ns; /* CLOCK_MONOTONIC */
    uint64_t reader_groups;
    uint8_t pad1[88];
    uint32_t reader_gate;
    uint8_t pad2[124];
    uint32_t drain;
    uint8_t pad3[124];
    uint64_t phase; /* low half: generation, 0 = none yet; high half: layout index + 1 */
    uint8_t pad4[120];
    uint32_t change;
    uint32_t change_waits;
    uint8_t pad5[120];
    uint32_t stream_readers[SHMVIEW_STREAM_STAGES_MAX];
    uint8_t pad6[104];
    uint32_t stream_writers;
    uint8_t pad7[124];
    uint64_t layouts[SHMVIEW_LAYOUTS_MAX];
};

/* Marks the generation of a slot whose user is dead. The bit lies outside the 20
 * bits of an id's generation, so a comparison of a slot's word with an id rejects
 * dead slots without a separate test. */
#define SHMVIEW_GENERATION_DEAD 0x80000000u

/* Marks the generation of a slot whose user may live, but has lost its attachment: a
 * daemon has removed the segment, and no daemon will announce the death of that user.
 * The user must not go inside again. For all others it is alive: nobody takes the
 * lock from it, and nobody ignores its readers. So the marks of several slots need not
 * appear in one step. */
#define SHMVIEW_GENERATION_ENDED 0x40000000u

/* The last client that ended inside the lock, so that the next owner can learn
 * which one it was. One is enough, because nobody else can end inside before the
 * next owner has gone in. */
struct shmview_liveness_death {
    uint32_t id;
    uint32_t pid;     /* in the daemon's pid namespace */
    uint64_t when_ns; /* CLOCK_MONOTONIC */
    char command[16]; /* a copy of the slot's, which the next user of the slot overwrites */
};

/* The liveness object: one page, which clients map read-only.
 *
 *   generation[s]   the generation of slot s's user. With SHMVIEW_GENERATION_DEAD the slot is dead
 *                   or free, and the rest is the generation of its last user. With
 *                   SHMVIEW_GENERATION_ENDED its user has lost the attachment. 0: never used
 *   deaths          event counter: the daemon adds 1 and wakes all after it has marked a user as
 *                   dead, or all users as ended. Clients that wait for a lock also wait for this
 *                   word; then they find that their attachment has ended, or that the owner in the
 *                   lock word is dead, and take the word from it
 *   high            slots [0, high) have been used at least once, and have memory
 *   owner           the last client that ended inside the lock
 *   watches         how many attachments watch for changes in an event loop. A client that notifies
 *                   rings the daemon only if this is not 0
 *   owner_deaths    how many clients died while they held the lock exclusively, for people */
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

/* The layout is part of the ABI: a compiler that would place a member elsewhere
 * fails here. */
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
SHMVIEW_AT_OFFSET(shmview_slot, stream_next, 40);
SHMVIEW_AT_OFFSET(shmview_slot, stream_user, 48);
SHMVIEW_AT_OFFSET(shmview_slot, stream_stage, 52);
SHMVIEW_AT_OFFSET(shmview_slot, stream_missed, 56);
SHMVIEW_AT_OFFSET(shmview_slot, stream_holds, 64);
SHMVIEW_LAYOUT_ASSERT(sizeof(struct shmview_control) == 1536, "control header");
SHMVIEW_AT_OFFSET(shmview_control, slots_offset, 32);
SHMVIEW_AT_OFFSET(shmview_control, slot_bytes, 36);
SHMVIEW_AT_OFFSET(shmview_control, lock, 128);
SHMVIEW_AT_OFFSET(shmview_control, reporter, 132);
SHMVIEW_AT_OFFSET(shmview_control, inside, 136);
SHMVIEW_AT_OFFSET(shmview_control, held_version, 144);
SHMVIEW_AT_OFFSET(shmview_control, held_since_ns, 152);
SHMVIEW_AT_OFFSET(shmview_control, reader_groups, 160);
SHMVIEW_LAYOUT_ASSERT(SHMVIEW_READER_TAKEOVER == UINT64_C(1) << SHMVIEW_READER_GROUPS, "groups");
SHMVIEW_AT_OFFSET(shmview_control, reader_gate, 256);
SHMVIEW_AT_OFFSET(shmview_control, drain, 384);
SHMVIEW_AT_OFFSET(shmview_control, phase, 512);
SHMVIEW_AT_OFFSET(shmview_control, change, 640);
SHMVIEW_AT_OFFSET(shmview_control, change_waits, 644);
SHMVIEW_AT_OFFSET(shmview_control, stream_readers, 768);
SHMVIEW_AT_OFFSET(shmview_control, stream_writers, 896);
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
