/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence that the address space of a client exists.
 *
 * For each client that asks for it the daemon creates an empty file, takes flock(LOCK_SH) on
 * the descriptor, and sends that. The client maps a page of the file and closes the
 * descriptor. The lock then ends with the mapping: at exec, at exit and by a kill; no close()
 * ends it, and a forked child does not have it, because the mapping is MADV_DONTFORK. Any
 * daemon of the instance can test the lock, in whatever pid namespace the client is.
 *
 * The files lie in a directory of their own, in that of the instance. inotify reports the end of
 * the last reference to a file; the daemon opens its own descriptors such that it does not report
 * those. */
#ifndef DAEMON_PRESENCE_H
#define DAEMON_PRESENCE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct presence {
    char path[PATH_MAX]; /* of the directory; "": there is none, and so no file either */
    int directory;
    int news; /* inotify, to be polled; -1: ends are not reported */
};

/* Whose file it is. */
struct presence_key {
    uid_t uid;
    uint64_t client;
};

/* Makes or opens the directory, in that of the instance. Returns 0 and owes presence_close(), or
 * -errno. After an error, and with a zeroed struct, the other calls find no file. */
int presence_open(struct presence *presence);

/* remove: all files go. A directory without files goes too. */
void presence_close(struct presence *presence, bool remove);

/* Creates the file, in place of one that is there. Returns a descriptor with the lock, which
 * the caller owns, or -errno. */
int presence_create(const struct presence *presence, struct presence_key key);

/* What there is of a presence, unless looking failed. */
enum presence_state {
    PRESENCE_ABSENT, /* no file */
    PRESENCE_FREE,   /* a file, and nobody holds the lock */
    PRESENCE_LOCKED, /* its client lives */
};

/* Returns an enum presence_state or -errno. */
int presence_test(const struct presence *presence, struct presence_key key);

void presence_remove(const struct presence *presence, struct presence_key key);

enum presence_news {
    NEWS_NONE,
    NEWS_READ, /* and there may be more */
    NEWS_LOST, /* the kernel had no room for some */
};

/* Reads what inotify has reported, once: calls visit for each file of which an end was
 * reported. */
enum presence_news presence_read(const struct presence *presence,
                                 void (*visit)(void *arg, struct presence_key), void *arg);

/* Removes the files for which keep returns false. */
void presence_sweep(const struct presence *presence, bool (*keep)(void *arg, struct presence_key),
                    void *arg);

#endif
