/* SPDX-License-Identifier: Apache-2.0 */
/* Describes in words what an attachment does with the lock, for who and top. */
#ifndef CLI_PARTY_H
#define CLI_PARTY_H

#include <shmview/stats.h>

/* Returns "exclusive", "shared", "waits exclusive" or "waits shared"; "" if it neither holds nor
 * waits. Waiting comes first, because a client with several threads may do both. The text is
 * static. */
const char *party_state(const struct shmview_party_stats *party);

#endif
