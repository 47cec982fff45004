/* SPDX-License-Identifier: Apache-2.0 */
/* What a value of the configuration may look like as text: sizes, modes, users. */
#ifndef DAEMON_CONFIG_VALUE_H
#define DAEMON_CONFIG_VALUE_H

#include <stdbool.h>

#include "daemon/rights/access.h"

/* A number of bytes, from 1: "4096", "64KiB", "1MiB", "2GiB", "1TiB"; and where memory is
 * not 0 "50%", a part of it. Returns 0, -EINVAL or -ERANGE. */
int config_parse_size(const char *text, uint64_t memory, uint64_t *ret_bytes);

/* "0640": at most 0666. Returns 0 or -EINVAL. */
int config_parse_mode(const char *text, uint32_t *ret_mode);

/* The id of a user or group by name: 0, -ENOENT, or what else the system says. */
typedef int config_lookup(enum access_kind kind, const char *name, uint32_t *ret_id);

/* The system's own, which may ask the network. Any thread. */
config_lookup config_lookup_system;

/* A name, or the id in digits. Returns 0 or what lookup does; -ENOENT for "". */
int config_parse_id(const char *text, enum access_kind kind, config_lookup *lookup,
                    uint32_t *ret_id);

/* "user:NAME" or "group:NAME"; with_perms: and ":r", ":w", ":rw" or ":-" behind it.
 * Returns 0; -EINVAL; or as config_parse_id() does, then *ret->kind is known. */
int config_parse_entry(const char *text, bool with_perms, config_lookup *lookup,
                       struct access_entry *ret);

#endif
