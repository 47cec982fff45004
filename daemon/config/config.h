/* SPDX-License-Identifier: Apache-2.0 */
/* What the administrator says: quotas, who may create, segments that are to exist. Read
 * whole and replaced whole: what is in force is never changed. shmviewd.json(5). */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/views/format.h"
#include "common/wire/wire.h"
#include "daemon/base/log.h"
#include "daemon/rights/access.h"
#include "daemon/rights/quota.h"

#define CONFIG_LAYOUT_BYTES ((uint64_t)16 << 20) /* of a user, where nothing is configured */

/* Users and groups; perms is 0. */
struct config_people {
    bool everybody;
    struct access_entry *entries;
    size_t n_entries;
};

/* A segment that is to exist. */
struct config_segment {
    const char *name;
    uint64_t size;
    struct access access;
    int64_t lifetime; /* enum shmview_lifetime: manual or attached */
    bool lock;
    struct wire_layout *layouts; /* checked: they fit the segment */
    size_t n_layouts;
    const char *file; /* where it is declared */
    unsigned line;
};

struct config {
    struct quota_limits limits;
    uint32_t default_mode;       /* of segments whose creator does not say */
    struct config_people create; /* who may create segments; administrators may */
    bool has_admin_group;
    uint32_t admin_group;        /* sees and may use all, as root does */
    enum log_priority log_level; /* what is less important is not said */
    struct config_segment *segments;
    size_t n_segments;
    json_t *kept; /* what strings above lie in: texts of files, their names */
    struct formats formats;
};

/* Returns the built-in configuration, that of no file at all: unlimited but for layouts, mode
 * 0600, everybody may create, no administrators but root; or NULL when memory is short. */
struct config *config_new(void);

/* The segment declared under that name, or NULL. */
const struct config_segment *config_find_segment(const struct config *config, const char *name);

/* Takes NULL. Returns NULL. */
struct config *config_free(struct config *config);

#endif
