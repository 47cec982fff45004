/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: quotas, users who may create segments, and segments that the daemon makes.
 * shmviewd.json(5) describes the files.
 *
 * A thread reads and checks a configuration as a whole; then the loop replaces the old one as a
 * whole (daemon/reload.c). A struct config never changes while it is in force, so it needs no lock,
 * and no request sees half of a new configuration. */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shmview/stream_layout.h>

#include "common/views/format.h"
#include "common/wire/wire.h"
#include "daemon/base/log.h"
#include "daemon/rights/access.h"
#include "daemon/rights/quota.h"

#define CONFIG_LAYOUT_BYTES ((uint64_t)16 << 20) /* quota of a user if none is configured */

/* A set of users and groups. The perms of the entries are 0. */
struct config_people {
    bool everybody;
    struct access_entry *entries;
    size_t n_entries;
};

/* A declared segment: the daemon makes it when it starts or reads this configuration. The name, the
 * label and the file name are borrowed from config.kept. */
struct config_segment {
    const char *name;
    uint64_t size;
    struct access access;
    int64_t lifetime; /* enum shmview_lifetime: manual or attached */
    bool lock;
    int64_t backing;             /* enum shmview_backing; 0: the default of this configuration */
    int64_t huge, numa, node;    /* as in struct wire_create */
    struct wire_layout *layouts; /* checked: they fit the segment */
    size_t n_layouts;
    const char *label; /* NULL: none */
    bool is_stream;
    struct shmview_stream_header stream; /* of a stream: its first bytes */
    const char *file;                    /* the file and line that declare it, for messages */
    unsigned line;
};

struct config {
    struct quota_limits limits;
    uint32_t default_mode;   /* of a segment whose creator names no mode */
    int64_t default_backing; /* enum shmview_backing, of one whose creator names none; 0: file */
    bool only_sealed;        /* nobody may choose another backing; then this is the default */
    uint64_t pool_bytes;     /* of objects that are made ahead (pool.h), at most; 0: none */
    struct config_people create; /* users who may create segments, besides administrators */
    bool has_admin_group;
    uint32_t admin_group;        /* members are administrators, as root is */
    enum log_priority log_level; /* less important lines are not logged */
    struct config_segment *segments;
    size_t n_segments;
    json_t *kept;           /* owns the strings above: the parsed files and their names */
    struct formats formats; /* owns the formats of the layouts */
};

/* Returns the configuration that holds if there is no file: no limits except for layouts, no pool,
 * mode 0600, every user may create segments, and only root is an administrator. The caller owes
 * config_free(). Returns NULL if memory is short. */
struct config *config_new(void);

/* Returns the declared segment of that name, borrowed, or NULL. */
const struct config_segment *config_find_segment(const struct config *config, const char *name);

/* Frees a configuration; config may be NULL. Returns NULL. */
struct config *config_free(struct config *config);

#endif
