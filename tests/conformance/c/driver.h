/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance driver in C: a program that uses the public headers only. It reads requests
 * from standard input and writes the answers, one line of JSON each. ../peers.py describes the
 * requests and how values are written. */
#ifndef CONFORMANCE_DRIVER_H
#define CONFORMANCE_DRIVER_H

#include <jansson.h>
#include <shmview/shmview.h>
#include <shmview/stream.h>
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

struct named_stream {
    char name[NAMED_BYTES]; /* "": the place is free */
    struct shmview_stream *stream;
};

/* The views of a frame are named "frame.view". */
struct named_frame {
    char name[NAMED_BYTES]; /* "": the place is free */
    struct shmview_frame frame;
};

struct driver {
    struct shmview_connection *connection;
    struct named_segment segments[MAX_NAMED];
    struct named_view views[MAX_NAMED];
    struct named_stream streams[MAX_NAMED];
    struct named_frame frames[MAX_NAMED];
};

/* Carries out one request. Returns 0 with a new *ret_value, or the error that libshmview
 * returned. */
typedef int operation(struct driver *driver, const json_t *request, json_t **ret_value);

struct operation_row {
    const char *name;
    operation *run;
};
extern const struct operation_row segment_operations[];
extern const struct operation_row view_operations[];
extern const struct operation_row lock_operations[];
extern const struct operation_row stream_operations[];

/* --- main.c: members of requests. All of these functions end the program if a request is wrong. */

const char *text_of(const json_t *request, const char *key); /* NULL if there is none */
int64_t number_of(const json_t *request, const char *key, int64_t otherwise);
bool truth_of(const json_t *request, const char *key, bool otherwise);
/* Reads the array of integers under key into ret[], and its length into *ret_n. Returns ret, or
 * NULL if there is none. */
const int64_t *numbers_of(const json_t *request, const char *key, int64_t *ret, uint32_t *ret_n);
struct shmview_segment *segment_of(struct driver *driver, const json_t *request);
struct named_segment *new_segment(struct driver *driver, const json_t *request);
struct shmview_view *view_of(struct driver *driver, const json_t *request, const char *key);
struct shmview_view *new_view(struct driver *driver, const json_t *request);
_Noreturn void refuse(const char *what, const char *detail);
operation run_errors;

/* --- views.c: descriptions of views */

#define MAX_VIEWS 8 /* of one layout, or of one frame */

/* The arrays to which the description of a view points. */
struct spec_room {
    int64_t shape[SHMVIEW_MAX_NDIM], strides[SHMVIEW_MAX_NDIM], suboffsets[SHMVIEW_MAX_NDIM];
};
struct view_specs {
    struct shmview_view_spec specs[MAX_VIEWS];
    struct spec_room rooms[MAX_VIEWS];
    size_t n;
};
/* Reads the array under "views". */
void specs_of(const json_t *request, struct view_specs *ret);

/* --- elements.c: values as JSON */

/* One element: reads it into a new *value, or writes *value. Returns 0, or an error. */
int element_move(const struct shmview_view *view, const ptrdiff_t *index, json_t **value,
                 bool writes);
/* All elements, as nested arrays with one level for each dimension. */
int view_move(const struct shmview_view *view, json_t **value, bool writes);
/* All elements, read by pointers of the element's C type. Returns null if there is no such type,
 * or if pointers cannot reach the elements. */
json_t *view_by_pointers(const struct shmview_view *view);
/* Returns the C type for which SHMVIEW_AT1 accepts the dtype; "" if there is none. */
const char *c_type(uint32_t dtype);

json_t *hex_of(const void *bytes, size_t n);
/* Writes the bytes of a hexadecimal text to ret, at most n. Returns how many. */
size_t bytes_of(const char *hex, void *ret, size_t n);

#endif
