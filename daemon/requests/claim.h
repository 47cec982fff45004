/* SPDX-License-Identifier: Apache-2.0 */
/* The method Claim: who a connection is, and the descriptors that it gets once. */
#ifndef DAEMON_CLAIM_H
#define DAEMON_CLAIM_H

#include "daemon/requests/request.h"

void claim_answer(struct request *request, const union wanted *want);

#endif
