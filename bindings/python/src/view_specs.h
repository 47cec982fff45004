/* SPDX-License-Identifier: Apache-2.0 */
/* view_specs.h - descriptions of the views of a layout, converted from Python. */
#ifndef VIEW_SPECS_H
#define VIEW_SPECS_H

#include "core.h"

struct view_specs {
    struct shmview_view_spec *specs;
    struct numbers *numbers; /* the arrays to which specs point */
    size_t n;
};
/* Converts a tuple of views, as resolve() of shmview._layouts returns it. The specs borrow the
 * strings of the tuple. Returns 0, and the caller owes view_specs_free(); or -1 with an exception.
 */
int view_specs_parse(PyObject *views, struct view_specs *ret);
void view_specs_free(struct view_specs *specs);

#endif
