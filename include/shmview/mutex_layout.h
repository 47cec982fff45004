/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/mutex_layout.h - the bytes of a mutex of family.h, layout version 1.
 *
 * The processes that share a mutex have nothing but memory in common. No daemon watches them, so
 * a waiter finds out by itself whether the owner lives. It needs the owner's name for that, and the
 * name must not become another thread's. This is why the owner's kernel id and time of birth are
 * one word, which changes in one step: the kernel gives an id to a new thread, but with another
 * birth, because ids do not come round within one clock tick of 10 ms. A waiter that finds no
 * thread with that id, or one with another birth, takes the word over. If births cannot be known
 * (/proc is not mounted), a reused id makes waiters wait until the new thread ends. It never makes
 * two owners.
 *
 * All words are native-endian and naturally aligned; words that two processes may touch at once
 * are accessed as C11 atomics of the same size. Nothing found here is trusted: wrong bytes can
 * make a mutex useless, but not harm a process. Programs use family.h. docs/LAYOUT.md has the
 * algorithm, tests/model/mutex.pml its proof. */
#ifndef SHMVIEW_MUTEX_LAYOUT_H
#define SHMVIEW_MUTEX_LAYOUT_H

#include <shmview/layout.h>

#define SHMVIEW_MUTEX_MAGIC          0x6d764d53u /* "SMvm" */
#define SHMVIEW_MUTEX_LAYOUT_VERSION 1u

/* The owner.  birth:32 W:1 0:1 id:30
 *
 *   0 -> owned -> 0
 *   owned by a thread or process that is dead -> owned by another
 *
 * id is of the kernel: a thread's, or a process' for a mutex of processes. birth is the time when
 * it began, in clock ticks since the machine started, modulo 2^32; 0 = unknown. W says that threads
 * may be parked on the half of the word that has W and the id. */
#define SHMVIEW_MUTEX_WAITERS 0x80000000u
#define SHMVIEW_MUTEX_ID      0x3fffffffu

/* One cache line, because the owner touches most of it.
 *
 *   magic ... time_namespace, kind
 *            written once, by shmview_mutex_init(), before other processes use the mutex. Ids mean
 *            something in one pid namespace, and births in one time namespace, whose clock they are
 *            read from: a process of another one would take a living owner for dead
 *   owner    CAS from 0 by a locker, CAS from a dead owner by a waiter that takes over, CAS of W by
 *            a waiter before it parks, exchange with 0 by the unlocker
 *   died     stored by a waiter right after it has taken over: the owner whose death it found.
 *            Stored as 0 by the unlocker, before it frees the word, if the bytes are in order. Only
 *            "0 or not" is decided on; the number is for people
 *   pid      the owner's process, for people: stored after the word was taken, and as 0 before the
 *            word is freed, so that it may be that of nobody for a moment
 *   depth    of a mutex of threads: how many times the owner has locked it again; 0 after the last
 *            unlock. Read and written by the owner only: one that has taken over stores 0 */
struct shmview_mutex {
    uint32_t magic;
    uint32_t version;
    uint32_t pid_namespace;  /* its inode: where the ids mean something; 0 = unknown */
    uint32_t time_namespace; /* the same for births */
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
