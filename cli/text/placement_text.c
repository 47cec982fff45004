/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/placement_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int placement_parse(struct context *c, const char *value, void *to)
{
    struct shmview_placement *placement = to;
    char *end;
    unsigned long node = strtoul(value, &end, 10);
    if (strcmp(value, "local") == 0) {
        placement->numa = SHMVIEW_NUMA_LOCAL;
    } else if (strcmp(value, "interleaved") == 0) {
        placement->numa = SHMVIEW_NUMA_INTERLEAVED;
    } else if (value[0] >= '0' && value[0] <= '9' && !*end && node <= SHMVIEW_NODE_MAX) {
        placement->numa = SHMVIEW_NUMA_NODE;
        placement->node = (uint32_t)node;
    } else {
        return fail_usage(c, "--numa '%s' is none of local, interleaved, 0 to %d", value,
                          SHMVIEW_NODE_MAX);
    }
    return 0;
}

static const char *missing_text(uint32_t missing)
{
    static const char *const texts[] = {
        [SHMVIEW_HUGE_SMALL] = "smaller than a huge page",
        [SHMVIEW_HUGE_DISABLED] = "the system allows no huge pages for this backing",
        [SHMVIEW_HUGE_SHORT] = "there were too few free huge pages",
        [SHMVIEW_HUGE_UNSUPPORTED] = "the kernel cannot populate memory",
    };
    return missing <= SHMVIEW_HUGE_UNSUPPORTED ? texts[missing] : NULL;
}

/* Adds text to what is there, after a separator. */
static void add(char *buffer, const char *separator, const char *text)
{
    size_t n = strlen(buffer);
    snprintf(buffer + n, PLACEMENT_TEXT - n, "%s%s", n ? separator : "", text);
}

const char *placement_text(char *buffer, const struct shmview_placed *placed)
{
    char text[HUMAN_BYTES + 32], size[HUMAN_BYTES];
    const char *separator = "; nodes ";
    buffer[0] = '\0';
    if (placed->huge_bytes) {
        snprintf(text, sizeof text, "%s huge (%s)", human_bytes(size, (int64_t)placed->huge_bytes),
                 placed->huge_by == SHMVIEW_HUGE_BY_HUGETLB ? "hugetlb" : "thp");
        add(buffer, "", text);
    }
    if (placed->huge && missing_text(placed->huge_missing))
        add(buffer, ": ", missing_text(placed->huge_missing));
    for (unsigned i = 0; i <= SHMVIEW_NODE_MAX; i++)
        if (placed->nodes >> i & 1) {
            snprintf(text, sizeof text, "%s%u", buffer[0] ? "" : "nodes ", i);
            add(buffer, separator, text);
            separator = ",";
        }
    if (placed->numa && !placed->nodes)
        add(buffer, "; ", "nodes are unknown");
    return buffer;
}
