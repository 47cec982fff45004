/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAILED 2 /* exit status if a request cannot be understood, which is a fault of the test */

void refuse(const char *what, const char *detail)
{
    fprintf(stderr, "driver: %s: %s\n", what, detail ? detail : "(nothing)");
    exit(FAILED);
}

/* --- What requests name --------------------------------------------------- */

const char *text_of(const json_t *request, const char *key)
{
    return json_string_value(json_object_get(request, key));
}

int64_t number_of(const json_t *request, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(request, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool truth_of(const json_t *request, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(request, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

const int64_t *numbers_of(const json_t *request, const char *key, int64_t *ret, uint32_t *ret_n)
{
    const json_t *array = json_object_get(request, key);
    *ret_n = 0;
    if (!json_is_array(array))
        return NULL;
    if (json_array_size(array) > SHMVIEW_MAX_NDIM)
        refuse("too many numbers", key);
    for (; *ret_n < json_array_size(array); (*ret_n)++)
        ret[*ret_n] = json_integer_value(json_array_get(array, *ret_n));
    return ret;
}

static struct named_segment *find_segment(struct driver *driver, const char *name)
{
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (driver->segments[i].segment && strcmp(driver->segments[i].name, name) == 0)
            return &driver->segments[i];
    return NULL;
}

struct shmview_segment *segment_of(struct driver *driver, const json_t *request)
{
    const char *name = text_of(request, "seg");
    struct named_segment *found = name ? find_segment(driver, name) : NULL;
    if (!found)
        refuse("no such segment", name);
    return found->segment;
}

struct named_segment *new_segment(struct driver *driver, const json_t *request)
{
    const char *name = text_of(request, "seg");
    if (!name || find_segment(driver, name))
        refuse("no name for a segment", name);
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (!driver->segments[i].segment) {
            snprintf(driver->segments[i].name, NAMED_BYTES, "%s", name);
            return &driver->segments[i];
        }
    refuse("too many segments", name);
}

static struct named_view *find_view(struct driver *driver, const char *name)
{
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (strcmp(driver->views[i].name, name) == 0)
            return &driver->views[i];
    return NULL;
}

struct shmview_view *view_of(struct driver *driver, const json_t *request, const char *key)
{
    const char *name = text_of(request, key);
    struct named_view *found = name && *name ? find_view(driver, name) : NULL;
    if (!found)
        refuse("no such view", name);
    return &found->view;
}

struct shmview_view *new_view(struct driver *driver, const json_t *request)
{
    const char *name = text_of(request, "view");
    struct named_view *place;
    if (!name || !*name || (!(place = find_view(driver, name)) && !(place = find_view(driver, ""))))
        refuse("no place for a view", name);
    snprintf(place->name, NAMED_BYTES, "%s", name);
    return &place->view;
}

/* --- The loop --------------------------------------------------------------- */

static operation *find_operation(const char *name)
{
    const struct operation_row *const tables[] = {segment_operations, view_operations,
                                                  lock_operations, stream_operations};
    for (size_t t = 0; name && t < sizeof tables / sizeof *tables; t++)
        for (const struct operation_row *row = tables[t]; row->name; row++)
            if (strcmp(row->name, name) == 0)
                return row->run;
    refuse("no such operation", name);
}

static const char *error_name(int error)
{
    switch (-error) {
#define X(name, value, wire, text)                                                                 \
    case value:                                                                                    \
        return #name;
        SHMVIEW_ERROR_LIST(X)
#undef X
    default:
        return "";
    }
}

int run_errors(struct driver *driver, const json_t *request, json_t **ret_value)
{
    (void)driver, (void)request;
    *ret_value = json_object();
#define X(name, value, wire, text) json_object_set_new(*ret_value, #value, json_string(#name));
    SHMVIEW_ERROR_LIST(X)
#undef X
    return 0;
}

static json_t *reply_to(struct driver *driver, const json_t *request)
{
    json_t *value = NULL;
    int r = find_operation(text_of(request, "do"))(driver, request, &value);
    if (r < 0)
        return json_pack("{s:i, s:s, s:s}", "error", -r, "class", error_name(r), "text",
                         shmview_error_text());
    return json_pack("{s:o}", "ok", value ? value : json_null());
}

int main(void)
{
    static struct driver driver;
    char *line = NULL;
    size_t room = 0;
    if (shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &driver.connection) < 0)
        refuse("no daemon", shmview_error_text());
    while (getline(&line, &room, stdin) > 0) {
        json_error_t error;
        json_auto_t *request = json_loads(line, 0, &error);
        if (!request)
            refuse("no JSON", error.text);
        json_auto_t *reply = reply_to(&driver, request);
        json_dumpf(reply, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
        putchar('\n');
        fflush(stdout);
    }
    free(line);
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (driver.segments[i].segment)
            refuse("left attached", driver.segments[i].name);
        else if (driver.streams[i].stream)
            refuse("left open", driver.streams[i].name);
    return shmview_disconnect(driver.connection) < 0;
}
