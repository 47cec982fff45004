/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance driver in C: a user of the public headers who does what he is told, a line of
 * JSON each way. ../peers.py has the requests and the way values are written. */
#ifndef CONFORMANCE_DRIVER_H
#define CONFORMANCE_DRIVER_H

#include <jansson.h>
#include <shmview/shmview.h>
#include <stdbool.h>

#define MAX_NAMED     16
#define NAMED_BYTES   32
#define MAX_PARTS     64 /* components of a format */
#define ELEMENT_BYTES 256

struct named_segment {
    char name[NAMED_BYTES];
    struct shmview_segment *segment; /* NULL: the place is free */
};

struct named_view {
    char name[NAMED_BYTES]; /* "": the place is free */
    struct shmview_view view;
};

struct driver {
    struct shmview_connection *connection;
    struct named_segment segments[MAX_NAMED];
    struct named_view views[MAX_NAMED];
};

/* Does one request. Returns 0 with a new *ret_value, or what libshmview returned. */
typedef int operation(struct driver *driver, const json_t *request, json_t **ret_value);

struct operation_row {
    const char *name;
    operation *run;
};
extern const struct operation_row segment_operations[];
extern const struct operation_row view_operations[];
extern const struct operation_row lock_operations[];

/* --- main.c: what requests name. All of them end the program where a request is wrong. */

const char *text_of(const json_t *request, const char *key); /* NULL without one */
int64_t number_of(const json_t *request, const char *key, int64_t otherwise);
bool truth_of(const json_t *request, const char *key, bool otherwise);
/* The array of integers under key into ret[], its length into *ret_n. Returns ret; NULL without
 * one. */
const int64_t *numbers_of(const json_t *request, const char *key, int64_t *ret, uint32_t *ret_n);
struct shmview_segment *segment_of(struct driver *driver, const json_t *request);
struct named_segment *new_segment(struct driver *driver, const json_t *request);
struct shmview_view *view_of(struct driver *driver, const json_t *request, const char *key);
struct shmview_view *new_view(struct driver *driver, const json_t *request);
_Noreturn void refuse(const char *what, const char *detail);
operation run_errors;

/* --- elements.c: values as JSON */

/* One element: reads it into a new *value, or writes *value. */
int element_move(const struct shmview_view *view, const ptrdiff_t *index, json_t **value,
                 bool writes);
/* All of them, an array in an array for each dimension. */
int view_move(const struct shmview_view *view, json_t **value, bool writes);
/* All of them by pointers of the element's C type; null where it has none that reach. */
json_t *view_by_pointers(const struct shmview_view *view);
/* The C type that SHMVIEW_AT1 takes for it; "" if there is none. */
const char *c_type(uint32_t dtype);

json_t *hex_of(const void *bytes, size_t n);
/* Puts the bytes of a hexadecimal text at ret, at most n. Returns how many. */
size_t bytes_of(const char *hex, void *ret, size_t n);

#endif
