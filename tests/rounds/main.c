/* SPDX-License-Identifier: Apache-2.0 */
/* Kills the daemon with SIGKILL in every round while clients use it, and starts another one.
 * Clients check that nothing acknowledged is lost (client.c). At the end no slot may be in use,
 * and no unexpected object may be left. */
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <shmview/shmview.h>

#include "rounds/arena.h"
#include "rounds/objects.h"

static const char help[] =
    "Usage: rounds [OPTION]...\n"
    "Kill the daemon again and again while clients create, attach, lock, switch and die;\n"
    "look whether anything is lost or left. $SHMVIEWD names the daemon.\n"
    "\n"
    "  --rounds N   kill it so often (20)\n"
    "  --clients N  so many at a time, 1 to 32 (8)\n"
    "  --sealed     with sealed segments, which a keeper holds while no daemon runs\n"
    "  --seed N     begin here; what happens depends on the machine as well\n"
    "  --worst MS   it is wrong if a call takes longer, in milliseconds\n"
    "\n"
    "Exits with 0 if all went well, 1 if something was wrong, 2 if it could not begin.\n";

#define PATIENCE_NS 20000000000

struct arena *arena;

static struct {
    unsigned rounds, clients;
    long worst_ms;
    bool sealed;
} choice = {20, 8, 0, false};

static char directory[] = "/tmp/shmview-rounds.XXXXXX";
static char instance[64], log_path[64], config_path[64];
static pid_t daemon_pid, clients[CLIENTS_MAX];
static unsigned incarnations[CLIENTS_MAX], deaths, rounds_done;

void wrong(const char *format, ...)
{
    va_list ap;
    if (atomic_fetch_add(&arena->n_wrong, 1))
        return;
    va_start(ap, format);
    vsnprintf(arena->wrong, sizeof arena->wrong, format, ap);
    va_end(ap);
}

static void pause_ns(long ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

/* --- Processes ----------------------------------------------------------- */

static void start_daemon(void)
{
    const char *program = getenv("SHMVIEWD");
    daemon_pid = fork();
    if (daemon_pid)
        return;
    int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execl(program, program, "--socket", arena->socket, "--config", config_path, (char *)NULL);
    _exit(127);
}

static struct shmview_connection *connect_patiently(void)
{
    struct shmview_connection *conn = NULL;
    int64_t deadline = shmview_deadline(PATIENCE_NS);
    while (shmview_connect(arena->socket, 0, &conn) && shmview_deadline(0) < deadline)
        pause_ns(1000000);
    if (!conn)
        wrong("the daemon does not answer: %s", shmview_error_text());
    return conn;
}

static void spawn(unsigned i)
{
    clients[i] = fork();
    if (clients[i] == 0)
        client_live(i, incarnations[i]);
    incarnations[i]++;
}

/* Reaps clients that have ended, and starts others in their place if again is set. */
static void reap(bool again)
{
    for (unsigned i = 0; i < choice.clients; i++) {
        int status;
        if (clients[i] <= 0 || waitpid(clients[i], &status, WNOHANG) != clients[i])
            continue;
        clients[i] = 0;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            deaths++;
        else if (status)
            wrong("client %u ended with status 0x%x", i, (unsigned)status);
        if (again)
            spawn(i);
    }
}

static bool any_client(void)
{
    for (unsigned i = 0; i < choice.clients; i++)
        if (clients[i] > 0)
            return true;
    return false;
}

/* --- Beginning and end --------------------------------------------------- */

static int begin(struct shmview_connection **conn)
{
    const int64_t ten = 10;
    struct shmview_segment *s;
    struct shmview_create_options o = {.struct_bytes = sizeof o, .lifetime = SHMVIEW_MANUAL};
    struct shmview_view_spec spec = {.name = "A", .format = "f", .ndim = 1, .shape = &ten};
    start_daemon();
    *conn = connect_patiently();
    int r = *conn ? shmview_create(*conn, "shared", SHARED_BYTES, &o, &s) : -1;
    if (r == 0)
        r = shmview_define(s, "float", &spec, 1);
    spec.format = "i";
    if (r == 0)
        r = shmview_define(s, "int", &spec, 1);
    if (r == 0)
        r = shmview_detach(s);
    return r;
}

static void find_instance(void)
{
    char line[512];
    FILE *f = fopen(log_path, "re");
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, ", instance ");
        if (at && sscanf(at, ", instance %63[^,]", instance) == 1)
            break;
    }
    if (f)
        fclose(f);
}

/* After all clients have ended: only their own segments and the shared one must exist, and no
 * slot may be in use. */
static void check_rest(struct shmview_connection *conn)
{
    unsigned slots = 1, n = 0, wanted = 3;
    for (unsigned i = 0; i < choice.clients; i++)
        wanted += atomic_load(&arena->own[i].exists) ? 3 : 0;
    int64_t deadline = shmview_deadline(PATIENCE_NS);
    /* the daemon may not have noticed the last deaths yet */
    while (((n = objects_count(instance, daemon_pid, &slots)) != wanted || slots) &&
           shmview_deadline(0) < deadline)
        pause_ns(1000000);
    if (n != wanted || slots)
        wrong("%u objects and %u slots in use are left, where %u and none must be", n, slots,
              wanted);
    for (unsigned i = 0; i < choice.clients; i++) {
        char name[32];
        struct shmview_segment *s;
        snprintf(name, sizeof name, "own%u", i);
        if (!atomic_load(&arena->own[i].exists))
            continue;
        if (shmview_attach(conn, name, SHMVIEW_READ, 0, &s)) {
            wrong("'%s' at the end: %s", name, shmview_error_text());
            continue;
        }
        unsigned char last = (unsigned char)atomic_load(&arena->own[i].written);
        unsigned char got = *(unsigned char *)shmview_data(s);
        if (got != last && got != (unsigned char)(last + 1))
            wrong("'%s' at the end: %u, not %u", name, got, last);
        shmview_detach(s);
    }
    shmview_disconnect(conn);
}

static void leave(void)
{
    int status = -1;
    unsigned slots, n;
    kill(daemon_pid, SIGINT);
    waitpid(daemon_pid, &status, 0);
    if (status)
        wrong("the daemon ended with status 0x%x", (unsigned)status);
    if ((n = objects_count(instance, 0, &slots)) > 0)
        wrong("%u objects are left at the end", n);
    int64_t deadline = shmview_deadline(PATIENCE_NS);
    bool gone = false;
    while (!(gone = waitpid(-1, NULL, WNOHANG) < 0) && shmview_deadline(0) < deadline)
        pause_ns(1000000);
    if (!gone) /* this process is the parent of orphans */
        wrong("a keeper is left at the end");
}

/* The default of the daemon's configuration is the backing of all segments. */
static bool configure(void)
{
    FILE *f = fopen(config_path, "we");
    return f &&
           fprintf(f, "{\"defaults\": {\"backing\": \"%s\"}}\n",
                   choice.sealed ? "sealed" : "file") > 0 &&
           fclose(f) == 0;
}

/* Whether a daemon has logged that it lost a segment. */
static void check_log(void)
{
    char line[512];
    FILE *f = fopen(log_path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "is lost") || strstr(line, "cannot be kept"))
            wrong("logged: %s", line);
    if (f)
        fclose(f);
}

static void clean_up(void)
{
    char path[160];
    DIR *dir = opendir(directory);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%.100s", directory, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(directory);
}

/* --- Rounds -------------------------------------------------------------- */

/* One round: kills the daemon and starts another. One in eight dies during its takeover, the
 * others under load. */
static void round_once(void)
{
    if (random() % 8 == 0) {
        pause_ns(random() % 8000000);
    } else {
        struct shmview_connection *conn = connect_patiently();
        shmview_disconnect(conn);
        pause_ns(random() % 25000000);
    }
    kill(daemon_pid, SIGKILL);
    waitpid(daemon_pid, NULL, 0);
    start_daemon();
    reap(true);
    rounds_done++;
}

static int report(void)
{
    static const char *const names[] = {"connect", "create", "attach", "detach", "remove",
                                        "define",  "lock",   "switch", "ping"};
    long worst = 0;
    printf("%s: %u rounds, %u deaths of clients, %lu locks repaired, %lu requests unanswered\n",
           choice.sealed ? "sealed" : "file", rounds_done, deaths, atomic_load(&arena->repairs),
           atomic_load(&arena->uncertain));
    printf("worst of so many calls:");
    for (int i = 0; i < N_CALLS; i++) {
        long ms = atomic_load(&arena->worst_ns[i]) / 1000000;
        worst = ms > worst ? ms : worst;
        printf("%s %s %ld ms of %lu", i ? "," : "", names[i], ms, atomic_load(&arena->calls[i]));
    }
    printf("\n");
    if (choice.worst_ms && worst > choice.worst_ms)
        wrong("a call took %ld ms", worst);
    if (!atomic_load(&arena->n_wrong))
        return 0;
    printf("WRONG, %u times; first: %s\n", atomic_load(&arena->n_wrong), arena->wrong);
    return 1;
}

static int read_choice(int argc, char **argv)
{
    static const struct option table[] = {
        {"rounds", required_argument, NULL, 'r'},
        {"clients", required_argument, NULL, 'c'},
        {"seed", required_argument, NULL, 's'},
        {"worst", required_argument, NULL, 'w'},
        {"sealed", no_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int o; (o = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        if (o == 'r')
            choice.rounds = (unsigned)strtoul(optarg, NULL, 10);
        else if (o == 'c')
            choice.clients = (unsigned)strtoul(optarg, NULL, 10);
        else if (o == 's')
            arena->seed = strtoul(optarg, NULL, 0);
        else if (o == 'w')
            choice.worst_ms = strtol(optarg, NULL, 10);
        else if (o == 'b')
            choice.sealed = true;
        else
            return fputs(help, o == 'h' ? stdout : stderr), o == 'h' ? 0 : 2;
    }
    if (!getenv("SHMVIEWD") || choice.clients < 1 || choice.clients > CLIENTS_MAX)
        return fputs(help, stderr), 2;
    return -1;
}

int main(int argc, char **argv)
{
    struct shmview_connection *conn;
    arena = mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED)
        return 2;
    arena->seed = (uint64_t)shmview_deadline(0);
    int status = read_choice(argc, argv);
    if (status != -1)
        return status;
    srandom((unsigned)arena->seed);
    if (!mkdtemp(directory))
        return 2;
    snprintf(arena->socket, sizeof arena->socket, "%s/socket", directory);
    snprintf(log_path, sizeof log_path, "%s/log", directory);
    snprintf(config_path, sizeof config_path, "%s/config", directory);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!configure() || begin(&conn)) {
        fprintf(stderr, "rounds: cannot begin: %s\n", shmview_error_text());
        kill(daemon_pid, SIGINT);
        return 2;
    }
    find_instance();
    for (unsigned i = 0; i < choice.clients; i++)
        spawn(i);
    for (unsigned i = 0; i < choice.rounds && !atomic_load(&arena->n_wrong); i++)
        round_once();
    atomic_store(&arena->over, true);
    while (any_client()) {
        reap(false);
        pause_ns(1000000);
    }
    shmview_ping(conn);
    check_rest(conn);
    leave();
    check_log();
    status = report();
    if (status == 0)
        clean_up();
    else
        printf("log and registry are in %s\n", directory);
    return status;
}
