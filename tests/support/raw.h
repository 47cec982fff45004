/* SPDX-License-Identifier: Apache-2.0 */
/* A client without the library: bytes out, NUL-terminated replies with
 * descriptors in. JSON is written with ' instead of ", which is turned round. */
#ifndef SUPPORT_RAW_H
#define SUPPORT_RAW_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#define RAW_DESCRIPTORS 8

struct raw {
    int socket;
    char *bytes; /* received, not yet taken */
    size_t n_bytes;
    int fds[RAW_DESCRIPTORS]; /* received, the test's to close: raw_close_fds() */
    unsigned n_fds;
};

/* Connects to the socket at path; fails the test if it cannot. */
void raw_connect(struct raw *raw, const char *path);
void raw_close(struct raw *raw);
void raw_close_fds(struct raw *raw);

/* Sends all of it. Returns false if the daemon has closed the connection. */
bool raw_send(struct raw *raw, const void *bytes, size_t n);
/* Sends text, ' turned into ", and a NUL. */
bool raw_send_text(struct raw *raw, const char *text);
/* Sends a call. A method without a dot is one of io.shmview; parameters may be NULL. */
bool raw_send_call(struct raw *raw, const char *method, const char *parameters);

/* Receives the next message. Returns it without its NUL, new, or NULL at the end of
 * the connection. */
char *raw_receive(struct raw *raw);
/* Waits until the daemon has closed the connection; a reply before that fails the test. */
void raw_expect_end(struct raw *raw);

/* Receives one reply that must be a success. Returns its parameters, new. */
json_t *raw_receive_success(struct raw *raw);
/* Receives one reply that must be this error (without a dot: one of io.shmview), its
 * text (reason, else parameter) holding part. Returns its parameters, new. */
json_t *raw_receive_error(struct raw *raw, const char *error, const char *part);

/* Call and reply at once. */
json_t *raw_call(struct raw *raw, const char *method, const char *parameters);
void raw_do(struct raw *raw, const char *method, const char *parameters);
void raw_refused(struct raw *raw, const char *method, const char *parameters, const char *error,
                 const char *part);
/* An integer at a path in a JSON value, "segment.size". Fails the test if there is none. */
json_int_t raw_int(const json_t *json, const char *path);

#endif
