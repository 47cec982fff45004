/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a store, which is opened once: what is judged here is the file that LMDB uses. */
#ifndef DAEMON_STORE_FILE_H
#define DAEMON_STORE_FILE_H

#include "daemon/store_check.h"

/* Opens the file called name in the directory dir, or makes an empty one. One that is not empty is
 * tried by check, which is ended in any case (NULL: not tried). Returns a descriptor, which the
 * caller owns; -EUCLEAN if the file is damaged, or is not a file that only this user may write to
 * and that has only this name; or -errno. */
int store_file_open(int dir, const char *name, struct store_check *check);

#endif
