/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold for every format, valid or not. */
#ifndef PROPERTY_FORMAT_RULES_H
#define PROPERTY_FORMAT_RULES_H

#include "common/views/format.h"
#include "tree.h"

/* One text that is tested. */
struct format_trial {
    char text[3 * SHMVIEW_FORMAT_BYTES];
    char wrong[300]; /* "" if nothing is wrong */
    struct meaning wanted, got;
};

/* Stores the text of the difference in t->wrong. Returns false. */
__attribute__((format(printf, 2, 3))) bool trial_differs(struct format_trial *t, const char *format,
                                                         ...);

/* Writes the parser's result in the terms of tree.h. */
void meaning_of(const struct format *f, struct meaning *ret);
bool same_meaning(struct format_trial *t, const struct meaning *got, const struct meaning *wanted);

/* Parses t->text. *ret is the format, which was checked, or NULL if it was refused correctly.
 * Returns true, or false with t->wrong set if a rule is broken. */
bool trial_parse(struct format_trial *t, struct formats *pool, const struct format **ret);

#endif
