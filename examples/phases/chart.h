/* SPDX-License-Identifier: Apache-2.0 */
/* chart.h - a histogram as bars on the terminal. */
#ifndef PHASES_CHART_H
#define PHASES_CHART_H

#include <stdint.h>

/* Prints the HISTOGRAM_ROWS rows of e, the loudest first. */
void chart_print(const int32_t *e);

#endif
