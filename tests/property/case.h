/* SPDX-License-Identifier: Apache-2.0 */
/* A case: a small segment, a description of a view, and what is done to it, all chosen from a
 * string of bytes; and its story in words. */
#ifndef PROPERTY_CASE_H
#define PROPERTY_CASE_H

#include "choices.h"
#include "model.h"

#define CASE_SEGMENT_BYTES 256

/* One line that grows. */
struct story {
    char text[6000];
    size_t n;
};
__attribute__((format(printf, 2, 3))) void tell(struct story *story, const char *format, ...);
void tell_list(struct story *story, const char *what, const int64_t *list, uint32_t n);

struct view_case {
    struct formats formats;
    struct memory memory; /* exactly size bytes, so that a sanitizer sees the one after */
    struct view_desc desc;
    struct story story;
};

/* Owes case_deinit(). */
void case_init(struct view_case *c, struct choices *from);
void case_deinit(struct view_case *c);

/* A format of at most most bytes: of one letter, or any of tree.h. */
const struct format *case_format(struct view_case *c, struct choices *from, uint32_t most);

/* A number from the edges of int64_t, or any. */
int64_t case_extreme(struct choices *from);

/* The same now and then; else one of low to high. */
int64_t case_number(struct choices *from, int64_t low, int64_t high);

#endif
