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
    for (size_t i = 0; i < layouts->n; i++)
        free(layouts->list[i].name);
    free(layouts->list);
    free(layouts->text);
    *layouts = (struct layouts){0};
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
    while (end < layouts->n && list[end].at + list[end].n - begin <= most)
        end++;
    *ret_bytes = list[end - 1].at + list[end - 1].n - begin;
    *ret_end = end;
    return layouts->text + begin;
}

const char *layouts_text_of(const struct layouts *layouts, const struct layout *layout,
                            size_t *ret_bytes)
{
    *ret_bytes = layout->n;
    return layouts->text + layout->at;
}

int layouts_add(struct layouts *layouts, const char *name, const char *text, size_t n)
{
    const size_t at = layouts->text_bytes;
    struct layout *list = realloc(layouts->list, (layouts->n + 1) * sizeof *list);
    if (!list)
        return -ENOMEM;
    layouts->list = list; /* larger than necessary if the rest fails, which does no harm */
    char *own_name = strdup(name);
    char *all = own_name ? realloc(layouts->text, at + n) : NULL;
    if (!all) {
        free(own_name);
        return -ENOMEM;
    }
    memcpy(all + at, text, n - 1);
    all[at + n - 1] = ','; /* in the place of the NUL */
    layouts->text = all;
    layouts->text_bytes = (uint32_t)(at + n);
    list[layouts->n] = (struct layout){own_name, at, n - 1};
    return (int)layouts->n++;
}

void layouts_drop_last(struct layouts *layouts)
{
    const struct layout *last = &layouts->list[--layouts->n];
    layouts->text_bytes = (uint32_t)last->at;
    free(last->name);
}

const struct layout *layouts_find(const struct layouts *layouts, const char *name)
{
    uint64_t hash = layout_hash(name);
    for (size_t i = 0; i < layouts->n; i++)
        if (layout_hash(layouts->list[i].name) == hash)
            return &layouts->list[i];
    return NULL;
}
