/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and replies without their parameters, and the names of errors and values. A part of wire.h;
 * wire.c has the tables of the parameters.
 *
 * A call is {"method": ..., "parameters": {...}} with optional flags, and a reply is
 * {"parameters": {...}} with "error" if the call was refused. Unknown members of these two objects
 * are ignored, because Varlink itself may add some. */
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "common/json/json_read.h"
#include "common/json/json_text.h"
#include "common/wire/wire.h"

/* --- Envelopes ----------------------------------------------------------- */

/* Reads an optional flag of a call, which is false if it is absent. */
static int read_flag(const json_t *root, const char *name, bool *ret, struct wire_fault *fault)
{
    const json_t *v = json_object_get(root, name);
    if (v && !json_is_boolean(v))
        return wire_fault_set(fault, name, "must be true or false");
    *ret = json_is_true(v);
    return 0;
}

static int read_call(struct wire_call *call, struct wire_fault *fault)
{
    static const struct field fields[] = {
        {"method", FIELD_STRING, false, .offset = offsetof(struct wire_call, method), .max = 256},
        {.name = NULL},
    };
    call->parameters = json_object_get(call->root, "parameters");
    if (call->parameters && !json_is_object(call->parameters))
        return wire_fault_set(fault, "parameters", "must be an object");
    if (read_flag(call->root, "oneway", &call->oneway, fault) ||
        read_flag(call->root, "more", &call->more, fault) ||
        read_flag(call->root, "upgrade", &call->upgrade, fault))
        return -1;
    return fields_read(call->root, fields, false, call, fault);
}

int wire_call_parse(struct wire_call *call, const char *text, size_t n, struct wire_fault *fault)
{
    *call = (struct wire_call){.root = json_read(text, n, true, fault)};
    if (!call->root)
        return -1;
    if (read_call(call, fault) == 0)
        return 0;
    wire_call_deinit(call);
    return -1;
}

int wire_call_read(struct wire_call *call, const char *text, size_t n, struct wire_fault *fault)
{
    return wire_call_scan(call, text) ? 0 : wire_call_parse(call, text, n, fault);
}

void wire_call_deinit(struct wire_call *call)
{
    json_decref(call->root);
    *call = (struct wire_call){0};
}

/* The reply to a call that succeeded and returns nothing. It is so usual that both sides compare
 * the whole text and make no values. */
static const char done_text[] = "{\"parameters\":{}}";

int wire_reply_parse(struct wire_reply *reply, const char *text, size_t n, struct wire_fault *fault)
{
    if (n == sizeof done_text - 1 && memcmp(text, done_text, n) == 0) {
        *reply = (struct wire_reply){0};
        return 0;
    }
    *reply = (struct wire_reply){.root = json_read(text, n, false, fault)};
    if (!reply->root)
        return -1;
    const json_t *error = json_object_get(reply->root, "error");
    reply->error = json_string_value(error);
    reply->parameters = json_object_get(reply->root, "parameters");
    if (json_is_object(reply->root) && (!error || reply->error) &&
        (!reply->parameters || json_is_object(reply->parameters)))
        return 0;
    wire_reply_deinit(reply);
    return wire_fault_set(fault, "", "not a Varlink reply");
}

void wire_reply_deinit(struct wire_reply *reply)
{
    json_decref(reply->root);
    *reply = (struct wire_reply){0};
}

char *wire_reply_text(const char *error, json_t *parameters, size_t *ret_bytes)
{
    if (!error && !parameters) {
        /* Varlink clients expect the member "parameters" even if nothing is returned */
        *ret_bytes = sizeof done_text;
        return strdup(done_text);
    }
    json_t *root = json_object();
    int bad = error ? json_object_set_new(root, "error", json_string(error)) : 0;
    bad |= json_object_set_new(root, "parameters", parameters ? parameters : json_object());
    char *text = bad ? NULL : json_text(root, ret_bytes);
    json_decref(root);
    return text;
}

/* --- Names --------------------------------------------------------------- */

/* The list of error.h. An error whose name on the wire is "" is never sent: the library makes it.
 */
static const struct {
    int code;
    const char *wire;
    const char *text;
} errors[] = {
#define X(name, value, wire, text) {value, wire, text},
    SHMVIEW_ERROR_LIST(X)
#undef X
};

int wire_error_number(const char *name, const char **ret_text)
{
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        if (errors[i].wire[0] && strcmp(errors[i].wire, name) == 0) {
            if (ret_text)
                *ret_text = errors[i].text;
            return errors[i].code;
        }
    return SHMVIEW_ERR_PROTOCOL;
}

int wire_error_code(const struct wire_reply *reply, const char **ret_reason)
{
    const char *text = NULL;
    int error = wire_error_number(reply->error, &text);
    const char *reason = json_string_value(json_object_get(reply->parameters, "reason"));
    /* without a text the error is unknown here, and its name is the most useful thing to show */
    *ret_reason = !text ? reply->error : reason ? reason : text;
    return error;
}

const char *wire_error_name(int error)
{
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        if (errors[i].code == error && errors[i].wire[0])
            return errors[i].wire;
    return wire_error_name(SHMVIEW_ERR_SYSTEM);
}

/* Returns the name of a FIELD_ENUM value, or NULL if the value has none. */
static const char *enum_name(const char *const *names, int64_t value)
{
    for (int64_t i = 0; names[i]; i++)
        if (i + 1 == value)
            return names[i];
    return NULL;
}

const char *wire_access_name(int64_t access)
{
    return enum_name(wire_access_names, access);
}

const char *wire_lifetime_name(int64_t lifetime)
{
    return enum_name(wire_lifetime_names, lifetime);
}

const char *wire_backing_name(int64_t backing)
{
    return enum_name(wire_backing_names, backing);
}

const char *wire_huge_name(int64_t huge)
{
    return enum_name(wire_huge_names, huge);
}

const char *wire_numa_name(int64_t numa)
{
    return enum_name(wire_numa_names, numa);
}

/* --- Claims -------------------------------------------------------------- */

static int compare_held(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void wire_held_sort(int64_t *held, size_t n)
{
    if (n)
        qsort(held, n, sizeof *held, compare_held);
}

bool wire_held_has(const int64_t *held, size_t n, int64_t attachment)
{
    return n && bsearch(&attachment, held, n, sizeof *held, compare_held);
}
