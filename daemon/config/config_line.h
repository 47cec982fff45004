/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the line of a value in a JSON text. An error about a value, such as a quota that is too
 * large, is found after parsing, and the values of jansson do not remember their lines. Therefore
 * these functions walk through the text a second time, along the path of the value. They run only
 * for errors and for declared segments. */
#ifndef DAEMON_CONFIG_LINE_H
#define DAEMON_CONFIG_LINE_H

#include <stddef.h>

/* Returns the line, counted from 1, of the member or element at path, such as "segments[2].size".
 * If a part of the path does not exist, returns the line of the last part that does. text should be
 * valid JSON; with any other text the result is arbitrary, but nothing is read after its NUL. */
unsigned config_line(const char *text, const char *path);

/* Stores the lines of all n elements of the array at path. Walks through the text once; n calls of
 * config_line() would take time in proportion to the square of n. */
void config_lines(const char *text, const char *path, unsigned *ret_lines, size_t n);

#endif
