/* SPDX-License-Identifier: Apache-2.0 */
/* The method Claim: who a connection is, and the descriptors that it gets once. */
#ifndef DAEMON_CLAIM_H
#define DAEMON_CLAIM_H

#include <jansson.h>

struct answer;
struct connection;
struct state;

/* Answers a request with these parameters. */
void claim_answer(struct state *state, struct connection *connection, const json_t *parameters,
                  struct answer *answer);

#endif
