/* SPDX-License-Identifier: Apache-2.0 */
/* How much a page of `shmviewctl web` that looks at a segment slows down its writer.
 *
 * The writer is on one CPU; the page's server, the daemon and a client of the server, which sends
 * the requests of the page 20 times a second, are on another one. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <shmview/view.h>

#include "bench.h"

#define LINE          "watched-line"
#define IMAGE         "watched-image"
#define LINE_BYTES    UINT64_C(400000000) /* 100 million float32 */
#define IMAGE_SIDE    1000
#define IMAGE_BYTES   (IMAGE_SIDE * IMAGE_SIDE * sizeof(float))
#define BLOCK_BYTES   65536
#define COLUMNS       1000
#define RATE          20   /* updates in a second */
#define BUDGET_US     2000 /* of an update of the line: 4 % of a processor */
#define RANGE_EVERY   8    /* updates of the image */
#define RUN_NS        500000000
#define SETTLE_US     60000 /* after the page has begun to look, or has stopped */
#define HEADERS_BYTES 4096
#define BODY_BYTES    (4 << 20)

enum look {
    LOOK_NOT,
    LOOK_LINE,
    LOOK_IMAGE,
    LOOK_COPY, /* no page: the client copies the image, 20 times a second */
};

/* Shared by the writer and the client of the server. */
struct shared {
    volatile uint32_t look;      /* what the page shows */
    volatile uint32_t n_updates; /* that the server has answered */
    volatile uint32_t is_failed;
};

struct watched {
    struct bench *bench;
    struct shared *shared;
    char program[PATH_MAX + 32]; /* shmview-web */
    char path[PATH_MAX + 32];    /* of its socket */
    char link[512];
    pid_t server, client;
    struct shmview_segment *line, *image;
    uint8_t *block; /* the bytes of one write */
};

/* --- The server ---------------------------------------------------------- */

static void run_server(void *arg)
{
    struct watched *w = arg;
    execl(w->program, w->program, "--socket", w->bench->instance->socket, "--listen", w->path,
          (char *)NULL);
}

/* Starts the server and reads its link. Returns 0 or -1. */
static int start_server(struct watched *w)
{
    int out[2], before;
    char text[2048];
    size_t n = 0;
    if (pipe2(out, O_CLOEXEC))
        return failed("pipe2() failed");
    fflush(stdout);
    before = dup(1);
    dup2(out[1], 1);
    w->server = child_start(run_server, w);
    dup2(before, 1);
    close(before);
    close(out[1]);
    char *link = NULL, *end = NULL;
    while (!end && n < sizeof text - 1) {
        ssize_t more = read(out[0], text + n, sizeof text - 1 - n);
        if (more <= 0)
            break;
        n += (size_t)more;
        text[n] = '\0';
        link = strstr(text, "/?token=");
        end = link ? strchr(link, '\n') : NULL;
    }
    close(out[0]);
    if (!end || end - link >= (ptrdiff_t)sizeof w->link)
        return failed("%s prints no link", w->program);
    snprintf(w->link, sizeof w->link, "%.*s", (int)(end - link), link);
    return 0;
}

/* --- The client of the server -------------------------------------------- */

/* A connection to the server, and its last answer. */
struct visit {
    int fd;
    char cookie[256];
    char headers[HEADERS_BYTES];
    char *body; /* BODY_BYTES */
    size_t n;
};

static int read_answer(struct visit *v)
{
    size_t n = 0, rest;
    char *end = NULL;
    while (!end) {
        ssize_t more = read(v->fd, v->headers + n, sizeof v->headers - 1 - n);
        if (more <= 0)
            return -1;
        n += (size_t)more;
        v->headers[n] = '\0';
        end = strstr(v->headers, "\r\n\r\n");
    }
    rest = n - (size_t)(end + 4 - v->headers);
    memcpy(v->body, end + 4, rest);
    end[2] = '\0';
    const char *length = strcasestr(v->headers, "content-length:");
    v->n = length ? strtoul(length + 15, NULL, 10) : 0;
    if (strncmp(v->headers, "HTTP/1.1 200", 12) != 0 || v->n >= BODY_BYTES)
        return -1;
    while (rest < v->n) {
        ssize_t more = read(v->fd, v->body + rest, v->n - rest);
        if (more <= 0)
            return -1;
        rest += (size_t)more;
    }
    return 0;
}

static int get(struct visit *v, const char *path)
{
    char request[1024];
    int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path,
                     v->cookie);
    return write(v->fd, request, (size_t)n) == n ? read_answer(v) : -1;
}

static int enter(struct visit *v, const struct watched *w)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(w->path) >= sizeof at.sun_path)
        return failed("the path is too long: %s", w->path);
    strcpy(at.sun_path, w->path);
    v->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    v->body = malloc(BODY_BYTES);
    if (v->fd < 0 || !v->body || connect(v->fd, (struct sockaddr *)&at, sizeof at) ||
        get(v, w->link))
        return -1;
    const char *cookie = strcasestr(v->headers, "set-cookie: ");
    if (!cookie)
        return -1;
    snprintf(v->cookie, sizeof v->cookie, "Cookie: %.*s\r\n", (int)strcspn(cookie + 12, ";"),
             cookie + 12);
    return 0;
}

/* Returns a number of the JSON text at the begin of the last answer. */
static double member(const struct visit *v, const char *name)
{
    char wanted[32], text[1024] = "";
    uint32_t n = 0;
    if (v->n > 8)
        memcpy(&n, v->body, sizeof n);
    if (n && n < sizeof text && n + 8 <= v->n)
        memcpy(text, v->body + 8, n);
    snprintf(wanted, sizeof wanted, "\"%s\":", name);
    const char *found = strstr(text, wanted);
    return found ? strtod(found + strlen(wanted), NULL) : (double)NAN;
}

static int update_line(struct visit *v, unsigned *first)
{
    char path[256];
    snprintf(path, sizeof path,
             "/api/line?segment=" LINE "&as=float32&columns=%d&first=%u&budget=%d", COLUMNS, *first,
             BUDGET_US);
    if (get(v, path))
        return -1;
    *first = (*first + (unsigned)member(v, "read")) % COLUMNS;
    return 0;
}

/* Like the page: an image has the scale of the one before. */
static int update_image(struct visit *v, unsigned n, double scale[2])
{
    char path[256] = "", known[96] = "";
    if (scale[0] < scale[1])
        snprintf(known, sizeof known, "&low=%g&high=%g&range=%d", scale[0], scale[1],
                 n % RANGE_EVERY == 0);
    snprintf(path, sizeof path, "/api/image?segment=" IMAGE "&layout=l&view=v&rows=%d&columns=%d%s",
             IMAGE_SIDE, IMAGE_SIDE, known);
    if (get(v, path))
        return -1;
    double min = member(v, "min"), max = member(v, "max");
    if (min < max)
        scale[0] = min, scale[1] = max;
    return 0;
}

static void visit(void *arg)
{
    const struct watched *w = arg;
    struct shared *shared = w->shared;
    struct visit v = {.fd = -1};
    double scale[2] = {0, 0};
    unsigned first = 0;
    int r = enter(&v, w);
    for (unsigned n = 0; r == 0; n++) {
        int64_t begun = now_ns();
        if (shared->look == LOOK_LINE)
            r = update_line(&v, &first);
        else if (shared->look == LOOK_IMAGE)
            r = update_image(&v, n, scale);
        else if (shared->look == LOOK_COPY && v.body)
            memcpy(v.body, shmview_data(w->image), IMAGE_BYTES);
        if (r == 0 && shared->look != LOOK_NOT)
            __atomic_add_fetch(&shared->n_updates, 1, __ATOMIC_SEQ_CST);
        int64_t left_us = 1000000 / RATE - (now_ns() - begun) / 1000;
        if (left_us > 0)
            usleep((useconds_t)left_us);
    }
    failed("the page's server: %.200s", v.headers);
    shared->is_failed = 1;
}

/* --- The writer ---------------------------------------------------------- */

/* One side of a contest. */
struct side {
    struct watched *w;
    struct shmview_segment *segment;
    size_t block;
    bool locks;
    enum look look;
};

/* The time of one write, on average. */
static int run(void *arg, double *ret)
{
    const struct side *side = arg;
    struct shared *shared = side->w->shared;
    uint8_t *data = shmview_data(side->segment);
    uint64_t n_blocks = shmview_size(side->segment) / side->block, n = 0;
    shared->look = side->look;
    usleep(SETTLE_US);
    uint32_t before = shared->n_updates;
    int64_t begun = now_ns(), ended;
    do {
        if (side->locks && shmview_lock(side->segment))
            return failed("lock: %s", shmview_error_text());
        memcpy(data + n++ % n_blocks * side->block, side->w->block, side->block);
        if (side->locks)
            shmview_unlock(side->segment);
        ended = now_ns();
    } while (ended - begun < RUN_NS);
    *ret = (double)(ended - begun) / (double)n;
    uint32_t updates = shared->n_updates - before, wanted = RATE * (RUN_NS / 1000000) / 1000;
    shared->look = LOOK_NOT;
    if (shared->is_failed || (side->look != LOOK_NOT && updates < wanted / 2))
        return failed("the page had %u updates of %u", updates, wanted);
    usleep(SETTLE_US);
    return 0;
}

static void run_row(struct watched *w, const char *what, struct side side)
{
    struct side alone = side, copied = side;
    struct contest contest = {.unit = "us",
                              .scale = 1e-3,
                              .rounds = 9,
                              .rounds_quick = 3,
                              .n = side.look == LOOK_IMAGE ? 3 : 2,
                              .list = {{"watched", run, &side, {0}},
                                       {"no page", run, &alone, {0}},
                                       {"copied, 20 a second", run, &copied, {0}}}};
    alone.look = LOOK_NOT;
    copied.look = LOOK_COPY;
    snprintf(contest.what, sizeof contest.what, "%s, %s", what, place_name(PLACE_TWO));
    contest_run(w->bench, &contest);
}

static const struct {
    const char *what;
    enum look look;
    bool locks;
} rows[] = {
    {"write 64 KiB, a line watched", LOOK_LINE, true},
    {"write 64 KiB without lock, a line watched", LOOK_LINE, false},
    {"write 4 MB, an image watched", LOOK_IMAGE, true},
    {"write 4 MB without lock, an image watched", LOOK_IMAGE, false},
};

/* --- Preparing ----------------------------------------------------------- */

static int make_segments(struct watched *w)
{
    static const struct shmview_create_options touched = {.struct_bytes = sizeof touched,
                                                          .flags = SHMVIEW_POPULATE};
    static const int64_t shape[] = {IMAGE_SIDE, IMAGE_SIDE};
    static const struct shmview_view_spec view = {
        .name = "v", .format = "float32", .ndim = 2, .shape = shape};
    struct shmview_connection *c = w->bench->connection;
    if (shmview_create(c, LINE, LINE_BYTES, &touched, &w->line) ||
        shmview_create(c, IMAGE, IMAGE_BYTES, &touched, &w->image) ||
        shmview_define(w->image, "l", &view, 1))
        return failed("watched: %s", shmview_error_text());
    w->block = malloc(IMAGE_BYTES);
    for (size_t i = 0; w->block && i < IMAGE_BYTES / sizeof(float); i++)
        ((float *)(void *)w->block)[i] = (float)(i % 1000);
    return w->block ? 0 : failed("out of memory");
}

static int prepare(struct watched *w)
{
    struct bench *bench = w->bench;
    w->shared =
        mmap(NULL, sizeof *w->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w->shared == MAP_FAILED)
        return failed("watched: no memory");
    snprintf(w->path, sizeof w->path, "%s/web", bench->instance->directory);
    if (make_segments(w) || start_server(w))
        return -1;
    place_process(&bench->cpus, PLACE_TWO, 1, w->server);
    w->client = child_start(visit, w);
    place_process(&bench->cpus, PLACE_TWO, 1, w->client);
    return 0;
}

/* Finds shmview-web beside the daemon. Returns false if it was not built. */
static bool find_web(struct watched *w)
{
    snprintf(w->program, sizeof w->program, "%s", w->bench->instance->program);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(w->program, '/');
        if (slash)
            *slash = '\0';
    }
    strcat(w->program, "/web/shmview-web");
    return access(w->program, X_OK) == 0;
}

void bench_watched(struct bench *bench)
{
    struct watched w = {.bench = bench, .server = -1, .client = -1};
    bool is_wanted = false;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        is_wanted |= bench_wants_placed(bench, rows[i].what);
    if (!is_wanted || !place_exists(&bench->cpus, PLACE_TWO))
        return;
    if (!find_web(&w)) {
        failed("no shmview-web beside %s: the page is not measured", bench->instance->program);
        return;
    }
    if (prepare(&w)) {
        bench->n_failed++;
    } else {
        place_process(&bench->cpus, PLACE_TWO, 0, 0);
        place_process(&bench->cpus, PLACE_TWO, 1, bench->instance->daemon);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            bool is_line = rows[i].look == LOOK_LINE;
            run_row(&w, rows[i].what,
                    (struct side){.w = &w,
                                  .segment = is_line ? w.line : w.image,
                                  .block = is_line ? BLOCK_BYTES : IMAGE_BYTES,
                                  .locks = rows[i].locks,
                                  .look = rows[i].look});
        }
        place_process(&bench->cpus, PLACE_FREE, 0, 0);
        place_process(&bench->cpus, PLACE_FREE, 1, bench->instance->daemon);
    }
    child_end(w.client);
    child_end(w.server);
    shmview_detach(w.line);
    shmview_detach(w.image);
    munmap(w.shared, sizeof *w.shared);
    free(w.block);
}
