/* SPDX-License-Identifier: Apache-2.0 */
/* Monitors of a daemon that accepts a connection and hangs up, as one does that is out of
 * descriptors or refuses the client. */
#include <shmview/monitor.h>

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

#include "common/base/util.h"

#include "unit/faults.h"
#include "unit/stub.h"

#define SUBSCRIBED "{\"parameters\":{\"event\":{\"serial\":7,\"time\":1,\"kind\":\"subscribed\"}}}"
#define REFUSAL    "{\"error\":\"io.shmview.QuotaExceeded\",\"parameters\":{\"reason\":\"too many\"}}"

/* The replies to the first connections after that of the client. The daemon hangs up after each
 * reply; on later connections it does so without one. */
static const char *const *replies;
static size_t n_replies;
static char path[108];
static int listener;
static pthread_t thread;
static struct shmview_connection *conn;
static atomic_uint n_served; /* connections after that of the client */

static void reply(int fd, const char *text)
{
    send(fd, text, strlen(text) + 1, MSG_NOSIGNAL);
}

static void *serve(void *arg)
{
    char request[1000];
    int fd, client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)arg;
    faults_spare_thread();
    if (recv(client, request, sizeof request, 0) > 0)
        reply(client, "{\"parameters\":{\"held\":[]}}");
    for (size_t i = 0; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0; i++) {
        if (i < n_replies)
            reply(fd, replies[i]);
        close(fd);
        n_served++;
    }
    close(client);
    return NULL;
}

static void begin(const char *const *texts, size_t n)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    replies = texts;
    n_replies = n;
    snprintf(path, sizeof path, "%s/hasty", unit_directory());
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 8), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
    ck_assert_int_eq(shmview_connect(path, 0, &conn), 0);
}

static void end(void)
{
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
}

/* Ends the wait at the count-th time that it is asked. */
static int count_down(void *arg)
{
    unsigned *count = arg;
    return --*count == 0;
}

START_TEST(nobody_subscribes)
{
    struct shmview_monitor *m = NULL;
    unsigned count = 3;
    begin(NULL, 0);
    ck_assert_int_eq(shmview_monitor_open(conn, NULL, &m), -SHMVIEW_ERR_NO_DAEMON);
    unit_assert_holds(shmview_error_text(), "the daemon hung up");
    shmview_on_wait(count_down, &count);
    ck_assert_int_eq(shmview_monitor_open(conn, NULL, &m), -SHMVIEW_ERR_INTERRUPTED);
    shmview_on_wait(NULL, NULL);
    ck_assert_ptr_null(m);
    end();
}
END_TEST

/* The monitor has had an event, and then each connection ends before another one. */
START_TEST(the_next_daemon_hangs_up)
{
    static const char *const texts[] = {SUBSCRIBED};
    struct shmview_monitor *m = NULL;
    const struct shmview_event *e = NULL;
    unsigned count = 3;
    begin(texts, ARRAY_LEN(texts));
    ck_assert_int_eq(shmview_monitor_open(conn, NULL, &m), 0);
    ck_assert_int_eq(shmview_monitor_next(m, 0, &e), 0);
    ck_assert(e->kind == SHMVIEW_EVENT_SUBSCRIBED && e->serial == 7);
    shmview_on_wait(count_down, &count);
    ck_assert_int_eq(shmview_monitor_next(m, SHMVIEW_FOREVER, &e), -SHMVIEW_ERR_INTERRUPTED);
    shmview_on_wait(NULL, NULL);
    int r;
    while ((r = shmview_monitor_next(m, 0, &e)) == -SHMVIEW_ERR_TIMED_OUT) {
        struct pollfd p = {.fd = shmview_monitor_fd(m), .events = POLLIN};
        ck_assert_int_eq(poll(&p, 1, 10000), 1); /* until the daemon has hung up */
    }
    ck_assert_int_eq(r, -SHMVIEW_ERR_DISCONNECTED);
    ck_assert_int_eq(shmview_monitor_close(m), 0);
    end();
}
END_TEST

static void await_service(void)
{
    while (!n_served)
        sched_yield();
}

/* The daemon refuses the client and hangs up before it has read the request. */
START_TEST(a_refusal_comes_before_the_request)
{
    static const char *const texts[] = {REFUSAL};
    struct shmview_monitor *m = NULL;
    begin(texts, ARRAY_LEN(texts));
    faults_begin_call("sendmsg", 1, EPIPE, false);
    faults_hook("sendmsg", await_service);
    int r = shmview_monitor_open(conn, NULL, &m);
    ck_assert(faults_end());
    ck_assert_int_eq(r, -SHMVIEW_ERR_QUOTA);
    unit_assert_holds(shmview_error_text(), "too many");
    end();
}
END_TEST

UNIT_MAIN("client_monitor", UNIT_TEST(nobody_subscribes), UNIT_TEST(the_next_daemon_hangs_up),
          UNIT_TEST(a_refusal_comes_before_the_request))
