/* SPDX-License-Identifier: Apache-2.0 */
/* web: becomes shmview-web, the program that serves a page to look at memory.
 *
 * That program is one of its own, because it needs an HTTP library that no other part of shmview
 * needs, and may be left out of an installation. This verb checks the options, so that their errors
 * are those of all verbs, and that a daemon answers. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/shell/cli.h"

#define PROGRAM      "shmview-web"
#define MOST_OPTIONS 24
#define NUMBER_BYTES 24

/* Where the program is, from the folder of shmviewctl on: in an installation, in Debian's, and in
 * a build. */
static const char *const places[] = {"../libexec/shmview/", "../web/"};

/* The command line. */
struct request {
    int64_t port, work; /* -1: not given */
    int64_t parent;     /* 0: not given */
    const char *listen, *host, *frame;
    bool opens, allow_changes;
};

/* Finds the program. Returns false if it is not installed. */
static bool find_program(char path[PATH_MAX])
{
    const char *set = getenv("SHMVIEW_WEB");
    char here[PATH_MAX];
    if (set) {
        snprintf(path, PATH_MAX, "%s", set);
        return true;
    }
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    here[n < 0 ? 0 : n] = '\0';
    char *slash = strrchr(here, '/');
    for (size_t i = 0; slash && i < ARRAY_LEN(places); i++) {
        int wanted =
            snprintf(path, PATH_MAX, "%.*s%s" PROGRAM, (int)(slash - here + 1), here, places[i]);
        if (wanted > 0 && wanted < PATH_MAX && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Replaces this process by the program. Returns the exit status if that fails. */
static int become(struct context *c, const struct request *q, char *path)
{
    char port[NUMBER_BYTES], work[NUMBER_BYTES], parent[NUMBER_BYTES];
    const char *argv[MOST_OPTIONS] = {path, "--socket", shmview_socket_path(c->connection)};
    size_t n = 3;
    if (q->port >= 0) {
        snprintf(port, sizeof port, "%lld", (long long)q->port);
        argv[n++] = "--port";
        argv[n++] = port;
    }
    if (q->work >= 0) {
        snprintf(work, sizeof work, "%lld", (long long)q->work);
        argv[n++] = "--work";
        argv[n++] = work;
    }
    if (q->listen) {
        argv[n++] = "--listen";
        argv[n++] = q->listen;
    }
    if (q->host) {
        argv[n++] = "--host";
        argv[n++] = q->host;
    }
    if (q->frame) {
        argv[n++] = "--frame";
        argv[n++] = q->frame;
    }
    if (q->parent) {
        snprintf(parent, sizeof parent, "%lld", (long long)q->parent);
        argv[n++] = "--parent";
        argv[n++] = parent;
    }
    if (q->opens)
        argv[n++] = "--open";
    if (q->allow_changes)
        argv[n++] = "--allow-changes";
    fflush(NULL);
    execv(path, (char *const *)(uintptr_t)argv); /* it does not change the strings */
    return fail_text(c, "cannot run '%s': %s: install the package shmview-web", path,
                     strerror(errno));
}

static int run_web(struct context *c, int argc, char **argv)
{
    struct request q = {.port = -1, .work = -1};
    char path[PATH_MAX];
    const struct verb_option options[] = {
        OPT_NUMBER("port", 'p', &q.port, 0, 65535),
        OPT_TEXT("listen", 'l', &q.listen),
        OPT_TEXT("host", '\0', &q.host),
        OPT_TEXT("frame", '\0', &q.frame),
        OPT_FLAG("open", 'o', &q.opens),
        OPT_FLAG("allow-changes", '\0', &q.allow_changes),
        OPT_NUMBER("work", '\0', &q.work, 1, 6400),
        OPT_NUMBER("parent", '\0', &q.parent, 1, INT_MAX),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 0, 0))
        return c->status;
    if (q.listen && q.port >= 0)
        return fail_usage(c, "--port and --listen exclude each other");
    int status = connect_daemon(c);
    if (status)
        return status;
    if (!find_program(path))
        return fail_text(c, "the program " PROGRAM " is not installed: install the package "
                            "shmview-web, or build with libmicrohttpd");
    return become(c, &q, path);
}

const struct verb verb_web = {
    .name = "web",
    .arguments = "",
    .summary = "Serve a page to look at memory in a browser",
    .help = "  -p, --port PORT           of 127.0.0.1 and ::1 (8760, or else any free one)\n"
            "  -l, --listen PATH         a Unix socket instead, for a tunnel or a proxy\n"
            "      --host NAME           also answer for this host name, that of a proxy\n"
            "      --frame ORIGIN        let pages of this origin show the page in a frame\n"
            "  -o, --open                open the link in the browser of the desktop\n"
            "      --allow-changes       let the page set elements\n"
            "      --work PERCENT        of one processor, for reading memory (50)\n"
            "      --parent PID          end when this parent process has ended\n"
            "\nPrints a link that lets one browser in, once. Other users cannot see the page.\n"
            "Example: shmviewctl web --open\n\n",
    .run = run_web,
};
