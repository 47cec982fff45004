/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/draw/histogram.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LABEL_BYTES 32
#define EIGHTHS     8 /* of a column: block characters have this resolution */

void histogram_init(struct histogram *h, double min, double max, size_t n)
{
    *h = (struct histogram){.min = min, .max = max, .n = n};
    if (min == max) {
        h->min -= 0.5;
        h->max += 0.5;
    }
}

double histogram_edge(const struct histogram *h, size_t i)
{
    double range = h->max - h->min;
    double step =
        isfinite(range) ? range / (double)h->n : h->max / (double)h->n - h->min / (double)h->n;
    return i == h->n ? h->max : (double)i * step + h->min;
}

/* Returns the bin of x. The division may be off by one bin because it rounds. Therefore the edges,
 * which the user sees, decide. */
static size_t find_bin(const struct histogram *h, double x)
{
    double part = (x / 2 - h->min / 2) / (h->max / 2 - h->min / 2) * (double)h->n;
    size_t i = part < 1 ? 0 : part >= (double)h->n ? h->n - 1 : (size_t)part;
    while (i > 0 && x < histogram_edge(h, i))
        i--;
    while (i + 1 < h->n && x >= histogram_edge(h, i + 1))
        i++;
    return i;
}

void histogram_add(struct histogram *h, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] >= h->min && values[i] <= h->max)
            h->counts[find_bin(h, values[i])]++;
}

/* Prints a bar of `part` (0 to 1) of width columns, to an eighth of a column. */
static void print_bar(double part, size_t width, bool utf8, FILE *out)
{
    static const char *const eighths[EIGHTHS] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    size_t n = (size_t)lround(part * (double)width * EIGHTHS);
    if (n == 0 && part > 0)
        n = 1; /* a bin with values always shows a bar */
    for (size_t i = 0; i < n / EIGHTHS; i++)
        fputs(utf8 ? "█" : "#", out);
    if (utf8)
        fputs(eighths[n % EIGHTHS], out);
    else if (n % EIGHTHS)
        fputs(n < EIGHTHS ? "." : "", out);
}

void histogram_print(const struct histogram *h, size_t width, bool utf8, FILE *out)
{
    char label[LABEL_BYTES];
    uint64_t most = 1;
    int label_width = 0, count_width = 0;
    for (size_t i = 0; i <= h->n; i++) {
        int n = snprintf(label, sizeof label, "%.4g", histogram_edge(h, i));
        label_width = n > label_width ? n : label_width;
        most = i < h->n && h->counts[i] > most ? h->counts[i] : most;
    }
    count_width = snprintf(label, sizeof label, "%" PRIu64, most);
    size_t used = (size_t)(2 * label_width + count_width) + strlen(" ..   ");
    for (size_t i = 0; i < h->n; i++) {
        char to[LABEL_BYTES];
        snprintf(label, sizeof label, "%.4g", histogram_edge(h, i));
        snprintf(to, sizeof to, "%.4g", histogram_edge(h, i + 1));
        fprintf(out, "%*s .. %-*s %*" PRIu64 " ", label_width, label, label_width, to, count_width,
                h->counts[i]);
        print_bar((double)h->counts[i] / (double)most, width > used + 1 ? width - used - 1 : 1,
                  utf8, out);
        fputc('\n', out);
    }
}
