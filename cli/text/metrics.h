/* SPDX-License-Identifier: Apache-2.0 */
/* Figures in the text format of Prometheus:
 * https://prometheus.io/docs/instrumenting/exposition_formats/ */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include <shmview/stats.h>

#include "cli/shell/cli.h"

/* Prints all that is known of the daemon and of those segments that have a name. stats NULL: there
 * is no daemon. Errors are the stream's. */
void metrics_print(FILE *file, const struct shmview_stats *stats,
                   const struct shmview_segment_stats *const *segments, size_t n_segments,
                   int64_t now_us);

/* Prints a label's value: what the format means by characters is escaped. */
void metrics_print_value(FILE *file, const char *text);

#endif
