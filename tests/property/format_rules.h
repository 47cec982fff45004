/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of every format, whoever wrote it. */
#ifndef PROPERTY_FORMAT_RULES_H
#define PROPERTY_FORMAT_RULES_H

#include "common/views/format.h"
#include "tree.h"

/* One text that is tried. */
struct format_trial {
    char text[3 * SHMVIEW_FORMAT_BYTES];
    char wrong[300]; /* "" while nothing is */
    struct meaning wanted, got;
};

/* Notes what is wrong. Returns false. */
__attribute__((format(printf, 2, 3))) bool trial_differs(struct format_trial *t, const char *format,
                                                         ...);

/* What the parser says, in the words of tree.h. */
void meaning_of(const struct format *f, struct meaning *ret);
bool same_meaning(struct format_trial *t, const struct meaning *got, const struct meaning *wanted);

/* Parses t->text; *ret is the format, which has been checked, or NULL if it was refused in
 * good order. Returns false, with t->wrong, if something is wrong with it. */
bool trial_parse(struct format_trial *t, struct formats *pool, const struct format **ret);

#endif
