/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of org.varlink.service, which every Varlink service has: the name and version of the
 * daemon, and the text of its interfaces. Varlink tools such as varlinkctl find out by them what a
 * service can do. The texts are compiled in from common/wire. */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include "daemon/requests/request.h"

/* Each carries out the method of its name. Every client may call them. */
void service_get_info(struct request *request, const union wanted *want);
void service_get_interface_description(struct request *request, const union wanted *want);

#endif
