/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals: an error, its facts, and a sentence for people. Only here do errors get their names. */
#ifndef DAEMON_REFUSAL_H
#define DAEMON_REFUSAL_H

#include "daemon/clients/connection.h"
#include "daemon/rights/quota.h"

/* Makes *answer the refusal error (SHMVIEW_ERR_*) with facts (a new object or
 * NULL; stolen) and the text as its "reason". */
__attribute__((format(printf, 4, 5))) void refuse(struct answer *answer, int error, json_t *facts,
                                                  const char *reason, ...);

/* Refuses parameters, naming the one at fault. */
void refuse_parameter(struct answer *answer, const struct wire_fault *fault);

/* Refuses because a call of the system failed with error_number. */
void refuse_system(struct answer *answer, const char *what, int error_number);

/* Refuses what uid asked for, because of excess. */
void refuse_quota(struct answer *answer, uid_t uid, const struct quota_excess *excess);

/* Answers with parameters (new; stolen); refuses where they are NULL: memory is short. */
void answer_with(struct answer *answer, json_t *parameters);

/* The same with the whole reply as text of bytes, with its NUL. */
void answer_with_text(struct answer *answer, char *text, size_t bytes);

/* Refuses with an error of org.varlink.service, without a reason. fact names its one member. */
void refuse_varlink(struct answer *answer, int error, const char *fact, const char *value);

/* The name of answer->error in the protocol; never NULL. */
const char *refusal_name(int error);

/* The reply of a refusal, new, with its NUL; NULL: memory is short. Takes the facts. */
char *refusal_text(struct answer *answer, size_t *ret_bytes);

#endif
