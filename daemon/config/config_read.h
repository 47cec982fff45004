/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and reads the files of the configuration: FILE.json, then all FILE.d/NAME.json in the order
 * of their bytes. A package or an administrator can thus add a file and need not edit one. */
#ifndef DAEMON_CONFIG_READ_H
#define DAEMON_CONFIG_READ_H

#include <limits.h>

#include "daemon/config/config_reader.h"

#define CONFIG_SYSTEM "/etc/shmviewd.json"
#define CONFIG_NONE   "/dev/null" /* stands for no file */

typedef char config_path[PATH_MAX];

/* Returns the path of the file for the user of this process. Root and system users (uid below 1000)
 * have the system's file; other users have $XDG_CONFIG_HOME/shmviewd.json or
 * $HOME/.config/shmviewd.json; without these variables it is CONFIG_NONE. */
void config_default_path(config_path ret);

/* Reads file and the files of its directory. It is an error if file does not exist and is required.
 *
 * Refuses a file or directory that another user could have written: it must belong to root or to
 * the user of this process, and must not be writable by others. If that user is root or a system
 * user, it must not be writable by its group either.
 *
 * Returns a new configuration, which the caller owns; or NULL after reporting every error through
 * say(). Then *ret_may_pass is whether another attempt might succeed with the same files: only
 * memory, descriptors, a disk or the look-up of a user failed. (To the parser of JSON a lack of
 * memory can look like a wrong text.) Blocks for files and for look-ups of users. Any thread. */
struct config *config_read(const char *file, bool required, config_say *say, void *arg,
                           bool *ret_may_pass);

#endif
