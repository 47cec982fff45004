/* SPDX-License-Identifier: Apache-2.0 */
/* Placement in the configuration: huge pages and nodes of a declared segment. */
#include <string.h>

#include <shmview/placement.h>

#include "common/base/limits.h"
#include "daemon/config/config_reader.h"

void config_read_huge(struct config_reader *reader, const json_t *value, void *at)
{
    const char *name = json_string_value(value);
    int64_t huge = SHMVIEW_HUGE_REQUIRED;
    while (name && huge && strcmp(name, wire_huge_name(huge)) != 0)
        huge--;
    if (name && huge)
        *(int64_t *)at = huge;
    else
        config_fault(reader, "must be \"wanted\" or \"required\"");
}

void config_read_numa(struct config_reader *reader, const json_t *value, void *segment)
{
    struct config_segment *s = segment;
    const char *name = json_string_value(value);
    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        json_integer_value(value) <= LIMIT_NODE) {
        s->numa = SHMVIEW_NUMA_NODE;
        s->node = json_integer_value(value);
    } else if (name && strcmp(name, wire_numa_name(SHMVIEW_NUMA_INTERLEAVED)) == 0) {
        s->numa = SHMVIEW_NUMA_INTERLEAVED;
    } else {
        config_fault(reader, "must be \"interleaved\" or the number of a node, 0 to %d",
                     LIMIT_NODE);
    }
}
