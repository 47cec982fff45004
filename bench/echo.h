/* SPDX-License-Identifier: Apache-2.0 */
/* The reference for calls: a bare libuv loop that answers the same messages, and its client. It has
 * no segments. With JSON it parses and prints each message; without JSON it compares bytes. */
#ifndef BENCH_ECHO_H
#define BENCH_ECHO_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ECHO_TEXT_BYTES  4096
#define ECHO_OBJECTS     3 /* what a segment with a lock consists of */
#define ECHO_EXCHANGES   3
#define ECHO_NAME_BYTES  64
#define ECHO_LOCK_BYTES  4096
#define ECHO_DESCRIPTORS 4

/* A request of the protocol and the daemon's reply to it, as values and as the
 * bytes on the wire, NUL included. */
struct exchange {
    json_t *request, *reply;
    char request_text[ECHO_TEXT_BYTES], reply_text[ECHO_TEXT_BYTES];
    size_t request_bytes, reply_bytes;
    enum {
        ECHO_ANSWER, /* nothing but the reply */
        ECHO_MAKE,   /* create the objects of a segment; they ride on the reply */
        ECHO_UNMAKE, /* remove them */
    } action;
};

/* Asks the daemon at socket, over one connection, n requests and keeps what it
 * said. A "%" in a request stands for the attachment that the first reply named.
 * Returns 0 and owes exchange_free(), or -1. */
int exchange_record(struct exchange *list, size_t n, const char *const *requests,
                    const char *socket);
void exchange_free(struct exchange *list, size_t n);

struct echo {
    pid_t pid;
    int fd;
    bool json;
    bool polls; /* neither side ever sleeps */
    struct exchange *list;
    size_t n;
    uint64_t data_bytes; /* of the object that ECHO_MAKE makes for the user */
};

/* Starts the server, in a child, and connects. list is borrowed. The caller has set polls, and
 * nothing else. Returns 0 or -1. */
int echo_start(struct echo *echo, bool json, struct exchange *list, size_t n, uint64_t data_bytes);
void echo_stop(struct echo *echo);

/* One round trip. With ret_fds, as many descriptors as came are put there; the
 * caller closes them. Returns their number, or -1. */
int echo_call(struct echo *echo, size_t which, int *ret_fds);

/* echo_server.c: serves fd until it is killed. */
void echo_serve(void *echo);

#endif
