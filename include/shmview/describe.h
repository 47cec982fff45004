/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/describe.h - what a segment is, without attaching it.
 *
 * A description has the owner of a segment, its rights, and all its layouts with
 * their views. It is for tools that show segments, and for programs that decide
 * what to attach. The caller needs a right to see the segment, and no attachment.
 *
 *     const struct shmview_description *d;
 *     shmview_describe(conn, "demo", &d);
 *     for (size_t i = 0; i < d->n_layouts; i++)
 *         for (size_t k = 0; k < d->layouts[i]->n_views; k++)
 *             printf("%s/%s\n", d->layouts[i]->name, d->layouts[i]->views[k]->name);
 *     shmview_description_free(d);
 *
 * The library allocates all structs, and programs only read them through
 * pointers. Later versions of the library can therefore add members at the ends
 * of the structs. All strings, arrays and structs belong to the description and
 * are valid until it is freed. It is a copy of what the daemon knew at that
 * moment and does not change. Numbers that are not known are -1. */
#ifndef SHMVIEW_DESCRIBE_H
#define SHMVIEW_DESCRIBE_H

#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A view as its layout declares it, with what follows from that. The library has
 * checked it as it checks a view that it opens. */
struct shmview_view_description {
    /* Unique within its layout. */
    const char *name;
    /* The canonical text, as in shmview_format_parse(). */
    const char *format;
    /* Byte of the segment at which element [0, ..., 0] begins. */
    uint64_t offset;
    /* Bytes of all elements without gaps: the product of shape times itemsize. */
    uint64_t nbytes;
    /* The bytes of the segment that the elements occupy, gaps included: from byte
     * begin to before byte end. Strides below 0 lead to bytes before offset, so
     * begin may be less than offset. Both are offset if there are no elements,
     * and if there are suboffsets, because these may lead anywhere. Two views
     * without suboffsets share bytes only if their ranges overlap. */
    uint64_t begin;
    uint64_t end;
    /* Bytes of one element. */
    uint32_t itemsize;
    /* Dimensions, at most SHMVIEW_MAX_NDIM. */
    uint32_t ndim;
    /* SHMVIEW_VIEW_READ_ONLY if it is declared so, SHMVIEW_VIEW_INDIRECT if it
     * has suboffsets, SHMVIEW_VIEW_UNALIGNED if elements may be unaligned. */
    uint32_t flags;
    /* enum shmview_dtype, with SHMVIEW_SWAPPED if the bytes of a number are
     * reversed. */
    uint32_t dtype;
    /* ndim lengths, in elements. */
    const int64_t *shape;
    /* ndim steps in bytes; computed in C order if none were declared. */
    const int64_t *strides;
    /* ndim of them, -1 for none; NULL if the view has none at all. */
    const int64_t *suboffsets;
};

/* A layout: views that hold at the same time, in the order of their
 * declaration. */
struct shmview_layout_description {
    const char *name;
    const struct shmview_view_description *const *views;
    size_t n_views;
};

/* An entry for one user or group, and its right. The library does not look up
 * names, because ids of the daemon's system need not have names here. */
struct shmview_entry_description {
    /* SHMVIEW_USER or SHMVIEW_GROUP. */
    uint32_t kind;
    /* 0: nothing, SHMVIEW_READ or SHMVIEW_WRITE. */
    uint32_t right;
    /* uid or gid. */
    int64_t id;
};

/* A segment. Whether it is locked, and by which client, is in shmview/stats.h. */
struct shmview_description {
    /* The name that the caller asked for. */
    const char *name;
    /* A number that no other segment of the instance gets, before or after this
     * one. */
    int64_t id;
    /* Bytes, as requested when it was created. */
    int64_t size;
    /* 1, or 0 if it was created with SHMVIEW_NO_LOCK. */
    uint32_t has_lock;
    /* enum shmview_lifetime. */
    uint32_t lifetime;
    /* uid of the user who is charged for it. */
    int64_t owner;
    /* gid. */
    int64_t group;
    /* Bits as in shmview/access.h. */
    int64_t mode;
    /* How many there are now, of all clients. */
    int64_t attachments;
    /* Rights of further users and groups. */
    const struct shmview_entry_description *const *entries;
    size_t n_entries;
    /* In the order of definition, which is that of the indices in struct
     * shmview_phase. */
    const struct shmview_layout_description *const *layouts;
    size_t n_layouts;
    /* What its creator wrote for people; "" if nothing. It has at most 63 bytes, and no character
     * that controls a terminal. */
    const char *label;
    /* enum shmview_backing. */
    uint32_t backing;
    /* enum shmview_frozen (freeze.h); 0 if clients may attach it for writing. */
    uint32_t frozen;
    /* uid of the user whose client made its memory (SHMVIEW_OWN_MEMORY) and whose control group
     * pays for it; -1: the daemon. */
    int64_t paid_by;
    /* As in struct shmview_placed of shmview/placement.h. huge_bytes and nodes are -1 if its
     * creator wanted nothing. */
    uint32_t huge;
    uint32_t huge_by;
    uint32_t huge_missing;
    uint32_t numa;
    int64_t huge_bytes;
    int64_t nodes;
};

/* Asks the daemon what the segment called name is. The caller must pass
 * *ret_description to shmview_description_free(). Blocks as a request
 * (shmview.h). Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_FOUND if there is no such
 * segment or this user has no right to see it, _INVALID for a wrong name, or an
 * error of requests; _PROTOCOL also if the daemon describes a view that cannot
 * be. */
int shmview_describe(struct shmview_connection *connection, const char *name,
                     const struct shmview_description **ret_description);

/* Frees a description and all it points to. description may be NULL. Any thread.
 * Never fails. */
void shmview_description_free(const struct shmview_description *description);

#ifdef __cplusplus
}
#endif
#endif
