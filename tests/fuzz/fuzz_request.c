/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the bytes to the daemon as requests, through framing, JSON and methods, but without the
 * listener. A message that begins with a tab comes from a second client. Every reply must be JSON,
 * and no attachment may be left after both clients have disconnected. A client that gets the socket
 * of a handover sends good memory of OWN_BYTES there, the next time two descriptors, and then
 * nothing. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/memory/directory.h"
#include "daemon/requests/methods.h"
#include "daemon/requests/monitor.h"
#include "fuzz.h"

#define CLIENTS    2
#define MOST       65536
#define SIZE_LIMIT (1 << 20) /* bytes of an object, so that no creation takes long */

#define OWN_BYTES 10

struct party {
    struct connection *connection; /* NULL: closed */
    int fd;
    struct frame in;
};

static uv_loop_t loop;
static struct state state;
static struct turns turns; /* shared by all connections */
static struct party clients[CLIENTS];
static unsigned n_handovers;

static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

/* --- The house ----------------------------------------------------------- */

static void on_call(struct connection *c, const struct wire_call *call, struct answer *answer)
{
    methods_call(&state, c, call, answer);
}

static void on_closed(struct connection *c)
{
    methods_hung_up(&state, c);
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].connection == c)
            clients[i].connection = NULL;
}

static void on_again(struct connection *c)
{
    c->turn.waits = true;
}

static void on_job_done(struct state *s)
{
    (void)s;
}

static void begin_once(void)
{
    struct rlimit limit = {SIZE_LIMIT, RLIM_INFINITY};
    static bool begun;
    char instance[32];
    if (!begun) {
        signal(SIGXFSZ, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        snprintf(instance, sizeof instance, "fuzz%d", (int)getpid());
        if (directory_open(instance))
            die("no directory");
        atexit(directory_close);
        if (uv_loop_init(&loop) || turns_init(&turns, &loop))
            die("no loop");
        uv_unref((uv_handle_t *)&turns.resting.poll); /* otherwise no case would end */
        begun = true;
    }
    memset(&state, 0, sizeof state);
    state_init(&state, &loop, &turns, config_new());
    state.job_done = on_job_done;
    state.max_connections = 100;
    n_handovers = 0;
}

static void admit(struct party *client)
{
    static const struct connection_events events = {
        .call = on_call, .closed = on_closed, .again = on_again, .drained = monitor_drained};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
        die("no sockets");
    *client = (struct party){.fd = ends[0]};
    client->connection = connection_new(&loop, ends[1], &events, &state.tally, NULL);
    if (!client->connection)
        die("no connection");
}

/* --- The clients --------------------------------------------------------- */

static void hand_over(int socket)
{
    int fd = memfd_create("own", MFD_CLOEXEC | MFD_ALLOW_SEALING), fds[] = {fd, fd};
    unsigned n = ++n_handovers;
    if (fd < 0 || fchmod(fd, 0644) || posix_fallocate(fd, 0, OWN_BYTES) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
        die("no memory");
    if (n <= 2)
        frame_send(socket, "m", 1, fds, n);
    close(fd);
}

/* Takes the descriptors that came with a reply. */
static void take(const char *text, struct frame_descriptors *fds)
{
    if (fds->n == 1 && strstr(text, "\"socket\":0"))
        hand_over(fds->fd[0]);
    frame_descriptors_close(fds);
}

static void read_replies(struct party *client)
{
    char *text;
    size_t n;
    struct frame_descriptors fds = {0};
    while (frame_receive(&client->in, client->fd, LIMIT_REPLY_BYTES, &fds) > 0) {
        while (frame_next(&client->in, &text, &n)) {
            take(text, &fds);
            json_t *reply = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
            if (!reply)
                die("a reply is no JSON");
            json_decref(reply);
        }
    }
    frame_descriptors_close(&fds);
}

static bool is_busy(const struct party *client)
{
    int unread = 0;
    struct connection *c = client->connection;
    if (!c)
        return false;
    ioctl(c->fd, FIONREAD, &unread);
    /* a client that gets events is not read: what it has sent already stays */
    return c->turn.waits || c->out || (!c->streaming && (unread > 0 || c->answering));
}

/* Runs the loop until the daemon has nothing left to do. */
static void run(void)
{
    bool busy;
    do {
        busy = false;
        uv_run(&loop, state.n_jobs ? UV_RUN_ONCE : UV_RUN_NOWAIT);
        for (int i = 0; i < CLIENTS; i++) {
            struct connection *c = clients[i].connection;
            if (c && c->turn.waits) {
                c->turn.waits = false;
                connection_take_turn(c);
            }
            read_replies(&clients[i]);
            busy = busy || is_busy(&clients[i]);
        }
    } while (busy || state.n_jobs);
}

static void say(struct party *client, const uint8_t *bytes, size_t n)
{
    while (n && client->connection && !client->connection->streaming) {
        ssize_t sent = send(client->fd, bytes, n, MSG_NOSIGNAL);
        bytes += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
        run();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > MOST)
        return 0;
    begin_once();
    for (int i = 0; i < CLIENTS; i++)
        admit(&clients[i]);
    while (size) {
        const uint8_t *end = memchr(data, 0, size);
        size_t n = end ? (size_t)(end - data) + 1 : size;
        int who = data[0] == '\t';
        say(&clients[who], data, n);
        data += n;
        size -= n;
    }
    for (int i = 0; i < CLIENTS; i++) {
        close(clients[i].fd);
        frame_deinit(&clients[i].in);
        clients[i].in = (struct frame){0};
        clients[i].fd = -1;
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    for (struct segment *s = NULL; (s = registry_next(&state.registry, s ? s->id : 0));)
        if (s->n_attachments)
            die("somebody is still attached");
    registry_deinit(&state.registry);
    quota_deinit(&state.quota);
    config_free(state.config);
    return 0;
}
