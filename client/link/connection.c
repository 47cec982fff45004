/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a daemon and connects to it.
 *
 * Without a path the library tries the instance of the user, then the system's, then the session's,
 * which it may start. It goes on to the next place only if the last one shows no trace of a daemon,
 * because another instance has other segments. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/link/connection.h"
#include "common/base/util.h"

#define START_TIMEOUT_NS 10000000000
#define START_RETRY_NS   5000000
/* How long the library waits for a daemon that is being restarted. */
#define RESTART_TIMEOUT_NS 900000000

/* --- Finding a daemon ---------------------------------------------------- */

/* The places that were tried, and why each failed, for the text of the error. */
struct search {
    char text[384];
    size_t n;
};

static void search_note(struct search *search, const char *path, const char *why)
{
    int n = snprintf(search->text + search->n, sizeof search->text - search->n, "%s%s (%s)",
                     search->n ? ", " : "", path, why);
    search->n += n > 0 ? (size_t)n : 0;
    if (search->n >= sizeof search->text)
        search->n = sizeof search->text - 1;
}

/* Keeps the path as an absolute one, because the process may change its directory before it
 * connects again. Returns 0 or an error. */
static int set_path(struct shmview_connection *c, const char *path)
{
    char directory[PATH_MAX] = "";
    bool is_relative = path[0] != '/' && path[0] != '\0';
    if (is_relative && !getcwd(directory, sizeof directory))
        return fail_errno("the current directory, in which the socket path begins", errno);
    const char *slash = directory[0] && directory[1] ? "/" : "";
    int n = snprintf(c->where.path, sizeof c->where.path, "%s%s%s", directory, slash, path);
    if (n >= 0 && n < (int)sizeof c->where.path)
        return 0;
    return fail(SHMVIEW_ERR_INVALID, "a socket path has at most %zu bytes: %s%s%s",
                sizeof c->where.path - 1, directory, slash, path);
}

/* Whether the path exists. Keeps errno. */
static bool is_there(const char *path)
{
    struct stat st;
    int saved = errno;
    bool there = lstat(path, &st) == 0;
    errno = saved;
    return there;
}

/* Connects and waits for the reply to a claim, because a daemon that is about to exit still accepts
 * a connection and then hangs up. A socket that exists but may not be used is an error at once:
 * waiting would give this user no right to it. Returns an enum reach or an error. */
static int try_path(struct shmview_connection *c, const char *path, bool check,
                    struct search *search)
{
    int r = set_path(c, path);
    if (r)
        return r;
    c->where.is_checked = check;
    r = connection_open(c);
    if (r == NOT_REACHED && errno == EACCES && is_there(path))
        return fail(SHMVIEW_ERR_DENIED, "this user may not connect to %s", path);
    if (r == NOT_REACHED)
        search_note(search, path, errno == ECONNRESET ? "it hung up" : strerror(errno));
    return r;
}

/* Returns WAIT_READY to try again, WAIT_EXPIRED, or -SHMVIEW_ERR_INTERRUPTED. */
static int pause_start(int64_t deadline)
{
    return now_ns() > deadline ? WAIT_EXPIRED : wait_a_moment(START_RETRY_NS);
}

/* Returns the suffix of a file that a daemon has left at this path, or NULL. Each daemon has a lock
 * and a registry there. A daemon that does not keep its segments removes these files at its end. */
static const char *find_trace(const char *path)
{
    static const char *const suffixes[] = {"", ".lock", ".registry"};
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        char name[sizeof(address_path) + sizeof ".registry"];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        if (is_there(name))
            return suffixes[i];
    }
    return NULL;
}

/* Connects to an instance that the library does not start. Another daemon would have other
 * segments, so the caller gets none while there is a trace of this one. Returns an enum reach or an
 * error. */
static int connect_instance(struct shmview_connection *c, const char *path, bool check,
                            struct search *search)
{
    int64_t deadline = now_ns() + RESTART_TIMEOUT_NS;
    struct search last;
    const char *trace;
    int r, paused = WAIT_READY;
    do {
        last = *search;
        r = try_path(c, path, check, &last);
        trace = r == NOT_REACHED ? find_trace(path) : NULL;
    } while (trace && (paused = pause_start(deadline)) == WAIT_READY);
    *search = last;
    if (!trace || paused < 0)
        return paused < 0 ? paused : r;
    return fail(SHMVIEW_ERR_NO_DAEMON,
                "no shmviewd: tried %s; %s%s shows that a daemon has segments there: start it "
                "again, remove that file, or set $SHMVIEW_SOCKET",
                search->text, path, trace);
}

/* Connects to the session daemon, and starts one if start is set. Another client may start one at
 * the same moment; then this client uses the daemon that got the socket. Returns an enum reach or
 * an error. */
static int connect_session(struct shmview_connection *c, const char *path, bool start,
                           struct search *search)
{
    char text[200] = "";
    c->may_start = start;
    int r = try_path(c, path, true, search);
    if (r != NOT_REACHED || !start)
        return r;
    int64_t deadline = now_ns() + START_TIMEOUT_NS;
    int paused = WAIT_READY;
    do {
        int failed = session_start(path, text, sizeof text);
        if (failed == -SHMVIEW_ERR_INTERRUPTED)
            return failed;
        struct search again = {0};
        r = try_path(c, path, true, &again);
        if (r == NOT_REACHED && failed && !strstr(text, "another shmviewd"))
            break; /* the daemon failed for a reason that stays */
    } while (r == NOT_REACHED && (paused = pause_start(deadline)) == WAIT_READY);
    if (paused < 0)
        return paused;
    if (r == NOT_REACHED)
        search_note(search, "starting one", text[0] ? text : "no answer in 10 s");
    if (r == NOT_REACHED)
        return fail(SHMVIEW_ERR_NO_DAEMON,
                    "no shmviewd: tried %s: set $SHMVIEW_DAEMON to the program, or $SHMVIEW_SOCKET "
                    "to the socket of a daemon that runs",
                    search->text);
    return r;
}

/* Connects to $SHMVIEW_SOCKET, or to the first instance that is there. Returns an enum reach or an
 * error. */
static int connect_default(struct shmview_connection *c, bool start, struct search *search)
{
    address_path user, session;
    const char *set = secure_getenv("SHMVIEW_SOCKET");
    if (set && set[0])
        return try_path(c, set, false, search);
    if (address_user(user) || address_session(session))
        return fail(SHMVIEW_ERR_INVALID, "$XDG_RUNTIME_DIR is too long for a socket path");
    int r = connect_instance(c, user, true, search);
    if (r == NOT_REACHED)
        r = connect_instance(c, ADDRESS_SYSTEM, false, search);
    if (r == NOT_REACHED)
        r = connect_session(c, session, start, search);
    return r;
}

/* Closes the socket and the bell, and unmaps the presence. A child only drops what it has
 * inherited: if the fork ran no handlers, something else of the child may lie at the address of the
 * presence. */
static void let_go(struct shmview_connection *c)
{
    if (atomic_load(&c->epoch) != process_epoch()) {
        NOT_FORKED;
        connection_disown(c);
    } else {
        connection_unmap_presence(c); /* first: with it, the daemon would wait for this client */
    }
    connection_hang_up(c);
    bell_close(c);
}

int shmview_connect(const char *socket_path, unsigned flags,
                    struct shmview_connection **ret_connection)
{
    struct search search = {0};
    NOT_CANCELLED;
    int r = process_init();
    if (r)
        return r;
    r = wait_refuse();
    if (r)
        return r;
    if (flags & ~SHMVIEW_CONNECT_NO_START)
        return fail(SHMVIEW_ERR_INVALID, "unknown flags 0x%x", flags);
    struct shmview_connection *c = calloc(1, sizeof *c);
    if (!c)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    c->fd = -1;
    c->spin.kind = SPIN_REPLY;
    atomic_init(&c->bell, -1);
    c->client = client_number();
    pthread_mutex_init(&c->mutex, NULL);
    atomic_store(&c->epoch, process_epoch());
    connection_enlist(c);
    r = socket_path ? try_path(c, socket_path, false, &search)
                    : connect_default(c, !(flags & SHMVIEW_CONNECT_NO_START), &search);
    if (r == REACHED) {
        *ret_connection = c;
        return 0;
    }
    let_go(c);
    connection_delist(c);
    free(c);
    return r == NOT_REACHED ? fail(SHMVIEW_ERR_NO_DAEMON, "no shmviewd: tried %s", search.text) : r;
}

const char *shmview_socket_path(const struct shmview_connection *connection)
{
    return connection->where.path;
}

static void (*_Atomic at_disconnect)(void);

void connection_at_disconnect(void (*drop)(void))
{
    at_disconnect = drop;
}

int shmview_disconnect(struct shmview_connection *connection)
{
    if (!connection)
        return 0;
    NOT_CANCELLED;
    unsigned n = connection->n_segments;
    if (n)
        return fail(SHMVIEW_ERR_BUSY, "%u segments are still attached through this connection", n);
    let_go(connection);
    connection_delist(connection);
    void (*drop)(void) = at_disconnect;
    if (drop)
        drop();
    pthread_mutex_destroy(&connection->mutex);
    free(connection->held);
    free(connection);
    return 0;
}
