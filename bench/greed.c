/* SPDX-License-Identifier: Apache-2.0 */
/* A calm client's ping beside a greedy one, and where there is none. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define PINGS       200
#define SOCKETS     64
#define DESCRIPTORS 1024
#define ATTACHMENTS 10000
#define CONNECTIONS 4 /* that hold them: each may have 4096 */
#define LAYOUTS     64
#define VIEWS       256
#define CREATIONS   8
#define SEGMENTS    1000
#define MONITORS    50
#define RINGERS     16 /* connections that ring, for so many segments each */
#define RUNG        32

#define CREATION_BYTES (128 << 20)

/* A daemon, and the calm client's connection to it. */
struct side {
    struct instance instance;
    struct shmview_connection *connection;
    double worst_ns; /* of all pings */
};

struct greedy {
    const char *socket;
    volatile uint32_t *ready;
};

static int dial(const struct greedy *g)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.107s", g->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

static void is_ready(const struct greedy *g)
{
    __atomic_fetch_add(g->ready, 1, __ATOMIC_SEQ_CST);
}

/* --- The greedy ones ----------------------------------------------------- */

/* Asks on many sockets until nothing more fits, and goes on wherever something does. */
static void never_reads(void *arg)
{
    static const char ask[] = "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
                              "\"parameters\":{\"interface\":\"io.shmview\"}}";
    int fd[SOCKETS];
    for (int i = 0; i < SOCKETS; i++)
        fd[i] = dial(arg);
    for (bool first = true;; first = false, usleep(1000)) {
        for (int i = 0; i < SOCKETS; i++)
            while (send(fd[i], ask, sizeof ask, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof ask)
                continue;
        if (first)
            is_ready(arg);
    }
}

static void byte_a_second(void *arg)
{
    static const char ask[] = "{\"method\":\"io.shmview.Ping\"                         }";
    int fd[SOCKETS];
    for (int i = 0; i < SOCKETS; i++)
        fd[i] = dial(arg);
    for (size_t at = 0;; at++) {
        for (int i = 0; i < SOCKETS; i++) {
            if (send(fd[i], ask + at % sizeof ask, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
                continue;
            usleep(1000000 / SOCKETS);
            if (at == 0 && i == 0)
                is_ready(arg);
        }
    }
}

/* Keeps all that it gets, and tries again a hundred times a second. */
static void connects(void *arg)
{
    struct greedy *g = arg;
    struct shmview_connection *c;
    for (bool first = true;; usleep(10000)) {
        while (shmview_connect(g->socket, SHMVIEW_CONNECT_NO_START, &c) == 0)
            continue;
        if (first)
            is_ready(g);
        first = false;
    }
}

static void attaches(void *arg)
{
    struct greedy *g = arg;
    struct shmview_connection *c[CONNECTIONS];
    struct shmview_segment *s;
    for (int i = 0; i < CONNECTIONS; i++) {
        if (shmview_connect(g->socket, SHMVIEW_CONNECT_NO_START, &c[i]) ||
            (i == 0 && shmview_create(c[0], "greedy", 4096, NULL, &s))) {
            failed("a greedy client: %s", shmview_error_text());
            return;
        }
        for (int k = 0; k < ATTACHMENTS / CONNECTIONS; k++)
            if (shmview_attach(c[i], "greedy", SHMVIEW_PEEK, 0, &s)) {
                failed("attachment %d: %s", k, shmview_error_text());
                return;
            }
    }
    is_ready(g);
    for (;;)
        pause();
}

static bool call(int fd, const char *text)
{
    char reply[4096];
    ssize_t n = send(fd, text, strlen(text) + 1, MSG_NOSIGNAL);
    do
        n = n > 0 ? recv(fd, reply, sizeof reply, 0) : 0;
    while (n > 0 && reply[n - 1] != '\0');
    return n > 0;
}

static bool define_large(int fd, int layout)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    fprintf(f,
            "{\"method\":\"io.shmview.DefineLayout\",\"parameters\":{\"name\":\"large\","
            "\"layout\":{\"name\":\"l%d\",\"views\":[",
            layout);
    for (int i = 0; i < VIEWS; i++)
        fprintf(f, "%s{\"name\":\"v%d\",\"format\":\"d\",\"shape\":[1,1,1,1]}", i ? "," : "", i);
    fputs("]}}}", f);
    fclose(f);
    bool good = call(fd, text);
    free(text);
    return good;
}

/* Asks for large layouts on many connections, and again wherever a whole answer has come. */
static void describes(void *arg)
{
    static const char create[] = "{\"method\":\"io.shmview.Create\",\"parameters\":{\"name\":"
                                 "\"large\",\"size\":65536,\"access\":\"write\"}}";
    static const char ask[] =
        "{\"method\":\"io.shmview.Describe\",\"parameters\":{\"name\":\"large\"}}";
    static char bytes[1 << 20];
    struct pollfd p[SOCKETS];
    for (int i = 0; i < SOCKETS; i++)
        p[i] = (struct pollfd){.fd = dial(arg), .events = POLLIN};
    bool good = call(p[0].fd, create);
    for (int i = 0; good && i < LAYOUTS; i++)
        good = define_large(p[0].fd, i);
    for (int i = 0; good && i < SOCKETS; i++)
        good = send(p[i].fd, ask, sizeof ask, MSG_NOSIGNAL) == sizeof ask;
    if (good)
        is_ready(arg);
    while (good && poll(p, SOCKETS, -1) > 0)
        for (int i = 0; i < SOCKETS; i++) {
            ssize_t n = p[i].revents ? recv(p[i].fd, bytes, sizeof bytes, MSG_DONTWAIT) : 0;
            if (n > 0 && bytes[n - 1] == '\0')
                send(p[i].fd, ask, sizeof ask, MSG_NOSIGNAL);
        }
}

/* Creates large segments on several connections at a time, and removes them again. */
static void creates(void *arg)
{
    char text[CREATIONS][200];
    struct pollfd p[CREATIONS];
    bool is_there[CREATIONS] = {false};
    for (int i = 0; i < CREATIONS; i++)
        p[i] = (struct pollfd){.fd = dial(arg), .events = POLLIN};
    for (int i = 0; i < CREATIONS; i++) {
        snprintf(text[i], sizeof text[i],
                 "{\"method\":\"io.shmview.Create\",\"parameters\":{\"name\":\"large%d\","
                 "\"size\":%d,\"lifetime\":\"creator\"}}",
                 i, CREATION_BYTES);
        send(p[i].fd, text[i], strlen(text[i]) + 1, MSG_NOSIGNAL);
    }
    for (is_ready(arg); poll(p, CREATIONS, -1) > 0;)
        for (int i = 0; i < CREATIONS; i++) {
            char reply[4096], again[200];
            if (!p[i].revents || recv(p[i].fd, reply, sizeof reply, 0) <= 0)
                continue;
            is_there[i] = !is_there[i];
            snprintf(again, sizeof again,
                     "{\"method\":\"io.shmview.Remove\",\"parameters\":{\"name\":\"large%d\"}}", i);
            const char *next = is_there[i] ? again : text[i];
            send(p[i].fd, next, strlen(next) + 1, MSG_NOSIGNAL);
        }
}

/* Dies with many segments, again and again. */
static void dies(void *arg)
{
    struct greedy *g = arg;
    for (;; usleep(100000)) {
        pid_t pid = fork();
        struct shmview_connection *c;
        struct shmview_segment *s;
        char name[32];
        if (pid == 0) {
            int r = shmview_connect(g->socket, SHMVIEW_CONNECT_NO_START, &c);
            for (int i = 0; r == 0 && i < SEGMENTS; i++) {
                snprintf(name, sizeof name, "mortal%d", i);
                r = shmview_create(c, name, 4096, NULL, &s);
            }
            _exit(r != 0);
        }
        int status = 1;
        if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
            return;
        is_ready(g);
    }
}

/* Connects and hangs up, as fast as it can. */
static void hangs_up(void *arg)
{
    const struct greedy *g = arg;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.107s", g->socket);
    for (is_ready(g);;) {
        int fd[SOCKETS], n = 0;
        for (bool full = false; n < SOCKETS && !full; n += !full) {
            fd[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            full = connect(fd[n], (const struct sockaddr *)&address, sizeof address) != 0;
            if (full)
                close(fd[n]);
        }
        while (n)
            close(fd[--n]);
    }
}

/* Monitors on many connections and reads all of it, while it creates and removes, with pauses,
 * so that the row shows the cost of telling monitors and not that of creating. */
static void makes_events(void *arg)
{
    static const char monitor[] = "{\"method\":\"io.shmview.Monitor\",\"more\":true}";
    static const char create[] = "{\"method\":\"io.shmview.Create\",\"parameters\":"
                                 "{\"name\":\"short\",\"size\":1,\"lifetime\":\"creator\"}}";
    static const char remove[] =
        "{\"method\":\"io.shmview.Remove\",\"parameters\":{\"name\":\"short\"}}";
    static char bytes[1 << 16];
    struct pollfd p[1 + MONITORS];
    bool is_there = false;
    for (int i = 0; i < 1 + MONITORS; i++) {
        p[i] = (struct pollfd){.fd = dial(arg), .events = POLLIN};
        if (i)
            send(p[i].fd, monitor, sizeof monitor, MSG_NOSIGNAL);
    }
    send(p[0].fd, create, sizeof create, MSG_NOSIGNAL);
    for (is_ready(arg); poll(p, 1 + MONITORS, -1) > 0; usleep(200))
        for (int i = 0; i < 1 + MONITORS; i++) {
            if (!p[i].revents || recv(p[i].fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0 || i)
                continue;
            is_there = !is_there;
            if (is_there)
                send(p[0].fd, remove, sizeof remove, MSG_NOSIGNAL);
            else
                send(p[0].fd, create, sizeof create, MSG_NOSIGNAL);
        }
}

/* Notifies of changes that it watches itself and never looks at, on many connections. */
static void rings(void *arg)
{
    static struct shmview_segment *s[RINGERS][RUNG];
    struct greedy *g = arg;
    struct shmview_connection *c;
    char name[32];
    int fd, r = 0;
    for (int i = 0; r == 0 && i < RINGERS; i++) {
        r = shmview_connect(g->socket, SHMVIEW_CONNECT_NO_START, &c);
        for (int k = 0; r == 0 && k < RUNG; k++) {
            snprintf(name, sizeof name, "rung%d", k);
            r = i ? shmview_attach(c, name, SHMVIEW_WRITE, 0, &s[i][k])
                  : shmview_create(c, name, 4096, NULL, &s[i][k]);
            if (r == 0 && i == 0 && k < RUNG / 2) /* the last watches are for others */
                r = shmview_change_fd(s[i][k], &fd);
        }
    }
    if (r) {
        failed("a greedy client: %s", shmview_error_text());
        return;
    }
    for (is_ready(g);;)
        for (int i = 0; i < RINGERS; i++)
            for (int k = 0; k < RUNG; k++)
                shmview_notify(s[i][k]);
}

/* --- The calm one -------------------------------------------------------- */

/* The median of some pings: a few that wait for a greedy client's turn are the row "worst". */
static int run_ping(void *arg, double *ret)
{
    struct side *side = arg;
    double took[PINGS];
    for (int i = 0; i < PINGS; i++) {
        int64_t start = now_ns();
        if (shmview_ping(side->connection))
            return failed("ping: %s", shmview_error_text());
        took[i] = (double)(now_ns() - start);
        side->worst_ns = took[i] > side->worst_ns ? took[i] : side->worst_ns;
    }
    *ret = median(took, PINGS);
    return 0;
}

static void add_worst(struct bench *bench, const char *what, const struct side *beside,
                      const struct side *alone)
{
    struct row row = {.reference_name = "without it",
                      .unit = "ms",
                      .ours = beside->worst_ns * 1e-6,
                      .reference = alone->worst_ns * 1e-6,
                      .target = {TARGET_VALUE, 20}};
    snprintf(row.what, sizeof row.what, "worst %s", what);
    row.ratio = row.ratio_min = row.ratio_max = beside->worst_ns / alone->worst_ns;
    table_add(&bench->table, &row);
}

static int side_open(struct side *side, const struct bench *bench, const char *name)
{
    if (instance_start_beside(&side->instance, bench->instance, name, DESCRIPTORS))
        return -1;
    place_process(&bench->cpus, PLACE_SAME, 1, side->instance.daemon);
    return shmview_connect(side->instance.socket, SHMVIEW_CONNECT_NO_START, &side->connection)
               ? failed("%s", shmview_error_text())
               : 0;
}

static void side_close(struct side *side)
{
    shmview_disconnect(side->connection);
    if (side->instance.directory[0])
        instance_stop(&side->instance);
}

static void run_beside(struct bench *bench, const char *what, void (*run)(void *))
{
    struct side beside = {.connection = NULL}, alone = {.connection = NULL};
    struct contest contest = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 61,
        .rounds_quick = 11,
        .n = 2,
        .list = {{"beside it", run_ping, &beside, {0}},
                 {"without it", run_ping, &alone, {TARGET_RATIO, 1.05}}},
    };
    struct greedy greedy = {.socket = beside.instance.socket};
    pid_t child = -1;
    snprintf(contest.what, sizeof contest.what, "%s", what);
    if (!bench_wants(bench, what))
        return;
    greedy.ready =
        mmap(NULL, sizeof *greedy.ready, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (greedy.ready == MAP_FAILED) {
        bench->n_failed++;
        return;
    }
    int r = side_open(&beside, bench, "beside");
    if (r == 0)
        r = side_open(&alone, bench, "alone");
    if (r == 0) {
        child = child_start(run, &greedy);
        place_process(&bench->cpus, PLACE_TWO, 1, child); /* its own time is not the daemon's */
    }
    if (r || wait_for(greedy.ready, 1)) {
        failed("not measured: %s", what);
        bench->n_failed++;
    } else {
        place_process(&bench->cpus, PLACE_SAME, 0, 0);
        contest_run(bench, &contest);
        add_worst(bench, what, &beside, &alone);
    }
    child_end(child);
    munmap((void *)(uintptr_t)greedy.ready, sizeof *greedy.ready);
    side_close(&beside);
    side_close(&alone);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}

void bench_greed(struct bench *bench)
{
    run_beside(bench, "ping beside one who never reads", never_reads);
    run_beside(bench, "ping beside one byte a second", byte_a_second);
    run_beside(bench, "ping beside one who connects", connects);
    run_beside(bench, "ping beside 10000 attachments", attaches);
    run_beside(bench, "ping beside 64 that ask for large layouts", describes);
    run_beside(bench, "ping beside one who creates large", creates);
    run_beside(bench, "ping beside deaths with 1000 segments", dies);
    run_beside(bench, "ping beside connects and hang-ups", hangs_up);
    run_beside(bench, "ping beside 50 who monitor", makes_events);
    run_beside(bench, "ping beside one who notifies", rings);
}
