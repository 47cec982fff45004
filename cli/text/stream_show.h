/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a stream: its stages, its slots, and which process holds which frame. */
#ifndef CLI_STREAM_SHOW_H
#define CLI_STREAM_SHOW_H

#include "cli/text/stream.h"

#define STREAM_READERS_MOST 1024 /* as many as a segment has slots in its lock */

/* What the library reports of a stream at one moment. */
struct stream_facts {
    struct shmview_stream_info info;
    struct shmview_stream_status status;
    struct shmview_stream_slot_status slots[SHMVIEW_STREAM_SLOTS_MAX];
    struct shmview_stream_reader_status readers[STREAM_READERS_MOST];
    size_t n_readers;
    bool sees_readers; /* false: the stream is open with SHMVIEW_PEEK, which shows none */
    int64_t now_ns;    /* CLOCK_MONOTONIC */
};

/* Reads the facts of a stream. Returns 0 or an error of the library. */
int stream_facts_read(struct shmview_stream *stream, struct stream_facts *ret);

/* Gets the facts of the segment called name. *ret is new, and the caller frees it; NULL if the
 * segment is no stream. Returns 0 or an error of the library. */
int stream_facts_of(struct context *c, const char *name, struct stream_facts **ret);

/* Counts the slots in a state, SHMVIEW_SLOT_*. */
uint32_t stream_count(const struct stream_facts *f, uint32_t state);

/* Whether a reader has left, and only holds frames. */
bool stream_reader_has_left(const struct shmview_stream_reader_status *reader);

/* Prints the facts below those of the segment, with a character for each slot. */
void stream_print(const struct stream_facts *f);

/* Returns a new object, or NULL if memory is short. */
json_t *stream_json(const struct stream_facts *f);

#endif
