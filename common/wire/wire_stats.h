/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: the request and the reply of Stats, struct <-> JSON, for both ends. */
#ifndef COMMON_WIRE_STATS_H
#define COMMON_WIRE_STATS_H

#include <shmview/stats.h>

#include "common/wire/wire_events.h"

struct wire_stats_call {
    const char **names; /* new when decoded: free() */
    size_t n_names;
    int64_t after, limit;
};

#define LIMIT_STATS_PAGE     1000
#define LIMIT_STATS_ATTACHED 64
#define LIMIT_STATS_REFUSALS 128
#define LIMIT_STATS_QUOTAS   16

int wire_read_stats_call(const json_t *parameters, struct wire_stats_call *ret,
                         struct wire_fault *fault);
/* The whole call. New; NULL if memory is short. */
char *wire_stats_call_text(const struct wire_stats_call *call);
/* The whole reply, with a NUL that *ret_bytes counts. New; NULL if memory is short. next is
 * WIRE_ABSENT if there are no more segments. */
char *wire_stats_text(const struct shmview_stats *stats, size_t *ret_bytes);
/* Strings are borrowed from parameters. Owes wire_stats_deinit(), also on failure. */
int wire_read_stats(const json_t *parameters, struct shmview_stats *ret, struct wire_fault *fault);
void wire_stats_deinit(struct shmview_stats *stats);

#endif
