/* SPDX-License-Identifier: Apache-2.0 */
/* Expectations that tests have of calls of libshmview. */
#ifndef SUPPORT_CLIENT_H
#define SUPPORT_CLIENT_H

#include <check.h>

#include <shmview/shmview.h>

#include "support/daemon.h"

/* The call must return 0; otherwise the test fails with the library's error text. */
#define OK(call) client_expect((call), 0, "", #call)
/* The call must fail with SHMVIEW_ERR_code, and the error text must contain part. */
#define REFUSED(call, code, part) client_expect((call), -SHMVIEW_ERR_##code, (part), #call)
#define client_expect(result, wanted, part, call)                                                  \
    do {                                                                                           \
        const char *client_story = client_fault((result), (wanted), (part));                       \
        mark_point();                                                                              \
        if (client_story)                                                                          \
            ck_abort_msg("%s: %s", (call), client_story);                                          \
    } while (0)

/* Returns NULL if the result is the wanted one, or a text that describes the result. */
const char *client_fault(int result, int wanted, const char *part);

/* Connects to the daemon; fails the test if it cannot. The test calls shmview_disconnect(). */
struct shmview_connection *client_connect(const struct daemon *daemon);
/* Create with the default options, or attach. The test calls shmview_detach(). */
struct shmview_segment *client_create(struct shmview_connection *connection, const char *name,
                                      uint64_t size);
struct shmview_segment *client_create_with(struct shmview_connection *connection, const char *name,
                                           uint64_t size, uint32_t lifetime, uint32_t flags);
struct shmview_segment *client_attach(struct shmview_connection *connection, const char *name,
                                      int access);

#endif
