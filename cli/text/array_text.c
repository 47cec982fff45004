/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers stand in columns of equal width, as numpy prints them. So the width must be known before
 * the first number is printed, and visit() goes through the elements up to three times:
 *
 *   PASS_RANGE   finds the least and the largest float, which decide whether exponents are used
 *   PASS_WIDTH   finds the most characters before and after the point
 *   PASS_PRINT   prints
 *
 * Each pass reads the elements again, so that no list of texts is kept. Text and structs are
 * printed as they are, in one pass. */
#include "cli/text/array_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/shmview.h>

#include "cli/data/scalar.h"
#include "cli/text/element_text.h"

/* numpy's limits: floats have exponents if the largest is at least FIXED_MOST, the least is below
 * FIXED_LEAST, or the largest is more than FIXED_RANGE times the least. Zeros do not count. */
#define FIXED_MOST  1e8L
#define FIXED_LEAST 1e-4L
#define FIXED_RANGE 1e3L

/* The most characters before and after the point: a sign and the digits of a number below
 * FIXED_MOST, which may be rounded up. An element that changes between two passes can be larger,
 * and gets no column for its hundreds of digits. */
#define LEFT_MOST  10
#define RIGHT_MOST ARRAY_PRECISION

/* How all floats of an array are written. Complex elements have two of these, because numpy aligns
 * real and imaginary parts separately. */
struct float_style {
    bool is_exponential;
    int left, right; /* characters before and after the point */
    int exponent;    /* digits of the exponent */
    bool has_plus;   /* a sign is always printed: imaginary parts */
    bool has_number; /* a finite number other than 0 exists, so least and most are valid */
    bool has_finite, has_special, has_minus_inf;
    long double least, most; /* magnitudes of these numbers */
};

/* An array while it is printed. */
struct array {
    const struct shmview_view *view;
    const struct array_style *style;
    FILE *out;
    struct element_type type;
    unsigned char *bytes; /* of the current element */
    struct float_style parts[2];
    int width; /* of the widest integer or bool */
    bool is_summary;
    size_t column;    /* characters of the line so far, pending blanks included */
    size_t blanks;    /* pending blanks, see put() */
    unsigned hanging; /* open brackets: blanks before a new line */
    char *word;       /* text of the current element */
    size_t word_room; /* for open_memstream() */
    ptrdiff_t index[SHMVIEW_MAX_NDIM];
};

/* --- Floats ----------------------------------------------------------------- */

/* PASS_RANGE for one float. */
static void style_range(struct float_style *s, long double x)
{
    s->has_minus_inf |= isinf(x) && x < 0;
    s->has_special |= !isfinite(x);
    s->has_finite |= isfinite(x) != 0;
    if (!isfinite(x) || x == 0)
        return;
    x = fabsl(x);
    s->least = s->has_number && s->least < x ? s->least : x;
    s->most = s->has_number && s->most > x ? s->most : x;
    s->has_number = true;
}

/* Finds the digits of x: the shortest ones that distinguish it from other floats of its type, or,
 * if that has more than ARRAY_PRECISION digits after the point, x rounded to so many. printf()
 * rounds; its text is then read back into digits, without zeros at the end. */
static void digits_for(const struct float_style *s, long double x, uint32_t dtype, struct digits *d)
{
    char text[SCALAR_DIGITS + 64];
    scalar_digits(x, dtype, d);
    int most = s->is_exponential ? ARRAY_PRECISION + 1 : d->point + ARRAY_PRECISION;
    if (!d->is_finite || d->n <= most)
        return;
    const char *p = text;
    if (s->is_exponential)
        snprintf(text, sizeof text, "%.*Le", ARRAY_PRECISION, fabsl(x));
    else
        snprintf(text, sizeof text, "%.*Lf", ARRAY_PRECISION, fabsl(x));
    d->n = 0;
    d->point = 0;
    for (bool after = false; *p && *p != 'e'; p++) {
        if (*p == '.') {
            after = true;
            continue;
        }
        if (*p == '0' && d->n == 0) { /* zeros in front move the point */
            d->point -= after;
            continue;
        }
        d->text[d->n++] = *p;
        d->point += !after;
    }
    if (*p == 'e')
        d->point = atoi(p + 1) + 1;
    while (d->n > 0 && d->text[d->n - 1] == '0')
        d->n--;
    if (d->n == 0) {
        d->text[d->n++] = '0';
        d->point = 1;
    }
    d->text[d->n] = '\0';
}

/* numpy writes at least two digits of the exponent. */
static int exponent_digits(int exponent)
{
    return abs(exponent) >= 1000 ? 4 : abs(exponent) >= 100 ? 3 : 2;
}

/* PASS_WIDTH for one float: how many characters it takes before and after the point. */
static void style_measure(struct float_style *s, long double x, uint32_t dtype)
{
    struct digits d;
    if (!isfinite(x))
        return;
    digits_for(s, x, dtype, &d);
    int left = (d.is_negative || s->has_plus) + (s->is_exponential ? 1 : d.point > 0 ? d.point : 1);
    int right = s->is_exponential ? d.n - 1 : d.n > d.point ? d.n - d.point : 0;
    int exponent = x == 0 ? 2 : exponent_digits(d.point - 1);
    if (!s->is_exponential && x == 0)
        right = 0;
    left = left < LEFT_MOST ? left : LEFT_MOST;
    right = right < RIGHT_MOST ? right : RIGHT_MOST;
    s->left = left > s->left ? left : s->left;
    s->right = right > s->right ? right : s->right;
    s->exponent = exponent > s->exponent ? exponent : s->exponent;
}

/* Decides between passes 1 and 2 whether exponents are used. */
static void style_decide(struct float_style *s)
{
    s->is_exponential = s->has_number && (s->most >= FIXED_MOST || s->least < FIXED_LEAST ||
                                          s->most / s->least > FIXED_RANGE);
}

/* Makes room for nan and inf, if they are wider than the finite numbers. Called after PASS_WIDTH.
 */
static void style_finish(struct float_style *s)
{
    int after = 1 + s->right + (s->is_exponential ? s->exponent + 2 : 0);
    int special = (int)strlen("nan") + (s->has_plus || s->has_minus_inf);
    if (s->has_special && special - after > s->left)
        s->left = special - after;
}

/* Writes x to text, in the width that all floats of the style have; or wider, if x has changed
 * since it was measured. Returns like snprintf(). */
static int put_float(const struct float_style *s, long double x, uint32_t dtype, char *text,
                     size_t bytes)
{
    struct digits d;
    char body[SCALAR_DIGITS + 32];
    int whole = s->left + 1 + s->right + (s->is_exponential ? s->exponent + 2 : 0);
    const char *sign = signbit(x) && !isnan(x) ? "-" : s->has_plus ? "+" : "";
    if (!isfinite(x)) {
        snprintf(body, sizeof body, "%s%s", sign, isnan(x) ? "nan" : "inf");
        return snprintf(text, bytes, "%*s", whole, body);
    }
    digits_for(s, x, dtype, &d);
    if (s->is_exponential) {
        int exponent = x == 0 ? 0 : d.point - 1;
        snprintf(body, sizeof body, "%s%c.%s%.*se%c%0*d", sign, d.text[0], d.text + 1,
                 s->right - (d.n - 1), "0000000000", exponent < 0 ? '-' : '+', s->exponent,
                 abs(exponent));
        return snprintf(text, bytes, "%*s", whole, body);
    }
    if (d.point <= 0)
        snprintf(body, sizeof body, "%s0.%.*s%s", sign, -d.point, "0000000000", d.text);
    else if (d.n <= d.point)
        snprintf(body, sizeof body, "%s%s%.*s.", sign, d.text, d.point - d.n, "0000000000");
    else
        snprintf(body, sizeof body, "%s%.*s.%s", sign, d.point, d.text, d.text + d.point);
    /* numpy's trim='.': blanks take the place of the zeros after the last digit */
    int n = (int)strlen(strchr(body, '.')) - 1;
    return snprintf(text, bytes, "%*s%*s", whole - (s->right - n), body, s->right - n, "");
}

/* --- Words ------------------------------------------------------------------ */

/* Whether the elements stand in columns as wide as the widest number: not text, structs and bytes.
 */
static bool has_columns(const struct array *a)
{
    return !a->style->is_hex && shmview_dtype_kind(a->type.whole.dtype) > SHMVIEW_VALUE_BYTES;
}

enum pass {
    PASS_RANGE,
    PASS_WIDTH,
    PASS_PRINT,
};

/* Measures the element in a->bytes in one of the first two passes. */
static void measure(struct array *a, enum pass pass)
{
    const uint32_t dtype = a->type.whole.dtype;
    struct shmview_value s;
    char text[SCALAR_TEXT_BYTES];
    shmview_value_load(dtype, a->type.whole.nbytes, a->bytes, &s);
    if (s.kind < SHMVIEW_VALUE_REAL) {
        int n = (int)strlen(scalar_text(dtype, &s, text));
        a->width = n > a->width ? n : a->width;
        return;
    }
    for (int part = 0; part <= (s.kind == SHMVIEW_VALUE_COMPLEX); part++)
        if (pass == PASS_RANGE)
            style_range(&a->parts[part], s.z[part]);
        else
            style_measure(&a->parts[part], s.z[part], scalar_part(dtype));
}

/* Writes the number in a->bytes to text, in the width of its column. The j of an imaginary part
 * follows its last digit, before the blanks that fill the column. */
static void put_number(struct array *a, char *text, size_t bytes)
{
    const uint32_t dtype = a->type.whole.dtype;
    struct shmview_value s;
    char number[SCALAR_TEXT_BYTES];
    shmview_value_load(dtype, a->type.whole.nbytes, a->bytes, &s);
    if (s.kind < SHMVIEW_VALUE_REAL) {
        snprintf(text, bytes, "%*s", a->width, scalar_text(dtype, &s, number));
        return;
    }
    const size_t room = bytes - 1; /* for all but the j */
    size_t n = (size_t)put_float(&a->parts[0], s.z[0], scalar_part(dtype), text, room);
    if (s.kind == SHMVIEW_VALUE_REAL)
        return;
    n = n < room ? n : room - 1;
    put_float(&a->parts[1], s.z[1], scalar_part(dtype), text + n, room - n);
    size_t length = strlen(text), end = length;
    while (end && text[end - 1] == ' ')
        end--;
    memmove(text + end + 1, text + end, length - end + 1);
    text[end] = 'j';
}

/* Writes the element in a->bytes to a->word. Returns 0 or -SHMVIEW_ERR_NO_MEMORY. */
static int make_word(struct array *a)
{
    char number[2 * SCALAR_TEXT_BYTES];
    FILE *out;
    free(a->word);
    a->word = NULL;
    if (has_columns(a)) {
        put_number(a, number, sizeof number);
        a->word = strdup(number);
        return a->word ? 0 : -SHMVIEW_ERR_NO_MEMORY;
    }
    out = open_memstream(&a->word, &a->word_room);
    if (!out)
        return -SHMVIEW_ERR_NO_MEMORY;
    if (a->style->is_hex)
        element_print_hex(&a->type, a->bytes, out);
    else
        element_print(&a->type, a->bytes, out);
    return fclose(out) || !a->word ? -SHMVIEW_ERR_NO_MEMORY : 0;
}

/* --- Lines ------------------------------------------------------------------ */

/* Prints text on the current line. Blanks at its end wait until something follows, because numpy
 * leaves none at the end of a line. */
static void put(struct array *a, const char *text)
{
    size_t n = strlen(text), end = n;
    while (end && text[end - 1] == ' ')
        end--;
    a->column += n;
    if (end == 0) {
        a->blanks += n;
        return;
    }
    fprintf(a->out, "%*s%.*s", (int)a->blanks, "", (int)end, text);
    a->blanks = n - end;
}

/* Begins a line below the innermost open bracket, and drops pending blanks. */
static void new_line(struct array *a)
{
    fprintf(a->out, "\n%*s", (int)(a->style->margin + a->hanging), "");
    a->column = a->hanging;
    a->blanks = 0;
}

/* Prints a word of the last dimension, on a new line if it does not fit into this one. room is the
 * width of a line less the brackets that must follow. */
static void put_word(struct array *a, const char *word, bool is_first, size_t room)
{
    size_t blank = !is_first;
    if (!is_first && a->column + blank + strlen(word) > room)
        new_line(a);
    else if (blank)
        put(a, " ");
    put(a, word);
}

/* Whether the middle of dimension d is left out. */
static bool leaves_out(const struct array *a, uint32_t d)
{
    return a->is_summary && a->view->shape[d] > 2 * ARRAY_EDGE;
}

static int visit(struct array *a, uint32_t d, enum pass pass);

/* Prints entry i of dimension d: an element, or all of the next dimension, separated from the entry
 * before it by as many empty lines as numpy puts there. */
static int print_item(struct array *a, uint32_t d, ptrdiff_t i, bool is_first, size_t room)
{
    int r;
    bool is_last_dimension = d + 1 == a->view->ndim;
    a->index[d] = i;
    if (is_last_dimension) {
        r = shmview_get_bytes(a->view, a->index, a->bytes);
        r = r ? r : make_word(a);
        if (r == 0)
            put_word(a, a->word, is_first, room);
        return r;
    }
    for (uint32_t k = 0; !is_first && k + d + 2 < a->view->ndim; k++)
        fputc('\n', a->out);
    if (!is_first)
        new_line(a);
    return visit(a, d + 1, PASS_PRINT);
}

/* Prints all of dimension d in brackets. A line keeps room for the brackets that close it. */
static int print_dimension(struct array *a, uint32_t d)
{
    const ptrdiff_t n = a->view->shape[d];
    const size_t width = a->style->width > d + 1 ? a->style->width - (d + 1) : 0;
    const unsigned hanging = a->hanging;
    int r = 0;
    put(a, "[");
    a->hanging = hanging + 1;
    for (ptrdiff_t i = 0; r == 0 && i < n; i++) {
        if (leaves_out(a, d) && i == ARRAY_EDGE) {
            i = n - ARRAY_EDGE;
            for (uint32_t k = 0; k + d + 2 < a->view->ndim; k++)
                fputc('\n', a->out);
            if (d + 1 < a->view->ndim) {
                new_line(a);
                put(a, "...");
            } else {
                put_word(a, "...", false, width);
            }
        }
        r = print_item(a, d, i, i == 0, width);
    }
    a->hanging = hanging;
    put(a, "]");
    return r;
}

/* Goes through the shown elements of dimensions d and higher, in C order: measures or prints each.
 * Returns 0 or an error of the library. */
static int visit(struct array *a, uint32_t d, enum pass pass)
{
    int r = 0;
    if (pass == PASS_PRINT)
        return print_dimension(a, d);
    if (d == a->view->ndim) {
        r = shmview_get_bytes(a->view, a->index, a->bytes);
        if (r == 0)
            measure(a, pass);
        return r;
    }
    const ptrdiff_t n = a->view->shape[d];
    for (ptrdiff_t i = 0; r == 0 && i < n; i++) {
        if (leaves_out(a, d) && i == ARRAY_EDGE)
            i = n - ARRAY_EDGE;
        a->index[d] = i;
        r = visit(a, d + 1, pass);
    }
    return r;
}

/* Parses the format and makes room for one element. end() is owed in any case. */
static int begin(struct array *a)
{
    int r = element_type_init(&a->type, a->view->format);
    if (r)
        return r;
    a->bytes = malloc(a->type.whole.nbytes);
    return a->bytes ? 0 : -SHMVIEW_ERR_NO_MEMORY;
}

static void end(struct array *a)
{
    free(a->bytes);
    free(a->word);
}

/* Number of elements. */
static uint64_t count(const struct shmview_view *view)
{
    return view->nbytes / view->itemsize;
}

/* Makes all passes that the type of the elements needs. */
static int print_columns(struct array *a)
{
    int r = 0;
    if (has_columns(a)) {
        r = visit(a, 0, PASS_RANGE);
        style_decide(&a->parts[0]);
        style_decide(&a->parts[1]);
        r = r ? r : visit(a, 0, PASS_WIDTH);
        style_finish(&a->parts[0]);
        style_finish(&a->parts[1]);
    }
    return r ? r : visit(a, 0, PASS_PRINT);
}

int array_print(const struct shmview_view *view, const struct array_style *style, FILE *out)
{
    struct array a = {.view = view, .style = style, .out = out};
    int r = begin(&a);
    a.parts[1].has_plus = true; /* 1.+2.j */
    a.is_summary = !style->all && count(view) > ARRAY_THRESHOLD;
    if (r == 0 && count(view) == 0) {
        put(&a, "[]");
    } else if (r == 0 && view->ndim == 0) {
        r = shmview_get_bytes(view, a.index, a.bytes);
        if (r == 0 && style->is_hex)
            element_print_hex(&a.type, a.bytes, out);
        else if (r == 0)
            element_print(&a.type, a.bytes, out);
    } else if (r == 0) {
        r = print_columns(&a);
    }
    end(&a);
    return r;
}

/* Prints dimensions d and higher as nested lists. JSON needs no columns, and so one pass. */
static int print_json(struct array *a, uint32_t d)
{
    int r = 0;
    if (d == a->view->ndim) {
        r = shmview_get_bytes(a->view, a->index, a->bytes);
        if (r == 0 && a->style->is_hex) {
            fputc('"', a->out);
            element_print_hex(&a->type, a->bytes, a->out);
            fputc('"', a->out);
        } else if (r == 0) {
            element_print_json(&a->type, a->bytes, a->out);
        }
        return r;
    }
    fputc('[', a->out);
    for (ptrdiff_t i = 0; r == 0 && i < a->view->shape[d]; i++) {
        if (i)
            fputs(", ", a->out);
        a->index[d] = i;
        r = print_json(a, d + 1);
    }
    fputc(']', a->out);
    return r;
}

int array_print_json(const struct shmview_view *view, bool is_hex, FILE *out)
{
    const struct array_style style = {.is_hex = is_hex};
    struct array a = {.view = view, .style = &style, .out = out};
    int r = begin(&a);
    r = r ? r : print_json(&a, 0);
    end(&a);
    return r;
}
