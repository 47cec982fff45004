/* SPDX-License-Identifier: Apache-2.0 */
/* The private directory of a test, and the check that the test leaves no processes, descriptors,
 * files, or objects in /dev/shm. suite.c does all of this for each test; a test itself needs only
 * the directory. */
#ifndef SUPPORT_PLACE_H
#define SUPPORT_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the directory. Its path is short enough for sockets; it is removed after the test. */
const char *place_directory(void);

/* Remembers an instance of shmviewd that this test started. Its objects must be gone when the test
 * ends. */
void place_note_instance(const char *instance);

/* Returns how many objects the instance has in /dev/shm. Appends their paths to text unless that
 * is NULL. */
unsigned place_objects(const char *instance, char *text, size_t bytes);

/* Returns how many other processes name the directory in their arguments: the test's daemons. */
unsigned place_daemons(void);

/* --- For suite.c --------------------------------------------------------- */

/* Makes the directory, in the process that starts the tests. If that process is killed, a
 * caretaker still removes what the test left. */
void place_open(void);
/* Run before and after the test, in its process: record what exists, and compare with it. The
 * second returns whether the test left nothing; otherwise text has a line for each thing left. */
void place_enter(void);
bool place_left_nothing(char *text, size_t bytes);
/* Removes the directory and everything else that a failed test has left. */
void place_close(void);

#endif
