/* SPDX-License-Identifier: Apache-2.0 */
/* The form of the record of a segment: the members of fixed length, the used entries of its access
 * control list, its name and a NUL; then its label and a NUL if it has one, and its placement if it
 * has one. A struct store_segment as it is would take several times the room for a usual segment.
 */
#ifndef DAEMON_STORE_RECORD_H
#define DAEMON_STORE_RECORD_H

#include "daemon/store/store.h"

/* Writes a record; `record` has room for a struct store_segment. Returns its length. */
size_t store_record_write(const struct store_segment *segment, char *record);

/* Reads a record. Returns whether the bytes have its form. The caller must check values. */
bool store_record_read(const void *record, size_t bytes, struct store_segment *ret);

#endif
