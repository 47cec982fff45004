/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/describe.h - one segment without attaching it: whose it is, who may use it, and its
 * layouts with all their views.
 *
 *     const struct shmview_description *d;
 *     shmview_describe(conn, "demo", &d);
 *     for (size_t i = 0; i < d->n_layouts; i++)
 *         for (size_t k = 0; k < d->layouts[i]->n_views; k++)
 *             printf("%s/%s\n", d->layouts[i]->name, d->layouts[i]->views[k]->name);
 *     shmview_description_free(d);
 *
 * Structs are made by the library and new members come at their ends. Numbers that are not known
 * are -1. */
#ifndef SHMVIEW_DESCRIBE_H
#define SHMVIEW_DESCRIBE_H

#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A view as its layout declares it. Of the bytes of all its elements, begin is the first and end is
 * behind the last. They are the same where there are no elements, and where there are suboffsets,
 * which may lead anywhere. */
struct shmview_view_description {
    const char *name;
    const char *format; /* canonical, as in shmview_format_parse() */
    uint64_t offset;    /* byte of element [0, ..., 0] */
    uint64_t nbytes;    /* product of shape times itemsize */
    uint64_t begin;
    uint64_t end;
    uint32_t itemsize;
    uint32_t ndim;
    uint32_t flags;            /* SHMVIEW_VIEW_READ_ONLY, SHMVIEW_VIEW_INDIRECT */
    uint32_t dtype;            /* enum shmview_dtype, SHMVIEW_SWAPPED */
    const int64_t *shape;      /* ndim lengths */
    const int64_t *strides;    /* ndim steps in bytes, also where none were declared */
    const int64_t *suboffsets; /* ndim; NULL where there are none */
};

struct shmview_layout_description {
    const char *name;
    const struct shmview_view_description *const *views;
    size_t n_views;
};

/* One user or group, and what he or it may do. */
struct shmview_entry_description {
    uint32_t kind;  /* SHMVIEW_USER, SHMVIEW_GROUP */
    uint32_t right; /* 0: nothing, SHMVIEW_READ or SHMVIEW_WRITE */
    int64_t id;     /* uid or gid */
};

struct shmview_description {
    const char *name;
    int64_t id;
    int64_t size; /* bytes */
    uint32_t has_lock;
    uint32_t lifetime; /* enum shmview_lifetime */
    int64_t owner;     /* uid */
    int64_t group;     /* gid */
    int64_t mode;      /* as shmview/access.h has it */
    int64_t attachments;
    const struct shmview_entry_description *const *entries;
    size_t n_entries;
    const struct shmview_layout_description *const *layouts; /* in the order of definition */
    size_t n_layouts;
};

/* Asks what the segment called name is. name is borrowed. *ret_description is new: the caller owes
 * shmview_description_free(). Blocks for one round trip. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_FOUND (also where the caller has no right to see
 * it), _INVALID, _DISCONNECTED, _PROTOCOL or _NO_MEMORY on failure. */
int shmview_describe(struct shmview_connection *connection, const char *name,
                     const struct shmview_description **ret_description);

/* Frees it. Takes NULL. Never fails. */
void shmview_description_free(const struct shmview_description *description);

#ifdef __cplusplus
}
#endif
#endif
