/* SPDX-License-Identifier: Apache-2.0 */
/* What the storms share: clients that speak the protocol themselves. They send many requests before
 * they read a reply, and note the methods that they call. */
#ifndef STORM_H
#define STORM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include <shmview/shmview.h>

/* The most of them that a reply brings. */
#define CALLER_DESCRIPTORS 8

/* Names of methods, with that of the interface. */
struct methods {
    char names[64][128];
    size_t n;
};

/* One connection. */
struct caller {
    int fd;
    struct methods *called; /* NULL: nobody wants to know */
    char *text;             /* what has been received */
    size_t n, room;
    size_t n_read;               /* bytes of it that have been taken */
    int fds[CALLER_DESCRIPTORS]; /* those of the last reply that had any */
    unsigned n_fds;
};

/* Returns a new socket that is connected to the daemon, or -1. */
int storm_connect(const char *socket);
/* Returns r == 0 ? 0 : -1 after printing the error of the library. */
int storm_check(int r, const char *what);

/* Connects. Returns 0 or -1; either way caller_close() is allowed. */
int caller_open(struct caller *caller, const char *socket, struct methods *called);
/* Hangs up, and closes the descriptors. */
void caller_close(struct caller *caller);
/* Sends a request, and takes the parameters over; NULL: out of memory. Returns 0 or -1. */
int caller_send(struct caller *caller, const char *method, json_t *parameters);
/* Reads one reply. Returns its parameters, new; or NULL after failed(), also for an error. */
json_t *caller_read(struct caller *caller);
/* Both. Returns the parameters of the reply, new, or NULL. */
json_t *caller_ask(struct caller *caller, const char *method, json_t *parameters);
/* Asks n times, up to 32 times before it reads a reply. make(i, arg) returns the parameters. If ids
 * is not NULL, it gets the ids of the attachments in the replies. Returns 0 or -1. */
int caller_ask_many(struct caller *caller, const char *method, unsigned n,
                    json_t *(*make)(unsigned i, void *arg), void *arg, json_int_t *ids);
/* Drops what has arrived, without waiting. */
void caller_drain(const struct caller *caller);

void methods_note(struct methods *methods, const char *name);
bool methods_have(const struct methods *methods, const char *name);

/* storm_methods.c: every method of every interface that the daemon has. */
int blow_methods(struct shmview_connection *connection, const char *socket);

#endif
