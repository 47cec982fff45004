/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config.h"

#include <stdlib.h>
#include <syslog.h>

struct config *config_new(void)
{
    struct config *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->user = c->total = (struct config_quota){
        .bytes = CONFIG_UNLIMITED,
        .segments = CONFIG_UNLIMITED,
        .attachments = CONFIG_UNLIMITED,
        .connections = CONFIG_UNLIMITED,
        .requests_per_second = CONFIG_UNLIMITED,
        .burst = CONFIG_UNLIMITED,
    };
    c->default_mode = ACCESS_MODE_DEFAULT;
    c->create.everybody = true;
    c->log_level = LOG_INFO;
    return c;
}

struct config *config_free(struct config *config)
{
    if (!config)
        return NULL;
    for (size_t i = 0; i < config->n_segments; i++)
        wire_layouts_free(config->segments[i].layouts, config->segments[i].n_layouts);
    free(config->segments);
    free(config->create.entries);
    free(config);
    return NULL;
}
