/* SPDX-License-Identifier: Apache-2.0 */
/* A view as a .npy file in memory, for a download. */
#ifndef WEB_NPY_H
#define WEB_NPY_H

#include "web/base/text.h"
#include "web/memory/look.h"

#define NPY_BYTES_MOST (INT64_C(256) << 20)

/* Writes the file: all elements of one moment, if no writer came in between. Elements must be
 * numbers or bools. Returns 0, LOOK_WRONG with look->error, or an error of the library. */
int npy_write(struct look *look, struct text *ret);

#endif
