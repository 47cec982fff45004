/* SPDX-License-Identifier: Apache-2.0 */
/* Prints bytes in the form of "hexdump -C", which people know. */
#ifndef CLI_HEXDUMP_H
#define CLI_HEXDUMP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Prints n bytes; `first` is the offset that the first line shows. Lines that equal the line before
 * them are replaced by a single '*'. The last line is the offset after the last byte. */
void hexdump(const unsigned char *bytes, size_t n, uint64_t first, FILE *out);

#endif
