/* SPDX-License-Identifier: Apache-2.0 */
/* A view as a .npy file in memory, for a download. */
#ifndef WEB_NPY_H
#define WEB_NPY_H

#include "web/base/text.h"
#include "web/memory/look.h"

#define NPY_BYTES_MOST (INT64_C(256) << 20)

/* Whether the view can be written: its elements must be numbers or bools, and NPY_BYTES_MOST at
 * most. Returns 0, or LOOK_WRONG with look->error. */
int npy_check(struct look *look);

/* Writes the file: all elements of one moment, if no writer came in between. npy_check() must have
 * accepted the view. It needs as much memory as the elements have bytes. Returns 0, or an error,
 * with look->error or of the library. */
int npy_write(struct look *look, struct text *ret);

#endif
