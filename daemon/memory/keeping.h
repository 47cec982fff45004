/* SPDX-License-Identifier: Apache-2.0 */
/* Where descriptors of sealed objects outlive the daemon: in the descriptor store of the service
 * manager (notify.h), or in a keeper of this instance (keeper.h). Until keeping_init() they do not.
 *
 * An object whose descriptor cannot be kept ends with the daemon; that is logged once. */
#ifndef DAEMON_KEEPING_H
#define DAEMON_KEEPING_H

#include <stdbool.h>
#include <stdint.h>

/* Chooses the place. socket is the path of the instance's socket: the keeper's is beside it. */
void keeping_init(const char *socket);

/* Calls take() with each descriptor that was kept, which take() then owns, and its number. Blocks
 * until the keeper has sent all of them, some seconds at most if it hangs. Loop only, once.
 * take() and this function return 0 or -errno. */
int keeping_recover(int (*take)(int fd, uint64_t number));

/* Keeps a copy of the descriptor under a number that no other object has. Starts a keeper if there
 * is none. Returns whether all earlier objects must be kept again, because an earlier keeper has
 * ended. Blocks a second at most. Any thread. */
bool keeping_offer(int fd, uint64_t number);

/* Drops what was kept under the number. Blocks a second at most. Any thread. */
void keeping_forget(uint64_t number);

/* Logs the first failure of the functions above, once. Loop only. */
void keeping_report(void);

/* Ends the connection to the keeper, which then ends if it holds nothing. */
void keeping_end(void);

#endif
