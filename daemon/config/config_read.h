/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the configuration: FILE.json, then FILE.d/?*.json in the order of their bytes. */
#ifndef DAEMON_CONFIG_READ_H
#define DAEMON_CONFIG_READ_H

#include <limits.h>

#include "daemon/config/config_reader.h"

#define CONFIG_SYSTEM "/etc/shmviewd.json"
#define CONFIG_NONE   "/dev/null" /* reads as no file at all */

typedef char config_path[PATH_MAX];

/* The file of this process's user: root and system users (uid below 1000) have the
 * system's, others $XDG_CONFIG_HOME/shmviewd.json or $HOME/.config/shmviewd.json. Where
 * there is none: CONFIG_NONE. */
void config_default_path(config_path ret);

/* Reads file, if it is there or required, and its directory. A file or directory that
 * somebody else could have written is refused: it must belong to root or to this process's
 * user, and may not be writable for others; for root and system users, nor for its group.
 *
 * Returns a new configuration; or NULL, and each thing that is wrong was said. Blocks:
 * files, and the system's users. Any thread. */
struct config *config_read(const char *file, bool required, config_say *say, void *arg);

#endif
