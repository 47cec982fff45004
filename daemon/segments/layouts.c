/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/layouts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/layout_hash.h"
#include "common/base/limits.h"

/* A text is at most six times as long as its part of a request: each byte is an escape then. */
_Static_assert((uint64_t)LIMIT_LAYOUTS *LIMIT_REQUEST_BYTES * 6 < UINT32_MAX, "text_bytes fits");

void layouts_deinit(struct layouts *layouts)
{
    for (size_t i = 0; i < layouts->n; i++) {
        free(layouts->list[i].name);
        free(layouts->list[i].part);
    }
    free(layouts->list);
    *layouts = (struct layouts){0};
}

/* The text of a layout, and of those after it in its part. */
static const char *text_at(const struct layouts *layouts, const struct layout *layout)
{
    return layouts->list[layout->first].part + layout->at;
}

const char *layouts_text(const struct layouts *layouts, size_t from, size_t most, size_t *ret_bytes,
                         size_t *ret_end)
{
    const struct layout *list = layouts->list;
    size_t end = from + 1;
    *ret_bytes = 0;
    *ret_end = layouts->n;
    if (from >= layouts->n)
        return "";
    const size_t begin = list[from].at;
    while (end < layouts->n && list[end].first == list[from].first &&
           list[end].at + list[end].n - begin <= most)
        end++;
    *ret_bytes = list[end - 1].at + list[end - 1].n - begin;
    *ret_end = end;
    return text_at(layouts, &list[from]);
}

const char *layouts_text_of(const struct layouts *layouts, const struct layout *layout,
                            size_t *ret_bytes)
{
    *ret_bytes = layout->n;
    return text_at(layouts, layout);
}

/* Where the text of another layout goes: after the last one, or into a new part if that would have
 * more bytes than a reply. */
static struct layout next_place(const struct layouts *layouts, size_t n)
{
    const struct layout *last = layouts->n ? &layouts->list[layouts->n - 1] : NULL;
    struct layout place = {.first = layouts->n, .n = (uint32_t)n};
    if (last && last->at + last->n + 1 + n <= LIMIT_DESCRIBED_BYTES) {
        place.first = last->first;
        place.at = last->at + last->n + 1;
    }
    return place;
}

int layouts_add(struct layouts *layouts, const char *name, const char *text, size_t n)
{
    struct layout *list = realloc(layouts->list, (layouts->n + 1) * sizeof *list);
    if (!list)
        return -ENOMEM;
    layouts->list = list; /* larger than necessary if the rest fails, which does no harm */
    struct layout *l = &list[layouts->n];
    *l = next_place(layouts, n - 1);
    l->name = strdup(name);
    char *part = l->name ? realloc(list[l->first].part, l->at + n) : NULL;
    if (!part) {
        free(l->name);
        return -ENOMEM;
    }
    memcpy(part + l->at, text, n - 1);
    part[l->at + n - 1] = ','; /* in the place of the NUL */
    list[l->first].part = part;
    layouts->text_bytes += (uint32_t)n;
    return (int)layouts->n++;
}

void layouts_drop_last(struct layouts *layouts)
{
    const struct layout *last = &layouts->list[--layouts->n];
    layouts->text_bytes -= last->n + 1;
    free(last->name);
    free(last->part);
}

const struct layout *layouts_find(const struct layouts *layouts, const char *name)
{
    uint64_t hash = layout_hash(name);
    for (size_t i = 0; i < layouts->n; i++)
        if (layout_hash(layouts->list[i].name) == hash)
            return &layouts->list[i];
    return NULL;
}
