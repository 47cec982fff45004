/* SPDX-License-Identifier: Apache-2.0 */
/* Summary figures of a view, and how its values are distributed over ranges of equal width. */
#ifndef WEB_FIGURES_H
#define WEB_FIGURES_H

#include "web/memory/look.h"

#define FIGURES_BINS 64

struct figures {
    struct shmview_summary summary;
    double low, high; /* edges of the first and the last bin */
    uint64_t counts[FIGURES_BINS];
    uint64_t n_infinite;
};

/* Reads all elements twice. Returns 0 or an error of the library. */
int figures_read(struct figures *figures, struct look *look);

#endif
