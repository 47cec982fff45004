/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a struct from text that fields_text() wrote, by the same table. It is for the reply to an
 * attachment, which a client reads often, for the requests Attach and Detach, and for the reply to
 * Stats, which can describe 100,000 segments: without values in between the reply to an attachment
 * takes 0.5 us, and by jansson 11 us.
 *
 * It accepts no JSON but that exact form. Text with spaces, another order, unknown members,
 * escapes, characters beyond ASCII, negative numbers, numbers of more than 18 digits, or arrays
 * that are not empty, other than a FIELD_LIST, is refused without an error, and the caller reads it
 * by json_read(). Every number and every string is checked as by fields_read(). The daemon uses
 * this for text of clients, so nothing may be accepted here that fields_read() would refuse. The
 * arrays of fields_scan_array() are an exception: only a client, which trusts its daemon, reads
 * those. */
#ifndef COMMON_FIELDS_SCAN_H
#define COMMON_FIELDS_SCAN_H

#include "common/json/fields.h"

/* The state of a scan. The caller sets all of it; at, room and room_bytes advance. */
struct fields_scan {
    const char *at;    /* the rest of the text, which ends with a NUL */
    char *room;        /* where strings are copied to; they are borrowed from there */
    size_t room_bytes; /* that are left; a string that does not fit is refused */
};

/* Reads an object. Optional members that are absent leave the values that *ret has. Returns whether
 * an object of that form was there, with every number and string within its limits. Then scan->at
 * is after it; otherwise *scan and *ret are undefined, except that *ret has each FIELD_LIST that
 * was begun. Only such a list is allocated, and the caller frees it as after fields_read(). */
bool fields_scan(struct fields_scan *scan, const struct field *fields, void *ret);

/* Like fields_scan(), but reads the members of an object without its braces. */
bool fields_scan_members(struct fields_scan *scan, const struct field *fields, void *ret);

/* Skips an array without reading its elements. *ret is its text with the brackets, borrowed, and
 * *ret_n the bytes of it. Only the brackets are compared, so the text between them need not be
 * JSON. Returns whether an array without escapes in its strings was there. */
bool fields_scan_array(struct fields_scan *scan, const char **ret, size_t *ret_n);

/* Skips exactly that text. Returns whether it was there. */
bool fields_scan_literal(struct fields_scan *scan, const char *literal);

#endif
