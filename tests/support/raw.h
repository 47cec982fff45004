/* SPDX-License-Identifier: Apache-2.0 */
/* A client without the library: it sends bytes and receives NUL-terminated replies with
 * descriptors. Tests write JSON with ' instead of ", which these functions replace. */
#ifndef SUPPORT_RAW_H
#define SUPPORT_RAW_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#define RAW_DESCRIPTORS 8

struct raw {
    int socket;
    char *bytes; /* received, not yet returned */
    size_t n_bytes;
    int fds[RAW_DESCRIPTORS]; /* received; the test closes them with raw_close_fds() */
    unsigned n_fds;
};

/* Connects to the socket at path; fails the test if it cannot. */
void raw_connect(struct raw *raw, const char *path);
void raw_close(struct raw *raw);
void raw_close_fds(struct raw *raw);

/* Sends all bytes. Returns false if the daemon has closed the connection. */
bool raw_send(struct raw *raw, const void *bytes, size_t n);
/* Sends text, with " for each ', and a NUL. Returns what raw_send() returns. */
bool raw_send_text(struct raw *raw, const char *text);
/* Sends a call. A method without a dot is a method of io.shmview; parameters may be NULL. */
bool raw_send_call(struct raw *raw, const char *method, const char *parameters);

/* Receives the next message. Returns its text, which the caller frees, or NULL at the end of the
 * connection. */
char *raw_receive(struct raw *raw);
/* Waits until the daemon has closed the connection; a reply before that fails the test. */
void raw_expect_end(struct raw *raw);

/* Receives one reply, which must be a success. Returns its parameters; the caller frees them. */
json_t *raw_receive_success(struct raw *raw);
/* Receives one reply, which must be this error (without a dot: an error of io.shmview). Its text
 * (reason, else parameter) must contain part. Returns its parameters; the caller frees them. */
json_t *raw_receive_error(struct raw *raw, const char *error, const char *part);

/* raw_send_call(), then raw_receive_success(). */
json_t *raw_call(struct raw *raw, const char *method, const char *parameters);
void raw_do(struct raw *raw, const char *method, const char *parameters);
void raw_refused(struct raw *raw, const char *method, const char *parameters, const char *error,
                 const char *part);
/* Returns the integer at a path, such as "segment.size", in a JSON value. Fails the test if there
 * is none. */
json_int_t raw_int(const json_t *json, const char *path);

#endif
