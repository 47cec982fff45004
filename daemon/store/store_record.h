/* SPDX-License-Identifier: Apache-2.0 */
/* A segment as the registry keeps it: what has a fixed length, the entries of its access
 * control list, its name and a NUL. */
#ifndef DAEMON_STORE_RECORD_H
#define DAEMON_STORE_RECORD_H

#include "daemon/store/store.h"

/* Fills record, which has room for a struct store_segment. Returns its bytes. */
size_t store_record_write(const struct store_segment *segment, char *record);

/* Returns whether these bytes are one. What it holds is yet to be judged. */
bool store_record_read(const void *record, size_t bytes, struct store_segment *ret);

#endif
