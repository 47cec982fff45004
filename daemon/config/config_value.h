/* SPDX-License-Identifier: Apache-2.0 */
/* Parses values that the configuration has as text: sizes, modes, users and groups. */
#ifndef DAEMON_CONFIG_VALUE_H
#define DAEMON_CONFIG_VALUE_H

#include <stdbool.h>

#include "daemon/rights/access.h"

/* Parses a number of bytes, at least 1: "4096", "64KiB", "1MiB", "2GiB", "1TiB". If memory is not
 * 0, also a part of it: "50%". Returns 0; -EINVAL for any other text; or -ERANGE. */
int config_parse_size(const char *text, uint64_t memory, uint64_t *ret_bytes);

/* Parses a mode of three or four octal digits, at most 0666. Returns 0 or -EINVAL. */
int config_parse_mode(const char *text, uint32_t *ret_mode);

/* Looks up the id of a user or group by its name. Returns 0; -ENOENT if there is none; or another
 * -errno of the system. */
typedef int config_lookup(enum access_kind kind, const char *name, uint32_t *ret_id);

/* Asks the system's databases, which may ask the network: blocks. Any thread. */
config_lookup config_lookup_system;

/* Parses a name, or an id in digits. Returns 0; -ENOENT for "" and for the id -1; or a result of
 * lookup(). */
int config_parse_id(const char *text, enum access_kind kind, config_lookup *lookup,
                    uint32_t *ret_id);

/* Parses "user:NAME" or "group:NAME", if with_perms followed by ":r", ":w", ":rw" or ":-". Returns
 * 0; -EINVAL if the form is wrong; or an error of config_parse_id(), with ret->kind set for the
 * message. */
int config_parse_entry(const char *text, bool with_perms, config_lookup *lookup,
                       struct access_entry *ret);

#endif
