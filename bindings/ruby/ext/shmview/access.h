/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - the users who may use a segment, as arguments of create and set_access. */
#ifndef ACCESS_H
#define ACCESS_H

#include "core.h"

#define ACCESS_ENTRIES 32 /* the limit of one segment */

/* A change of the rights, with all that it points to. */
struct access {
    struct shmview_access_change change;
    struct shmview_access_entry entries[ACCESS_ENTRIES];
    VALUE texts; /* keeps the names of the entries; the user of the struct keeps this object */
};

/* Fills *ret, which must not be moved later, from [mode, owner, group, entries]. nil stands for no
 * change; an entry is [kind, right, name], with the numbers of shmview/access.h. Raises Limit,
 * RangeError, TypeError. */
void access_read(VALUE change, struct access *ret);

#endif
