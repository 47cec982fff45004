/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a client has made for a segment, so that the control group of the client is charged
 * for it and not that of the daemon.
 *
 * A client may pass anything. The daemon accepts a memfd that is what the daemon would have made:
 * of the right size, committed, with the seals of a sealed object (sealed.h), and of that client's
 * user. No check here reads the file or waits for another process, whatever the descriptor is. */
#ifndef DAEMON_OWN_H
#define DAEMON_OWN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Checks that fd, which stays the caller's, is memory of the user uid for a segment of `size`
 * bytes. Returns 0 with *ret_st; -EINVAL, and why has the reason, which continues a sentence that
 * begins with the descriptor: "is not a memfd"; or another -errno if this process cannot check it,
 * because it has no descriptor or memory left. Loop only. */
int own_check(int fd, uint64_t size, uid_t uid, struct stat *ret_st, char *why, size_t why_bytes);

#endif
