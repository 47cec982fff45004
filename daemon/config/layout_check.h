/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a layout, and whether it fits into its segment. Requests of clients and the configuration
 * both use this check, so that a layout is valid in both or in neither. */
#ifndef DAEMON_LAYOUT_CHECK_H
#define DAEMON_LAYOUT_CHECK_H

#include <stdint.h>

#include "common/views/view.h"
#include "common/wire/wire.h"

#define LAYOUT_NO_VIEW SIZE_MAX

/* The facts of an error, for the error reply or the line of the configuration. */
struct layout_fault {
    int error;                               /* SHMVIEW_ERR_* */
    const char *fact;                        /* "parameter" or "view": the kind of subject */
    char subject[LIMIT_VIEW_NAME_BYTES + 1]; /* name of the parameter or view */
    size_t view; /* index of the view at fault, or LAYOUT_NO_VIEW for the layout itself */
    char text[400];
};

/* Checks the names and parses the formats, which `formats` then owns, and completes the strides. It
 * takes milliseconds if there are many components. Returns 0, or -1 with *fault. Any thread. */
int layout_resolve(struct wire_layout *layout, struct formats *formats, struct layout_fault *fault);

/* Checks the views of a layout that was resolved with the routine of the library
 * (common/views/view.h). Replaces the format of each view by its canonical text. It is quick, and
 * may be repeated for another size. Returns 0, or -1 with *fault. Any thread. */
int layout_fit(struct wire_layout *layout, uint64_t segment_bytes, struct layout_fault *fault);

#endif
