/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the parser with the meaning of random formats, which are made as trees and evaluated
 * without the parser. Then it changes bytes of their texts and checks what holds of any text. See
 * runner.h for the options. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format_rules.h"
#include "runner.h"
#include "tree.h"

struct tally {
    struct format_trial trial;
    struct tree tree;
    unsigned long n_formats, n_mutants, n_mutants_parsed;
};

/* --- Mutants ------------------------------------------------------------- */

static void mutate(char *text, size_t bytes, struct choices *from)
{
    static const char alphabet[] = "bBhHiIlLqQnN?cPefdgZsp0123456789(),:{}T@=<>!^x |\"\\S-\xc3";
    for (int64_t n = choose(from, 1, 4); n > 0; n--) {
        size_t length = strlen(text), at = (size_t)choose(from, 0, 255) % (length + 1);
        char c = alphabet[choose(from, 0, sizeof alphabet - 2)];
        int64_t kind = choose(from, 0, 4);
        if (kind == 0 && length + 2 < bytes) {
            memmove(text + at + 1, text + at, length - at + 1);
            text[at] = c;
        } else if (kind == 1 && at < length) {
            memmove(text + at, text + at + 1, length - at);
        } else if (kind == 2 && at < length) {
            text[at] = c;
        } else if (kind == 3 && at < length) {
            text[at] = (char)choose(from, 0, 255);
        } else if (2 * length - at + 1 < bytes) { /* repeats the rest */
            memmove(text + length, text + at, length - at);
            text[2 * length - at] = '\0';
        }
    }
}

/* Repeats the text many times and nests it in many braces, up to the limits and beyond them. */
static void swell(char *text, size_t bytes, struct choices *from)
{
    size_t n = strlen(text), length = n;
    for (int64_t more = choose(from, 0, 70); more > 0 && length + n < bytes / 2; more--) {
        memcpy(text + length, text, n);
        length += n;
    }
    for (int64_t deep = choose(from, 0, 9); deep > 0 && length + 4 < bytes; deep--) {
        memmove(text + 3, text, length);
        memcpy(text, "bT{", 3);
        length += 3;
        text[length++] = '}';
    }
    text[length] = '\0';
}

static bool play_mutant(struct tally *t, struct formats *pool, struct choices *from)
{
    const struct format *f;
    if (choose_rarely(from, 8))
        swell(t->trial.text, sizeof t->trial.text, from);
    if (!choose_rarely(from, 8))
        mutate(t->trial.text, sizeof t->trial.text, from);
    bool ok = trial_parse(&t->trial, pool, &f);
    t->n_mutants++;
    t->n_mutants_parsed += f != NULL;
    return ok;
}

static bool play_tree(struct tally *t, struct formats *pool, struct choices *from)
{
    struct meaning wanted, got;
    const struct format *f;
    tree_generate(&t->tree, from);
    tree_write(&t->tree, t->trial.text, sizeof t->trial.text);
    tree_evaluate(&t->tree, &wanted);
    t->n_formats++;
    if (!trial_parse(&t->trial, pool, &f))
        return false;
    if (f && wanted.has_too_many)
        return trial_differs(&t->trial, "accepted with more than 8 dimensions");
    if (!f && wanted.itemsize > 0 && wanted.itemsize <= INT32_MAX && !wanted.has_too_many)
        return trial_differs(&t->trial, "refused, but it has %" PRIu64 " bytes", wanted.itemsize);
    if (!f)
        return true;
    meaning_of(f, &got);
    return same_meaning(&t->trial, &got, &wanted);
}

/* --- The program --------------------------------------------------------- */

static const char *play(void *state, struct choices *from)
{
    struct tally *t = state;
    struct formats pool = {0};
    t->trial.wrong[0] = '\0';
    bool ok = play_tree(t, &pool, from);
    for (int i = 0; ok && i < 3; i++)
        ok = play_mutant(t, &pool, from);
    formats_deinit(&pool);
    return ok ? NULL : t->trial.wrong;
}

static const char *story(const void *state)
{
    return ((const struct tally *)state)->trial.text;
}

static const char *summary(const void *state)
{
    const struct tally *t = state;
    printf("%lu formats; %lu mutants, of which %lu mean something\n", t->n_formats, t->n_mutants,
           t->n_mutants_parsed);
    if (t->n_mutants_parsed < t->n_mutants / 20 || t->n_mutants_parsed > t->n_mutants / 10 * 9)
        return "too few mutants are right, or wrong";
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct property property = {.name = "check_format_model",
                                             .state_bytes = sizeof(struct tally),
                                             .play = play,
                                             .story = story,
                                             .summary = summary};
    return property_main(&property, argc, argv);
}
