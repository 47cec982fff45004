/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows about streams share. */
#ifndef BENCH_STREAMS_H
#define BENCH_STREAMS_H

#include <shmview/stream.h>

#include "bench.h"

#define STREAM_LARGE_BYTES ((int64_t)64 << 20)

/* Creates a stream whose frames have one view of so many bytes. Returns 0, or -1 after failed(). */
int stream_make(struct bench *bench, const char *name, uint32_t mode, uint32_t n_slots,
                int64_t bytes, struct shmview_stream **ret);

/* streams_cost.c: what the calls cost. with_iceoryx: its daemon runs. */
void bench_stream_costs(struct bench *bench, bool with_iceoryx);
bool stream_costs_wanted(const struct bench *bench);

#endif
