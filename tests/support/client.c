/* SPDX-License-Identifier: Apache-2.0 */
#include "support/client.h"

#include <stdio.h>
#include <string.h>

const char *client_fault(int result, int wanted, const char *part)
{
    static char text[1024];
    const char *told = shmview_error_text();
    if (result == wanted && (wanted >= 0 || strstr(told, part)))
        return NULL;
    snprintf(text, sizeof text, "%d (%s) \"%s\"; wanted %d \"%s\"", result,
             shmview_strerror(result), result < 0 ? told : "", wanted, part);
    return text;
}

struct shmview_connection *client_connect(const struct daemon *daemon)
{
    struct shmview_connection *connection = NULL;
    OK(shmview_connect(daemon->socket, 0, &connection));
    return connection;
}

struct shmview_segment *client_create_with(struct shmview_connection *connection, const char *name,
                                           uint64_t size, uint32_t lifetime, uint32_t flags)
{
    struct shmview_create_options options = {
        .struct_bytes = sizeof options,
        .lifetime = lifetime,
        .flags = flags,
    };
    struct shmview_segment *segment = NULL;
    OK(shmview_create(connection, name, size, &options, &segment));
    return segment;
}

struct shmview_segment *client_create(struct shmview_connection *connection, const char *name,
                                      uint64_t size)
{
    struct shmview_segment *segment = NULL;
    OK(shmview_create(connection, name, size, NULL, &segment));
    return segment;
}

struct shmview_segment *client_attach(struct shmview_connection *connection, const char *name,
                                      int access)
{
    struct shmview_segment *segment = NULL;
    OK(shmview_attach(connection, name, access, 0, &segment));
    return segment;
}
