/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a name. The daemon writes that of each layout into the control object, and clients
 * find the index of a layout by it without asking the daemon. The check of a layout compares the
 * hashes of its views before their names. */
#ifndef COMMON_LAYOUT_HASH_H
#define COMMON_LAYOUT_HASH_H

#include <stdint.h>

/* FNV-1a with 64 bits (Fowler, Noll, Vo; RFC 9923). Never 0, because 0 marks an entry without
 * layout. */
static inline uint64_t layout_hash(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

#endif
