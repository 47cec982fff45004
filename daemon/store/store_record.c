/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/store_record.h"

#include <string.h>

_Static_assert(sizeof(struct store_holder) == 24, "records have no gaps");
_Static_assert(offsetof(struct store_segment, access) == 88, "records have no gaps");
_Static_assert(sizeof(struct access_entry) == 8, "records have no gaps");
_Static_assert(sizeof(struct store_placement) == 24, "records have no gaps");

/* The members of fixed length, which come before the entries of the access control list. */
#define SEGMENT_FIXED_BYTES                                                                        \
    (offsetof(struct store_segment, access) + offsetof(struct access, entries))

size_t store_record_write(const struct store_segment *segment, char *record)
{
    size_t acl = segment->access.n_entries * sizeof segment->access.entries[0];
    size_t n = SEGMENT_FIXED_BYTES + acl, name = strlen(segment->name) + 1;
    memcpy(record, segment, n); /* in both, the entries follow the fixed members */
    memcpy(record + n, segment->name, name);
    n += name;
    if (segment->label[0]) {
        size_t label = strlen(segment->label) + 1;
        memcpy(record + n, segment->label, label);
        n += label;
    }
    if (!(segment->flags & STORE_PLACED))
        return n;
    memcpy(record + n, &segment->placement, sizeof segment->placement);
    return n + sizeof segment->placement;
}

/* Copies the text at *at, which ends with a NUL before end, and moves *at past it. Returns whether
 * it has 1 to room - 1 bytes. */
static bool take_text(const char **at, const char *end, char *ret, size_t room)
{
    size_t n = strnlen(*at, (size_t)(end - *at));
    if (n == 0 || n >= room || *at + n == end)
        return false;
    memcpy(ret, *at, n);
    *at += n + 1;
    return true;
}

bool store_record_read(const void *record, size_t bytes, struct store_segment *ret)
{
    *ret = (struct store_segment){0};
    if (bytes < SEGMENT_FIXED_BYTES)
        return false;
    memcpy(ret, record, SEGMENT_FIXED_BYTES);
    size_t n = SEGMENT_FIXED_BYTES + ret->access.n_entries * sizeof ret->access.entries[0];
    if (ret->access.n_entries > LIMIT_ACL_ENTRIES || bytes < n)
        return false;
    memcpy(ret, record, n);
    const char *at = (const char *)record + n, *end = (const char *)record + bytes;
    if (ret->flags & STORE_PLACED) {
        if ((size_t)(end - at) < sizeof ret->placement)
            return false;
        end -= sizeof ret->placement;
        memcpy(&ret->placement, end, sizeof ret->placement);
    }
    return take_text(&at, end, ret->name, sizeof ret->name) &&
           (at == end || take_text(&at, end, ret->label, sizeof ret->label)) && at == end;
}
