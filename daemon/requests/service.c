/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/service.h"

#include <string.h>

#include "daemon/clients/refusal.h"
#include "varlink_text.h"

void service_get_info(struct request *r, const union wanted *want)
{
    (void)want;
    answer_with(r->answer,
                json_pack("{s:s, s:s, s:s, s:s, s:[s, s]}", "vendor", "shmview", "product",
                          "shmviewd", "version", SHMVIEW_VERSION, "url", "man:shmviewd(8)",
                          "interfaces", "org.varlink.service", "io.shmview"));
}

void service_get_interface_description(struct request *r, const union wanted *want)
{
    const char *text = strcmp(want->name, "io.shmview") == 0 ? varlink_text_io_shmview
                       : strcmp(want->name, "org.varlink.service") == 0
                           ? varlink_text_org_varlink_service
                           : NULL;
    if (text)
        answer_with(r->answer, json_pack("{s:s}", "description", text));
    else
        refuse_varlink(r->answer, REFUSAL_NO_INTERFACE, "interface", want->name);
}
