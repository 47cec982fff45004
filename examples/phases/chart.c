/* SPDX-License-Identifier: Apache-2.0 */
#include "chart.h"

#include <inttypes.h>
#include <stdio.h>

#include "arrays.h"

#define BAR_CHARACTERS 50

static void print_row(const char *label, int32_t count, int32_t longest)
{
    static const char bar[] = "##################################################";
    int length = (int)((int64_t)count * BAR_CHARACTERS / longest);
    printf("  %-7s |%-*.*s %8" PRId32 "\n", label, BAR_CHARACTERS, length, bar, count);
}

void chart_print(const int32_t *e)
{
    int32_t longest = 1;
    for (int row = 0; row < HISTOGRAM_ROWS; row++)
        longest = e[row] > longest ? e[row] : longest;

    for (int row = HISTOGRAM_ROWS - 1; row > 0; row--) {
        char label[16];
        snprintf(label, sizeof label, "%d dB", 6 * (row - (HISTOGRAM_ROWS - 1)));
        print_row(label, e[row], longest);
    }
    print_row("silence", e[0], longest);
}
