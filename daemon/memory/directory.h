/* SPDX-License-Identifier: Apache-2.0 */
/* The directory in /dev/shm that holds all objects of an instance. Its mode is 0700, so that
 * other users see neither names nor sizes, and cannot take a name that the daemon needs.
 *
 * It is called shmview.INSTANCE. Where another user has taken that name, it is called
 * shmview.INSTANCE~SUFFIX with a random suffix. A later daemon finds it by its owner, because
 * nobody but root can make a directory that belongs to this user. */
#ifndef DAEMON_DIRECTORY_H
#define DAEMON_DIRECTORY_H

#define DIRECTORY_SHM "/dev/shm"

/* Opens the directory of the instance, and makes it if there is none. Returns 0, or -errno. After 0
 * the caller owes directory_close(). A process can have one such directory at a time, which is kept
 * in static variables. */
int directory_open(const char *instance);

/* Closes the directory, and removes it if it is empty. */
void directory_close(void);

/* Returns its descriptor, which is borrowed. */
int directory_fd(void);

/* Returns its path, for messages. */
const char *directory_path(void);

#endif
