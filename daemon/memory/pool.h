/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that are made ahead: committed, zeroed, and ready for the next segment.
 *
 * The kernel needs 10 us for an empty object, and 0.3 to 0.4 us for each KiB that it zeroes. A
 * client that creates segments again and again waits for that each time. Therefore a thread makes
 * the next objects while the client works with the last ones.
 *
 * The pool never takes an object back that a client has had, because that client may have kept a
 * descriptor, and would read what the next user writes. So it has only objects that nobody has ever
 * had; used ones are freed (discard.h). No user is charged for an object before a segment has it.
 *
 * It learns from demand. Objects of one size are a class, and the pool knows the CLASSES that were
 * wanted last. It keeps as many objects of a class as were wanted in one second, if that was more
 * than one. It makes them when nothing was wanted for a millisecond, until something is, or when
 * few are left. The number falls by a quarter in each second without such demand, so an idle daemon
 * has none.
 *
 * All objects together have at most the bytes that the configuration allows. They count as free
 * memory (object_space()): a creation that finds too little calls pool_drain(), and the pool
 * empties itself when the machine, /dev/shm or the control group has little left. */
#ifndef DAEMON_POOL_H
#define DAEMON_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <uv.h>

/* An object that was made ahead. What its members are is the maker's matter, except link. */
struct pool_object {
    TAILQ_ENTRY(pool_object) link;
    uint64_t number; /* in its name; no other one of this process has had it */
    dev_t device;
    ino_t inode;
    int fd;
};

/* The functions that make and remove objects. */
struct pool_maker {
    /* Makes the object whose number is set, with `bytes` bytes, for which memory is promised
     * (object.h); settles the promise in any case. Returns 0, or -errno with nothing left. Any
     * thread. */
    int (*make)(struct pool_object *object, uint64_t bytes);
    /* Removes and closes the object. Any thread. */
    void (*unmake)(const struct pool_object *object);
};

/* Lets the thread pool of `loop` make objects from now on, n_most at most, each of which has a
 * descriptor. pool_limit() must follow. Returns 0 or -errno. */
int pool_init(uv_loop_t *loop, const struct pool_maker *maker, unsigned n_most);

/* Sets how many bytes the pool may have. 0: it has none, and learns nothing. Loop only. */
void pool_limit(uint64_t bytes);

/* Frees all objects, and stops making them. Loop only, before the loop ends. */
void pool_stop(void);

/* Returns an object of `bytes` bytes that nobody has had, or NULL if there is none. The caller owns
 * it: it takes over the descriptor and the name and frees the struct, or calls pool_give_back().
 * Notes the demand in both cases. Loop only. */
struct pool_object *pool_take(uint64_t bytes);

/* Takes back an object that no client has seen. Loop only. */
void pool_give_back(uint64_t bytes, struct pool_object *object);

/* Frees all objects now, because others need the memory. Blocks. Any thread except one that makes
 * them. Returns whether there was any. */
bool pool_drain(void);

/* What the pool has now, and how often it had what was wanted since the daemon started. */
struct pool_figures {
    uint64_t bytes, limit;
    uint64_t n_hits, n_misses;
};

/* Any thread. */
struct pool_figures pool_figures(void);

/* Returns the bytes that the pool has. Any thread; takes no lock. */
uint64_t pool_bytes(void);

#endif
