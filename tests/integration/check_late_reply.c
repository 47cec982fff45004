/* SPDX-License-Identifier: Apache-2.0 */
/* A client that reads late, of a reply that is made late: it finds the socket full. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "support/await.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

static const char info[] = "{\"method\":\"org.varlink.service.GetInfo\"}";
/* So much that a thread makes it. */
static const char create[] = "{\"method\":\"io.shmview.Create\",\"parameters\":{\"name\":\"late\","
                             "\"size\":1048576,\"access\":\"write\",\"lifetime\":\"manual\"}}";

static struct daemon d;

static void ask(const struct raw *raw, const char *text, size_t n)
{
    ck_assert_int_eq(send(raw->socket, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

static int unread(const struct raw *raw)
{
    int n = 0;
    ck_assert_int_eq(ioctl(raw->socket, FIONREAD, &n), 0);
    return n;
}

/* How many replies fit into a socket that nobody reads. */
static unsigned count_fitting(void)
{
    struct raw raw;
    raw_connect(&raw, d.socket);
    int before = 0, one = 0;
    for (unsigned n = 0;; n++) {
        ask(&raw, info, sizeof info);
        int64_t deadline = await_now_ns() + 500000000;
        while (unread(&raw) == before && await_again(deadline))
            ;
        int now = unread(&raw);
        one = one ? one : now;
        if (now - before < one) {
            raw_close(&raw);
            return n;
        }
        before = now;
    }
}

/* Reads until the reply to the creation has come. */
static void read_all(const struct raw *raw, unsigned n_replies)
{
    static char bytes[1 << 16];
    unsigned n = 0;
    while (n <= n_replies) {
        await_readable(raw->socket);
        ssize_t got = recv(raw->socket, bytes, sizeof bytes, MSG_DONTWAIT);
        ck_assert_int_gt(got, 0);
        for (ssize_t i = 0; i < got; i++)
            n += bytes[i] == '\0';
    }
}

START_TEST(finds_the_socket_full)
{
    struct raw raw;
    daemon_start(&d);
    unsigned n = count_fitting();
    raw_connect(&raw, d.socket);
    for (unsigned i = 0; i < n; i++)
        ask(&raw, info, sizeof info);
    ask(&raw, create, sizeof create);
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *late = NULL;
    AWAIT(shmview_attach(conn, "late", SHMVIEW_PEEK, 0, &late) == 0);
    read_all(&raw, n);
    raw_close(&raw);
    OK(shmview_detach(late));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {SUITE_TEST(finds_the_socket_full), SUITE_END};
    return suite_main("late_reply", tests);
}
