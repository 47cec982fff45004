/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of org.varlink.service. */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include "daemon/requests/methods.h"

void service_get_info(struct state *state, struct connection *c, const json_t *parameters,
                      struct answer *answer);
void service_get_interface_description(struct state *state, struct connection *c,
                                       const json_t *parameters, struct answer *answer);

#endif
