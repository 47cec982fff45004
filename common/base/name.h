/* SPDX-License-Identifier: Apache-2.0 */
/* Names of segments, layouts and views, and labels: which are valid; copies of lists of names,
 * and of names of programs. */
#ifndef COMMON_NAME_H
#define COMMON_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Whether name consists of 1 to max_bytes of the characters A-Z a-z 0-9 . _ - and does not start
 * with '.'. Such a name needs no quoting in a path, a shell or a table. */
bool name_is_valid(const char *name, size_t max_bytes);

/* Whether label is 1 to LIMIT_LABEL_BYTES bytes of UTF-8 without characters that control a terminal
 * or the direction of text. Then programs can print it as it is. */
bool label_is_valid(const char *label);

/* Copies the name of a program, which a client wrote, up to the first NUL or 15 bytes. Replaces
 * each byte that is not printable ASCII by '?', because the name goes to logs, terminals and JSON.
 */
void command_copy(char to[16], const char *from);

/* Copies a list of names into one block, which the caller owes to free(). The list ends with NULL.
 * Returns NULL if memory is short. */
const char **names_copy(const char *const *names, size_t n);

#endif
