/* SPDX-License-Identifier: Apache-2.0 */
/* Where a test lives, a private directory, and what it may not leave: processes,
 * descriptors, files, objects in /dev/shm. suite.h does all of this for each
 * test; a test asks for the directory. */
#ifndef SUPPORT_PLACE_H
#define SUPPORT_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* The directory: short enough for sockets, gone after the test. */
const char *place_directory(void);

/* Remembers an instance of shmviewd that this test started, so that it is looked
 * after: its objects must be gone when the test ends. */
void place_note_instance(const char *instance);

/* Objects of the instance in /dev/shm. If text is not NULL their paths are appended to it. */
unsigned place_objects(const char *instance, char *text, size_t bytes);

/* Processes, less this one, whose arguments name the directory: its daemons. */
unsigned place_daemons(void);

/* --- For suite.c --------------------------------------------------------- */

/* Makes the directory; in the process that starts the tests. If that is killed,
 * what is left goes all the same. */
void place_open(void);
/* Counts what is there; in the process of the test, before and after it. Returns
 * whether the test left nothing, else a line for each thing is in text. */
void place_enter(void);
bool place_left_nothing(char *text, size_t bytes);
/* Removes the directory and whatever a test that failed has left. */
void place_close(void);

#endif
