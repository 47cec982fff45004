/* SPDX-License-Identifier: Apache-2.0 */
/* Compares random views of small segments, and series of random operations on them, with lists of
 * elements. See runner.h for the options. */
#include <stdio.h>

#include "play.h"
#include "runner.h"

struct tally {
    struct play play;
    unsigned long n_views, n_held, n_indirect, n_found;
};

static const char *play(void *state, struct choices *from)
{
    struct tally *t = state;
    bool ok = play_case(&t->play, from);
    play_deinit(&t->play);
    t->n_views++;
    t->n_held += t->play.holds;
    t->n_indirect += t->play.holds && t->play.is_indirect;
    t->n_found += t->play.n_found;
    return ok ? NULL : t->play.wrong;
}

static const char *story(const void *state)
{
    return ((const struct tally *)state)->play.c.story.text;
}

static const char *summary(const void *state)
{
    static const char *const names[N_MOVES] = {"slice",     "index",     "reshape", "recast",
                                               "transpose", "broadcast", "field"};
    const struct tally *t = state;
    const char *why = NULL;
    printf("%lu views, of which %lu hold, %lu of them with suboffsets, by which %lu elements were "
           "found\n",
           t->n_views, t->n_held, t->n_indirect, t->n_found);
    if (t->n_held < t->n_views / 4 || t->n_held > t->n_views / 10 * 9)
        why = "too few views are right, or wrong";
    if (t->n_indirect < t->n_views / 50 || t->n_found < t->n_views / 10)
        why = "too few views have suboffsets that lead somewhere";
    for (size_t i = 0; i < N_MOVES; i++) {
        unsigned long yes = t->play.accepted[i], no = t->play.refused[i];
        printf("%s: done %lu times, refused %lu times\n", names[i], yes, no);
        if (yes < t->n_views / 50 || no < t->n_views / 100)
            why = "an operation is too rarely right, or wrong";
    }
    return why;
}

int main(int argc, char **argv)
{
    static const struct property property = {.name = "check_view_model",
                                             .state_bytes = sizeof(struct tally),
                                             .play = play,
                                             .story = story,
                                             .summary = summary};
    return property_main(&property, argc, argv);
}
