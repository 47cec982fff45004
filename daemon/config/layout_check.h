/* SPDX-License-Identifier: Apache-2.0 */
/* Is this a layout of a segment of so many bytes? One judge for clients and for the
 * configuration. */
#ifndef DAEMON_LAYOUT_CHECK_H
#define DAEMON_LAYOUT_CHECK_H

#include <stdint.h>

#include "common/views/view.h"
#include "common/wire/wire.h"

#define LAYOUT_NO_VIEW SIZE_MAX

struct layout_fault {
    int error;        /* SHMVIEW_ERR_* */
    const char *fact; /* what subject is: "parameter" or "view" */
    char subject[LIMIT_VIEW_NAME_BYTES + 1];
    size_t view; /* index of the one at fault; LAYOUT_NO_VIEW: the layout */
    char text[400];
};

/* Checks names and views. Formats become canonical: they lie in formats from then on.
 * Returns 0, or -1 with *fault. */
int layout_check(struct wire_layout *layout, uint64_t segment_bytes, struct formats *formats,
                 struct layout_fault *fault);

#endif
