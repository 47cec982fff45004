/* SPDX-License-Identifier: Apache-2.0 */
/* A struct from the text that fields_text() wrote, by the same table: for replies that come
 * often, from a peer that is trusted. It knows no other JSON than that. What is not so (spaces,
 * another order, unknown members, escapes, arrays with something in them) is left to jansson. */
#ifndef COMMON_FIELDS_SCAN_H
#define COMMON_FIELDS_SCAN_H

#include "common/json/fields.h"

struct fields_scan {
    const char *at; /* text that ends with a NUL */
    char *room;     /* where strings are copied to */
    size_t room_bytes;
};

/* Reads an object. Optional members that are absent leave what *ret holds. Returns whether it was
 * one, with every number and string in its limits; then scan->at is behind it. */
bool fields_scan(struct fields_scan *scan, const struct field *fields, void *ret);

/* The members of an object, without its braces. */
bool fields_scan_members(struct fields_scan *scan, const struct field *fields, void *ret);

/* Passes over exactly that text. Returns whether it is there. */
bool fields_scan_literal(struct fields_scan *scan, const char *literal);

#endif
