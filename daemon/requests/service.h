/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of org.varlink.service. */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include "daemon/requests/request.h"

void service_get_info(struct request *request, const union wanted *want);
void service_get_interface_description(struct request *request, const union wanted *want);

#endif
