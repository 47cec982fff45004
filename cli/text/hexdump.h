/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes for people, as "hexdump -C" has them. */
#ifndef CLI_HEXDUMP_H
#define CLI_HEXDUMP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Prints n bytes, of which the first one is number first; lines that are as the one before are a
 * single '*'. The last line is the number of the byte after them. */
void hexdump(const unsigned char *bytes, size_t n, uint64_t first, FILE *out);

#endif
