/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/hexdump.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define LINE 16 /* bytes */

/* Prints a line of n bytes, at most LINE; a shorter one is filled up so that the text is aligned.
 */
static void print_line(const unsigned char *bytes, size_t n, uint64_t first, FILE *out)
{
    fprintf(out, "%08" PRIx64 " ", first);
    for (size_t i = 0; i < LINE; i++) {
        if (i % (LINE / 2) == 0)
            fputc(' ', out);
        if (i < n)
            fprintf(out, "%02x ", bytes[i]);
        else
            fputs("   ", out);
    }
    fputs(" |", out);
    for (size_t i = 0; i < n; i++)
        fputc(bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '.', out);
    fputs("|\n", out);
}

void hexdump(const unsigned char *bytes, size_t n, uint64_t first, FILE *out)
{
    bool is_star = false;
    for (size_t i = 0; i < n; i += LINE) {
        bool is_same = i && i + LINE <= n && memcmp(bytes + i, bytes + i - LINE, LINE) == 0;
        if (!is_same)
            print_line(bytes + i, n - i < LINE ? n - i : LINE, first + i, out);
        else if (!is_star)
            fputs("*\n", out);
        is_star = is_same;
    }
    fprintf(out, "%08" PRIx64 "\n", first + n);
}
