/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/service.h"

#include <string.h>

#include "daemon/clients/refusal.h"
#include "varlink_text.h"

void service_get_info(struct state *state, struct connection *c, const json_t *parameters,
                      struct answer *answer)
{
    (void)state;
    (void)c;
    struct wire_fault fault;
    if (wire_read_none(parameters, &fault)) {
        refuse_parameter(answer, &fault);
        return;
    }
    answer_with(answer, json_pack("{s:s, s:s, s:s, s:s, s:[s, s]}", "vendor", "shmview", "product",
                                  "shmviewd", "version", SHMVIEW_VERSION, "url", "man:shmviewd(8)",
                                  "interfaces", "org.varlink.service", "io.shmview"));
}

void service_get_interface_description(struct state *state, struct connection *c,
                                       const json_t *parameters, struct answer *answer)
{
    (void)state;
    (void)c;
    struct wire_fault fault;
    const char *interface, *text;
    if (wire_read_name(parameters, "interface", &interface, &fault)) {
        refuse_parameter(answer, &fault);
        return;
    }
    if (strcmp(interface, "io.shmview") == 0) {
        text = varlink_text_io_shmview;
    } else if (strcmp(interface, "org.varlink.service") == 0) {
        text = varlink_text_org_varlink_service;
    } else {
        refuse_varlink(answer, "org.varlink.service.InterfaceNotFound", "interface", interface);
        return;
    }
    answer_with(answer, json_pack("{s:s}", "description", text));
}
