/* SPDX-License-Identifier: Apache-2.0 */
/* What a segment, a layout or a view may be called. */
#ifndef COMMON_NAME_H
#define COMMON_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Whether name has 1 to max_bytes of A-Z a-z 0-9 . _ - and does not start with
 * '.'. Such a name is safe in a path, a shell and a table. */
bool name_is_valid(const char *name, size_t max_bytes);

#endif
