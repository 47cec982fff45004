/* SPDX-License-Identifier: Apache-2.0 */
/* Presences: evidence that the address space of a client exists.
 *
 * For each client that wants one the daemon creates an empty file, takes flock(LOCK_SH) on a
 * descriptor of it, and sends that descriptor. The client maps a page of the file and closes the
 * descriptor. The mapping keeps the open file, and thus the lock. The lock ends with the mapping:
 * at exec, at exit and by a kill, but not by any close(). A forked child does not have it, because
 * the mapping is MADV_DONTFORK. Any daemon of the instance can test the lock, in any pid namespace.
 *
 * A pidfd does not suffice as evidence: exec keeps the process but loses its mappings and locks,
 * and a later daemon cannot open one for a process in another pid namespace.
 *
 * The files lie in a directory of their own within that of the instance. inotify reports when the
 * last reference to a file that was opened read-only ends. The daemon opens a file write-only to
 * test its lock, so that tests are not reported. */
#ifndef DAEMON_PRESENCE_H
#define DAEMON_PRESENCE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The directory of presences. Loop only. */
struct presence {
    char path[PATH_MAX]; /* "": there is no directory, and so no file either */
    int directory;       /* owned */
    int news;            /* inotify, owned, to be polled; -1: ends are not reported */
};

/* The client of a presence. The file is named by both members, so that users cannot take each
 * other's numbers. */
struct presence_key {
    uid_t uid;
    uint64_t client;
};

/* Makes the directory, or opens that of an earlier daemon. Returns 0, and the caller owes
 * presence_close(); or -errno. After an error, and with a zeroed struct, the other functions find
 * no file. If inotify is not available, returns 0 with news -1. */
int presence_open(struct presence *presence);

/* Closes the directory. If remove is true, removes all files first. Removes a directory without
 * files. */
void presence_close(struct presence *presence, bool remove);

/* Creates the file of a client, in place of an existing one. Returns a read-only descriptor with
 * the lock, which the caller owns, or -errno. */
int presence_create(const struct presence *presence, struct presence_key key);

/* The result of a test. */
enum presence_state {
    PRESENCE_ABSENT, /* no file */
    PRESENCE_FREE,   /* a file, and nobody holds its lock */
    PRESENCE_LOCKED, /* the client lives */
};

/* Tests whether the client holds its presence. Returns an enum presence_state or -errno. */
int presence_test(const struct presence *presence, struct presence_key key);

/* Removes the file, if there is one. A mapping of it remains, but counts for nothing. */
void presence_remove(const struct presence *presence, struct presence_key key);

/* The result of reading reports. */
enum presence_news {
    NEWS_NONE,
    NEWS_READ, /* and there may be more */
    NEWS_LOST, /* the kernel has dropped some: any presence may have ended */
};

/* Reads reports of inotify once, and calls visit for each file whose end was reported. The lock of
 * that file may still be held for a moment. Does not block. */
enum presence_news presence_read(const struct presence *presence,
                                 void (*visit)(void *arg, struct presence_key), void *arg);

/* Removes the files for which keep() returns false, and files with any other name. */
void presence_sweep(const struct presence *presence, bool (*keep)(void *arg, struct presence_key),
                    void *arg);

#endif
