/* SPDX-License-Identifier: Apache-2.0 */
/* Prints arrays whose elements another program changes while array_print() goes through them. */
#include "unit/unit.h"

#include <math.h>

#include <shmview/shmview.h>

#include "cli/text/array_text.h"

#define PASSES 3 /* of array_print(): the range, the widths, the texts */

/* The number that every element is in each pass, in both parts of a complex. */
static const double *passes;
static int n_elements, n_read;

/* Replaces the function of the library, by which array_print() reads each element once per pass. */
int shmview_get_bytes(const struct shmview_view *view, const ptrdiff_t *index, void *ret)
{
    (void)index;
    const double x = passes[n_read++ / n_elements], both[] = {x, x};
    memcpy(ret, both, view->itemsize);
    return 0;
}

/* Prints n elements that change from pass to pass. Returns the text, which the caller frees. */
static char *print_changing(const char *format, int n, const double numbers[PASSES])
{
    static double memory[8];
    const int64_t shape[] = {n};
    const struct shmview_view_spec spec = {.format = format, .ndim = 1, .shape = shape};
    const struct array_style style = {.width = 80};
    struct shmview_segment *segment;
    struct shmview_view view;
    char *text = NULL;
    size_t bytes;
    passes = numbers;
    n_elements = n;
    n_read = 0;
    ck_assert_int_eq(shmview_wrap(memory, sizeof memory, 0, NULL, NULL, &segment), 0);
    ck_assert_int_eq(shmview_view_make(segment, &spec, &view), 0);
    FILE *out = open_memstream(&text, &bytes);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(array_print(&view, &style, out), 0);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_int_eq(n_read, n * PASSES);
    ck_assert_int_eq(shmview_detach(segment), 0);
    return text;
}

/* The text must be short, and have the characters of two numbers. */
static void assert_printed(const char *format, double range, double width, double print)
{
    const double numbers[PASSES] = {range, width, print};
    char *text = print_changing(format, 2, numbers);
    size_t n = strlen(text);
    ck_assert_msg(text[0] == '[' && text[n - 1] == ']', "%s", text);
    ck_assert_msg(n < 4 * 128, "%zu characters", n);
    for (const char *p = text; *p; p++)
        ck_assert_msg(strchr("[] \n0123456789.+-einfaj", *p), "%s", text);
    ck_assert_msg((format[0] == 'Z') == (strchr(text, 'j') != NULL), "%s", text);
    free(text);
}

START_TEST(changes)
{
    static const double numbers[] = {0,       1,      -1.5,          1e300,    -1e300,    1e-300,
                                     1.0 / 3, 123456, 99999999.9999, INFINITY, -INFINITY, NAN};
    enum {
        N = sizeof numbers / sizeof numbers[0]
    };
    for (int i = 0; i < N * N * N; i++) {
        assert_printed("Zd", numbers[i / N / N], numbers[i / N % N], numbers[i % N]);
        assert_printed("d", numbers[i / N / N], numbers[i / N % N], numbers[i % N]);
    }
}
END_TEST

/* Without a change the widest numbers keep their columns. */
START_TEST(widest)
{
    const double numbers[PASSES] = {-99999999.125, -99999999.125, -99999999.125};
    char *text = print_changing("Zd", 1, numbers);
    ck_assert_str_eq(text, "[-99999999.125-99999999.125j]");
    free(text);
}
END_TEST

UNIT_MAIN("cli_array", UNIT_TEST(changes), UNIT_TEST(widest))
