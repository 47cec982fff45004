/* SPDX-License-Identifier: Apache-2.0 */
/* Prints figures in the text format of Prometheus:
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 *
 * Names and labels are an interface: dashboards and alerts use them, so they must not change. A
 * figure that is not known is left out, because 0 would be wrong. */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include <shmview/stats.h>

#include "cli/shell/cli.h"

/* Prints the figures of the daemon and of the given segments. stats is NULL if no daemon answers;
 * then only shmview_up is printed, with 0. now_us is of CLOCK_REALTIME. The caller must check the
 * stream for errors. */
void metrics_print(FILE *file, const struct shmview_stats *stats,
                   const struct shmview_segment_stats *const *segments, size_t n_segments,
                   int64_t now_us);

/* Prints the value of a label, with a backslash before the characters that have a meaning there. */
void metrics_print_value(FILE *file, const char *text);

#endif
