/* SPDX-License-Identifier: Apache-2.0 */
/* What an attachment does with the lock, in words. */
#ifndef CLI_PARTY_H
#define CLI_PARTY_H

#include <shmview/stats.h>

/* "exclusive", "shared", "waits exclusive", "waits shared"; "" where it neither holds nor waits.
 * Static. */
const char *party_state(const struct shmview_party_stats *party);

/* What a client wrote about itself may hold anything: what is no printable ASCII becomes "?". */
void party_make_printable(char *text);

#endif
