/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and the text that names them.
 *
 * The language is PEP 3118's, which is that of Python's struct module; numpy's
 * and DLPack's names are aliases. Sources: PEP 3118; docs.python.org, library
 * "struct" (sizes of native and standard mode). */
#ifndef COMMON_DTYPE_H
#define COMMON_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#include <shmview/element.h>

struct dtype {
    enum shmview_dtype code;
    uint32_t itemsize;   /* bytes; also the alignment */
    const char *format;  /* canonical: native order, native size */
    const char *name;    /* numpy's and DLPack's */
    const char *typestr; /* numpy's, without the byte order */
};

/* Returns the type that format names, or NULL; then *ret_at is the index of the
 * character at fault and *ret_why a static text. The result is static. */
const struct dtype *dtype_parse(const char *format, size_t *ret_at, const char **ret_why);

#endif
