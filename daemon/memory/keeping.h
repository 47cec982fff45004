/* SPDX-License-Identifier: Apache-2.0 */
/* Where descriptors of sealed objects outlive the daemon: in the descriptor store of the service
 * manager (notify.h), or in a keeper of this instance (keeper.h). Until keeping_init() they do not.
 *
 * An object whose descriptor cannot be kept ends with the daemon; that is logged once. Any thread
 * may call these functions, except those that name the loop. */
#ifndef DAEMON_KEEPING_H
#define DAEMON_KEEPING_H

#include <stdbool.h>
#include <stdint.h>

/* Chooses the place. socket is the path of the instance's socket: the keeper's is beside it. */
void keeping_init(const char *socket);

/* Calls take() with each descriptor that was kept, which take() then owns, and its number. Blocks
 * until the keeper has sent all of them, some seconds at most if it hangs. Loop only, once.
 * take() and this function return 0 or -errno: then the place still holds all for a later daemon.
 * If the keeper ends before it has sent all, this function returns 0 after what came, because
 * nothing else can come; keeping_has_lost() returns true then. */
int keeping_recover(int (*take)(int fd, uint64_t number));

/* Keep a copy of the descriptor under a number that no other object has, and drop it again. The
 * first starts a keeper if there is none. Return 0, or -errno: then the caller must try again
 * later. They block 20 ms at most, and only until one call has done so in vain; starting a keeper
 * takes some milliseconds, and is tried once in a second. */
int keeping_offer(int fd, uint64_t number);
int keeping_forget(uint64_t number);

/* Returns, once for each keeper, whether it has ended: then all objects must be offered again.
 * keeping_offer() may find that, too. */
bool keeping_has_lost(void);

/* Logs what the functions above have found: a first failure, and that the place accepts nothing, or
 * something again. Loop only. */
void keeping_report(void);

/* Ends the connection to the keeper, which then ends if it holds nothing. */
void keeping_end(void);

#endif
