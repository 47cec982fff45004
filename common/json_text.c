/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *bytes;
    size_t n, room;
    bool failed;
};

static int add(const char *bytes, size_t n, void *arg)
{
    struct text *t = arg;
    if (t->failed)
        return -1;
    if (n >= t->room - t->n) {
        size_t room = (t->room + n) * 2;
        char *more = realloc(t->bytes, room);
        if (!more) {
            t->failed = true; /* for good: not every failure is seen by jansson */
            return -1;
        }
        t->bytes = more;
        t->room = room;
    }
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    return 0;
}

char *json_text(const json_t *value, size_t *ret_bytes)
{
    struct text t = {.bytes = malloc(256), .room = 256};
    if (!value || !t.bytes || json_dump_callback(value, add, &t, JSON_COMPACT) || t.failed) {
        free(t.bytes);
        return NULL;
    }
    t.bytes[t.n] = '\0';
    if (ret_bytes)
        *ret_bytes = t.n + 1;
    return t.bytes;
}
