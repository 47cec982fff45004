/* SPDX-License-Identifier: Apache-2.0 */
/* On which line of a JSON text is it? The parser tells lines of syntax errors only. */
#ifndef DAEMON_CONFIG_LINE_H
#define DAEMON_CONFIG_LINE_H

#include <stddef.h>

/* The line, from 1, of the member or element that path leads to ("segments[2].size"), or
 * of as much of it as there is. text has been accepted by the parser; rubbish is safe. */
unsigned config_line(const char *text, const char *path);

/* The lines of all n elements of the array that path leads to, in one go. */
void config_lines(const char *text, const char *path, unsigned *ret_lines, size_t n);

#endif
