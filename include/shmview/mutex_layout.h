/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/mutex_layout.h - the bytes of a mutex of family.h, layout version 1.
 *
 * Programs need family.h, which includes this header for the size of a mutex. The rest is for
 * implementations in other languages. docs/LAYOUT.md has the steps by which a mutex is locked, and
 * tests/model/mutex.pml is their proof.
 *
 * The processes that share a mutex have nothing but memory in common. No daemon watches them, so a
 * waiter must find out by itself whether the owner is alive. For that it needs a name of the owner
 * which no other thread gets. The kernel's id of a thread is not enough, because the kernel gives
 * the id of an ended thread to a new one. Therefore the name is the id and the time of birth: a new
 * thread with the same id has another birth, because ids do not come round within one clock tick of
 * 10 ms. Both are in one word, which changes in one step. A waiter that finds no thread with that
 * id, or one with another birth, takes the word over. If births cannot be known, because /proc is
 * not mounted, a reused id makes waiters wait until the new thread ends. It never makes two owners.
 *
 * All words are native-endian and naturally aligned. Words that two processes may touch at once are
 * accessed as C11 atomics of the same size. Nothing that is found in a mutex is trusted, because
 * each process that has the memory can write it: wrong bytes can make a mutex useless, but cannot
 * harm a process. */
#ifndef SHMVIEW_MUTEX_LAYOUT_H
#define SHMVIEW_MUTEX_LAYOUT_H

#include <shmview/layout.h>

/* The first word of a mutex, and the version of all that follows. The library refuses a mutex with
 * other values, instead of guessing what its bytes mean. */
#define SHMVIEW_MUTEX_MAGIC          0x6d764d53u /* "SMvm" */
#define SHMVIEW_MUTEX_LAYOUT_VERSION 1u

/* The owner.  birth:32 W:1 0:1 id:30
 *
 *   free (0) -> owned -> free
 *   owned by a thread or process that is dead -> owned by another one
 *
 * id is the kernel's id of the owner: of a thread, or in a mutex of processes of a process. birth
 * is the time when the owner began, in clock ticks since the machine started, modulo 2^32; 0 =
 * unknown. W means that threads may be parked on the half of the word that has W and the id. The
 * unlocker must then make a system call to wake one. */
#define SHMVIEW_MUTEX_WAITERS 0x80000000u
#define SHMVIEW_MUTEX_ID      0x3fffffffu

/* A mutex: one cache line, because its owner touches most of it.
 *
 *   magic ... time_namespace, kind
 *            written once, by shmview_mutex_init(), before other processes use the mutex. Ids are
 *            valid in one pid namespace only, and births in one time namespace, because its clock
 *            counts them. A process of another namespace would take a living owner for dead
 *   owner    changed from 0 by a locker, and from a dead owner by a waiter that takes over, both by
 *            CAS. A waiter sets W by CAS before it parks. The unlocker exchanges the word with 0
 *   died     process id of the last owner that died inside or left the bytes not repaired. A waiter
 *            stores it after it has taken over, an unlocker before it frees the word. An unlocker
 *            whose bytes are in order stores 0. Lockers only test for 0; the number is for people
 *   pid      process id of the owner, for people. The owner stores it after it has taken the word,
 *            and stores 0 before it frees the word, so that it is 0 for a moment
 *   depth    of a mutex of threads: how many times the owner has locked it again. Only the owner
 *            reads and writes it. An owner that has taken over stores 0 */
struct shmview_mutex {
    uint32_t magic;
    uint32_t version;
    uint32_t pid_namespace;  /* its inode: where the ids mean something; 0 = unknown */
    uint32_t time_namespace; /* the inode of that of births */
    uint64_t owner;
    uint32_t died;
    uint32_t pid;
    uint32_t depth;
    uint32_t kind; /* SHMVIEW_MUTEX_OF_THREADS, _OF_PROCESSES */
    uint32_t reserved[6];
};

SHMVIEW_LAYOUT_ASSERT(sizeof(struct shmview_mutex) == 64, "one cache line");
SHMVIEW_AT_OFFSET(shmview_mutex, magic, 0);
SHMVIEW_AT_OFFSET(shmview_mutex, version, 4);
SHMVIEW_AT_OFFSET(shmview_mutex, pid_namespace, 8);
SHMVIEW_AT_OFFSET(shmview_mutex, time_namespace, 12);
SHMVIEW_AT_OFFSET(shmview_mutex, owner, 16);
SHMVIEW_AT_OFFSET(shmview_mutex, died, 24);
SHMVIEW_AT_OFFSET(shmview_mutex, pid, 28);
SHMVIEW_AT_OFFSET(shmview_mutex, depth, 32);
SHMVIEW_AT_OFFSET(shmview_mutex, kind, 36);
SHMVIEW_AT_OFFSET(shmview_mutex, reserved, 40);

#endif
