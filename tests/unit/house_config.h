/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a house another configuration, for tests of declared segments. */
#ifndef UNIT_HOUSE_CONFIG_H
#define UNIT_HOUSE_CONFIG_H

#include "unit/house.h"

#include "daemon/config/config_reader.h"

static inline void house_say(void *arg, const char *line)
{
    (void)arg;
    ck_abort_msg("%s", line);
}

static inline int house_no_lookup(enum access_kind kind, const char *name, uint32_t *ret_id)
{
    (void)kind, (void)name, (void)ret_id;
    return -ENOENT;
}

/* Puts a configuration into force. */
static inline void house_configure(struct house *house, const char *text)
{
    struct config_reader reader;
    const char *json = unit_json(text);
    ck_assert_int_eq(config_reader_begin(&reader, house_no_lookup, 0, house_say, NULL), 0);
    config_reader_add(&reader, "f", json, strlen(json));
    config_free(house->state.config);
    house->state.config = config_reader_end(&reader);
    ck_assert_ptr_nonnull(house->state.config);
    house->state.quota.limits = &house->state.config->limits;
}

#endif
