/* SPDX-License-Identifier: Apache-2.0 */
/* shmview-web: serves the page. `shmviewctl web` runs it with the options that the user gave, and
 * so does systemd. It uses only the public library, and runs as the user whose segments it shows.
 *
 * The threads of the server block all signals that end the program; the main thread waits for
 * them. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "web/api/api.h"
#include "web/http/check.h"
#include "web/http/listen.h"
#include "web/memory/guard.h"

#define PORT_DEFAULT 8760
#define WORK_DEFAULT 50 /* percent of one processor */
#define LINK_BYTES   600

enum exit_status {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_DAEMON = 3,
};

/* The command line, and what it becomes. */
struct program {
    const char *socket, *path, *host, *frame;
    long port, work; /* -1: not given */
    long parent;     /* ends the program; 0: none */
    bool opens, allow_changes;
    int sockets[LISTEN_MOST];
    size_t n_sockets;
    uint16_t real_port; /* 0: a Unix socket */
    struct backend backend;
    struct server *server;
};

__attribute__((format(printf, 2, 3))) static int fail(int status, const char *format, ...)
{
    va_list args;
    fputs("shmviewctl: web: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return status;
}

/* --- The command line ---------------------------------------------------- */

static bool read_long(const char *text, long low, long most, long *ret)
{
    char *end;
    errno = 0;
    *ret = strtol(text, &end, 10);
    return !errno && !*end && end > text && *ret >= low && *ret <= most;
}

/* Returns 0 or the exit status. shmviewctl has checked what a user gives; units have options, too.
 */
static int read_options(struct program *p, int argc, char **argv)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'},  {"port", required_argument, NULL, 'p'},
        {"listen", required_argument, NULL, 'l'},  {"host", required_argument, NULL, 'H'},
        {"work", required_argument, NULL, 'w'},    {"open", no_argument, NULL, 'o'},
        {"frame", required_argument, NULL, 'f'},   {"parent", required_argument, NULL, 'P'},
        {"allow-changes", no_argument, NULL, 'c'}, {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        bool is_right = true;
        switch (option) {
        case 's':
            p->socket = optarg;
            break;
        case 'p':
            is_right = read_long(optarg, 0, 65535, &p->port);
            break;
        case 'l':
            p->path = optarg;
            break;
        case 'H':
            p->host = optarg;
            break;
        case 'w':
            is_right = read_long(optarg, 1, 6400, &p->work);
            break;
        case 'f':
            p->frame = optarg;
            break;
        case 'P':
            is_right = read_long(optarg, 1, INT_MAX, &p->parent);
            break;
        case 'o':
            p->opens = true;
            break;
        case 'c':
            p->allow_changes = true;
            break;
        default:
            return EXIT_USAGE; /* getopt has printed the reason */
        }
        if (!is_right)
            return fail(EXIT_USAGE, "'%s' is no number for this option: see shmviewctl web --help",
                        optarg);
    }
    if (optind < argc)
        return fail(EXIT_USAGE, "'%s' is no option: see shmviewctl web --help", argv[optind]);
    if (p->path && p->port >= 0)
        return fail(EXIT_USAGE, "--port and --listen exclude each other: give one");
    if (p->frame && !check_frame(p->frame, p->host))
        return fail(
            EXIT_USAGE,
            "'%.200s' cannot show the page in a frame: give its scheme, host and port, such as "
            "http://localhost:8888; another host than localhost also needs --host",
            p->frame);
    return 0;
}

/* --- Listening ----------------------------------------------------------- */

/* Takes the sockets that systemd passes, if any. Returns 0 or the exit status. */
static int take_passed(struct program *p)
{
    int n = listen_passed(p->sockets);
    if (n < 0)
        return fail(EXIT_FAILED, "systemd has passed a socket that does not listen, or that other "
                                 "machines reach: use a Unix socket or a loopback address");
    p->n_sockets = (size_t)n;
    return 0;
}

/* Finds whether there is a daemon, for a person who starts the server. A server that systemd starts
 * for a browser would otherwise end again and again, until systemd gave up the socket. Returns 0 or
 * the exit status. */
static int look_for_daemon(struct program *p)
{
    struct shmview_connection *connection;
    if (p->n_sockets == 0 && backend_connection(&p->backend, &connection))
        return fail(EXIT_NO_DAEMON, "%s: start a daemon first", shmview_error_text());
    return 0;
}

/* Listens on the passed sockets, or on the port or path of the options. Returns 0 or the exit
 * status. */
static int start_listening(struct program *p)
{
    int n = (int)p->n_sockets;
    if (n == 0 && p->path) {
        n = listen_path(p->path, p->sockets);
        if (n < 0)
            return fail(EXIT_FAILED, "cannot listen on '%s': %s: choose another path", p->path,
                        strerror(-n));
    } else if (n == 0) {
        uint16_t port = (uint16_t)(p->port < 0 ? PORT_DEFAULT : p->port);
        n = listen_loopback(port, p->sockets);
        if (n == -EADDRINUSE && p->port < 0)
            n = listen_loopback(0, p->sockets);
        if (n < 0)
            return fail(EXIT_FAILED, "cannot listen on port %u: %s: choose another --port", port,
                        strerror(-n));
    }
    p->n_sockets = (size_t)n;
    p->real_port = listen_port(p->sockets[0]);
    return 0;
}

/* --- The link ------------------------------------------------------------ */

/* Returns the length of a host without its port. */
static size_t host_bytes(const char *host)
{
    return host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
}

static void make_link(const struct program *p, char ret[LINK_BYTES])
{
    char token[SESSION_BYTES];
    server_token(p->server, token);
    if (p->host)
        snprintf(ret, LINK_BYTES, "http://%.400s/?token=%s", p->host, token);
    else if (p->real_port && p->frame) /* of its host, because browsers keep cookies by host */
        snprintf(ret, LINK_BYTES, "http://%.*s:%u/?token=%s", (int)host_bytes(p->frame + 7),
                 p->frame + 7, p->real_port, token);
    else if (p->real_port)
        snprintf(ret, LINK_BYTES, "http://127.0.0.1:%u/?token=%s", p->real_port, token);
    else
        snprintf(ret, LINK_BYTES, "http://localhost/?token=%s", token);
}

/* A browser has used the link: prints one for the next. */
static void on_exchange(void *context)
{
    struct backend *b = context;
    struct program *p = (struct program *)(void *)((char *)b - offsetof(struct program, backend));
    char link[LINK_BYTES];
    make_link(p, link);
    printf("A browser has used the link. For another one: %s\n", link);
    fflush(stdout);
}

/* Opens the link in the user's browser, and does not wait for it. The link is an argument of that
 * program, so that other users can see it: it is used up at once. */
static void open_link(char *link)
{
    char name[] = "xdg-open";
    char *const argv[] = {name, link, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        signal(SIGCHLD, SIG_DFL);
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execvp(argv[0], argv);
        fputs("shmviewctl: web: there is no xdg-open: open the link by hand\n", stderr);
        _exit(EXIT_FAILED);
    }
}

/* --- Running ------------------------------------------------------------- */

/* Waits for a signal, or for the end of the parent, which then is another process. */
static void await_end(const struct program *p, const sigset_t *ending)
{
    static const struct timespec pause = {.tv_sec = 1};
    int signal;
    if (p->parent)
        while (getppid() == (pid_t)p->parent && sigtimedwait(ending, NULL, &pause) < 0)
            continue;
    else
        sigwait(ending, &signal);
}

/* Serves until a signal ends the program. Returns the exit status. */
static int serve(struct program *p, const sigset_t *ending)
{
    const struct server_options options = {.sockets = p->sockets,
                                           .n_sockets = p->n_sockets,
                                           .host = p->host,
                                           .frame = p->frame,
                                           .allow_changes = p->allow_changes,
                                           .routes = api_routes,
                                           .context = &p->backend,
                                           .on_exchange = on_exchange};
    char link[LINK_BYTES];
    int r = server_start(&options, &p->server);
    if (r)
        return fail(EXIT_FAILED, "cannot serve: %s", strerror(-r));
    make_link(p, link);
    if (p->real_port == 0 && p->path)
        printf("Listening on %s, for a tunnel or a proxy.\n", p->path);
    printf("%s\nThe link lets one browser in, once. Ctrl-C ends the server.\n", link);
    fflush(stdout);
    if (p->opens)
        open_link(link);
    await_end(p, ending);
    server_stop(p->server);
    if (p->path)
        unlink(p->path);
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    struct program p = {.port = -1, .work = WORK_DEFAULT};
    sigset_t ending;
    int status = read_options(&p, argc, argv);
    if (status)
        return status;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ending, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* nobody waits for the child of open_link() */
    guard_init();
    if (backend_init(&p.backend, p.socket, (double)p.work))
        return fail(EXIT_FAILED, "out of memory");
    p.backend.allow_changes = p.allow_changes;
    status = take_passed(&p);
    status = status ? status : look_for_daemon(&p);
    status = status ? status : start_listening(&p);
    status = status ? status : serve(&p, &ending);
    backend_deinit(&p.backend);
    return status;
}
