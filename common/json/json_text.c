/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/json_text.h"

#include <stdlib.h>
#include <string.h>

/* Most messages fit. */
#define TEXT_BYTES_FIRST 512

void json_text_begin(struct json_text *text)
{
    *text = (struct json_text){.bytes = malloc(TEXT_BYTES_FIRST), .room = TEXT_BYTES_FIRST};
    text->failed = !text->bytes;
}

void json_text_add(struct json_text *text, const char *bytes, size_t n)
{
    if (text->failed)
        return;
    if (n >= text->room - text->n) {
        size_t room = (text->room + n) * 2;
        char *more = realloc(text->bytes, room);
        if (!more) {
            text->failed = true; /* for good: not every failure is seen by jansson */
            return;
        }
        text->bytes = more;
        text->room = room;
    }
    memcpy(text->bytes + text->n, bytes, n);
    text->n += n;
}

char *json_text_end(struct json_text *text, size_t *ret_bytes)
{
    if (text->failed) {
        free(text->bytes);
        return NULL;
    }
    text->bytes[text->n] = '\0';
    if (ret_bytes)
        *ret_bytes = text->n + 1;
    return text->bytes;
}

static int add(const char *bytes, size_t n, void *text)
{
    json_text_add(text, bytes, n);
    return ((struct json_text *)text)->failed ? -1 : 0;
}

char *json_text(const json_t *value, size_t *ret_bytes)
{
    struct json_text t;
    json_text_begin(&t);
    if (!value || json_dump_callback(value, add, &t, JSON_COMPACT))
        t.failed = true;
    return json_text_end(&t, ret_bytes);
}
