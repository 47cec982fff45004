/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <microhttpd.h>

#include "web/http/server.h"

const char *request_text(const struct request *q, const char *name)
{
    const char *value = NULL;
    size_t n = 0;
    if (MHD_lookup_connection_value_n(q->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name),
                                      &value, &n) != MHD_YES)
        return NULL;
    return value && strlen(value) == n ? value : NULL;
}

bool request_number(const struct request *q, struct reply *r, const char *name, int64_t low,
                    int64_t most, int64_t *ret)
{
    const char *text = request_text(q, name);
    char *end;
    if (!text)
        return true;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool is_number = (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) && !*end && end > text;
    if (!is_number || errno || number < low || number > most) {
        reply_error(r, 400, "parameter %s is '%s': give a number from %lld to %lld", name, text,
                    (long long)low, (long long)most);
        return false;
    }
    *ret = number;
    return true;
}

bool request_real(const struct request *q, struct reply *r, const char *name, double *ret)
{
    const char *text = request_text(q, name);
    char *end;
    if (!text)
        return true;
    double number = strtod(text, &end);
    if (*end || end == text || !isfinite(number)) {
        reply_error(r, 400, "parameter %s is '%s': give a finite number", name, text);
        return false;
    }
    *ret = number;
    return true;
}

struct collection {
    const char *name;
    const char **ret;
    size_t n, room;
};

static enum MHD_Result collect(void *arg, enum MHD_ValueKind kind, const char *key,
                               const char *value)
{
    struct collection *c = arg;
    (void)kind;
    if (value && strcmp(key, c->name) == 0 && c->n < c->room)
        c->ret[c->n++] = value;
    return MHD_YES;
}

size_t request_texts(const struct request *q, const char *name, const char **ret, size_t n)
{
    struct collection c = {.name = name, .ret = ret, .room = n};
    MHD_get_connection_values(q->connection, MHD_GET_ARGUMENT_KIND, collect, &c);
    return c.n;
}
