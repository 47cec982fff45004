/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/config.h"

#include <stdlib.h>
#include <string.h>

struct config *config_new(void)
{
    struct config *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->limits.user = (struct quota_limit){
        .bytes = QUOTA_UNLIMITED,
        .segments = QUOTA_UNLIMITED,
        .attachments = QUOTA_UNLIMITED,
        .connections = QUOTA_UNLIMITED,
        .layout_bytes = QUOTA_UNLIMITED,
        .requests_per_second = QUOTA_UNLIMITED,
        .burst = QUOTA_UNLIMITED,
    };
    c->limits.total = c->limits.user;
    c->limits.user.layout_bytes = CONFIG_LAYOUT_BYTES;
    c->kept = json_array();
    if (!c->kept)
        return config_free(c);
    c->default_mode = ACCESS_MODE_DEFAULT;
    c->create.everybody = true;
    c->log_level = LOG_INFO;
    return c;
}

const struct config_segment *config_find_segment(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_segments; i++)
        if (strcmp(config->segments[i].name, name) == 0)
            return &config->segments[i];
    return NULL;
}

struct config *config_free(struct config *config)
{
    if (!config)
        return NULL;
    for (size_t i = 0; i < config->n_segments; i++)
        wire_layouts_free(config->segments[i].layouts, config->segments[i].n_layouts);
    free(config->segments);
    free(config->create.entries);
    json_decref(config->kept);
    formats_deinit(&config->formats);
    free(config);
    return NULL;
}
