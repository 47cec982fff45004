/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals: an error, its facts, and a sentence for people.
 *
 * Until a refusal is sent, its error is a number: SHMVIEW_ERR_*, or one of those in connection.h.
 * Methods compare and count numbers; only this module turns them into names of the protocol. The
 * sentence ("reason") states what was requested, what was available and why it was refused. It is
 * for people; programs use the facts.
 *
 * All functions expect a zeroed answer. If memory is too short for facts or the sentence, the
 * refusal lacks them. */
#ifndef DAEMON_REFUSAL_H
#define DAEMON_REFUSAL_H

#include "daemon/clients/connection.h"
#include "daemon/rights/quota.h"

/* Makes *answer a refusal with this error (SHMVIEW_ERR_*). facts is a new object, which is stolen,
 * or NULL. The formatted text becomes the "reason"; it is cut after 511 bytes. */
__attribute__((format(printf, 4, 5))) void refuse(struct answer *answer, int error, json_t *facts,
                                                  const char *reason, ...);

/* Refuses parameters that could not be decoded, and names the member that is wrong. Lack of memory
 * is refused as by refuse_system(). */
void refuse_parameter(struct answer *answer, const struct wire_fault *fault);

/* Refuses because the system failed with error_number (an errno), and logs an error. `what` names
 * the failed step. */
void refuse_system(struct answer *answer, const char *what, int error_number);

/* Refuses a request of uid that would exceed a quota. */
void refuse_quota(struct answer *answer, uid_t uid, const struct quota_excess *excess);

/* Makes *answer a success with these parameters, which are new and stolen. Refuses if they are
 * NULL, because memory was short. */
void answer_with(struct answer *answer, json_t *parameters);

/* Like answer_with(), but with the text of the whole reply: `bytes` bytes with its NUL, stolen. */
void answer_with_text(struct answer *answer, char *text, size_t bytes);

/* Refuses with an error of org.varlink.service, which has no reason. `fact` is the name of its only
 * member. */
void refuse_varlink(struct answer *answer, int error, const char *fact, const char *value);

/* Returns the name of an error number in the protocol; never NULL. */
const char *refusal_name(int error);

/* Returns the text of the reply for a refusal, which is new, with its NUL, or NULL if memory is
 * short. Takes the facts from *answer. */
char *refusal_text(struct answer *answer, size_t *ret_bytes);

#endif
