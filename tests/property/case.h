/* SPDX-License-Identifier: Apache-2.0 */
/* A case is a small segment, a description of a view, and operations on it. All are chosen from a
 * string of bytes, and the story describes them in words. */
#ifndef PROPERTY_CASE_H
#define PROPERTY_CASE_H

#include "choices.h"
#include "model.h"

#define CASE_SEGMENT_BYTES 256

/* One line of text that grows. */
struct story {
    char text[6000];
    size_t n;
};
__attribute__((format(printf, 2, 3))) void tell(struct story *story, const char *format, ...);
void tell_list(struct story *story, const char *what, const int64_t *list, uint32_t n);

struct view_case {
    struct formats formats;
    struct memory memory; /* of exactly its size, so that a sanitizer reports an access beyond it */
    struct view_desc desc;
    struct story story;
};

/* Initialises c; the caller must call case_deinit(). */
void case_init(struct view_case *c, struct choices *from);
void case_deinit(struct view_case *c);

/* Returns a format of at most `most` bytes: one letter, or any format of tree.h. */
const struct format *case_format(struct view_case *c, struct choices *from, uint32_t most);

/* Returns a number near the limits of int64_t, or any number. */
int64_t case_extreme(struct choices *from);

/* Like case_extreme() now and then, but mostly from low to high. */
int64_t case_number(struct choices *from, int64_t low, int64_t high);

#endif
