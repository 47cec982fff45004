/* SPDX-License-Identifier: Apache-2.0 */
#include "support/daemon.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/await.h"
#include "support/backing.h"
#include "support/child.h"
#include "support/place.h"
#include "support/raw.h"

const char *daemon_program(void)
{
    const char *program = getenv("SHMVIEWD");
    ck_assert_msg(program && program[0], "SHMVIEWD must name the daemon");
    return program;
}

/* Runs in the child: redirects its output to the log and executes the daemon. */
static void become_daemon(const struct daemon *daemon, const char *program, int log)
{
    struct rlimit limit = {daemon->max_descriptors, daemon->max_descriptors};
    const char *config = daemon->config[0] ? daemon->config : backing_config();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    if (daemon->max_descriptors && setrlimit(RLIMIT_NOFILE, &limit))
        _exit(126);
    execl(program, program, "--socket", daemon->socket, "--config", config, (char *)NULL);
    _exit(127);
}

/* Searches the log, from byte from on, for the line that the daemon logs once it listens.
 * Stores the instance. Returns whether the line is there. */
static bool listens(struct daemon *daemon, long from)
{
    char line[512];
    bool found = false;
    FILE *f = fopen(daemon->log, "re");
    ck_assert_ptr_nonnull(f);
    fseek(f, from, SEEK_SET);
    while (!found && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, ", instance ");
        found = at && strstr(at, ", listening on ") && strchr(at, '\n') &&
                sscanf(at, ", instance %63[^,]", daemon->instance) == 1;
    }
    fclose(f);
    return found;
}

static void launch(struct daemon *daemon)
{
    const char *program = daemon_program();
    struct stat st;
    int log = open(daemon->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(log, 0);
    ck_assert_int_eq(fstat(log, &st), 0);
    daemon->pid = process_fork();
    ck_assert_int_ge(daemon->pid, 0);
    if (daemon->pid == 0)
        become_daemon(daemon, program, log);
    close(log);
    AWAIT(listens(daemon, st.st_size) || !process_lives(daemon->pid));
    ck_assert_msg(process_lives(daemon->pid), "%s does not start; see %s", program, daemon->log);
    place_note_instance(daemon->instance);
}

void daemon_start_named(struct daemon *daemon, const char *name)
{
    *daemon = (struct daemon){0};
    snprintf(daemon->socket, sizeof daemon->socket, "%s/%s", place_directory(), name);
    snprintf(daemon->log, sizeof daemon->log, "%s.log", daemon->socket);
    launch(daemon);
}

void daemon_start_configured(struct daemon *daemon, const char *path)
{
    *daemon = (struct daemon){0};
    snprintf(daemon->socket, sizeof daemon->socket, "%s/configured", place_directory());
    snprintf(daemon->log, sizeof daemon->log, "%s.log", daemon->socket);
    snprintf(daemon->config, sizeof daemon->config, "%s", path);
    launch(daemon);
}

void daemon_start_limited(struct daemon *daemon, unsigned max_descriptors)
{
    *daemon = (struct daemon){.max_descriptors = max_descriptors};
    snprintf(daemon->socket, sizeof daemon->socket, "%s/limited", place_directory());
    snprintf(daemon->log, sizeof daemon->log, "%s.log", daemon->socket);
    launch(daemon);
}

void daemon_start(struct daemon *daemon)
{
    daemon_start_named(daemon, "io.shmview");
}

void daemon_await_end(struct daemon *daemon)
{
    char left[2048] = "";
    int status = process_wait(daemon->pid);
    daemon->pid = 0;
    ck_assert_msg(status == 0, "the daemon ended with status 0x%x", status);
    ck_assert_msg(access(daemon->socket, F_OK) != 0, "the daemon left its socket");
    /* in names, "." or "+" follows the instance; an instance contains neither */
    unsigned n = place_objects(daemon->instance, left, sizeof left);
    ck_assert_msg(n == 0, "the daemon left %u objects:\n%s", n, left);
}

void daemon_stop(struct daemon *daemon)
{
    ck_assert_int_eq(kill(daemon->pid, SIGINT), 0);
    daemon_await_end(daemon);
}

void daemon_leave(struct daemon *daemon)
{
    ck_assert_int_eq(kill(daemon->pid, SIGTERM), 0);
    int status = process_wait(daemon->pid);
    daemon->pid = 0;
    ck_assert_msg(status == 0, "the daemon ended with status 0x%x", status);
}

void daemon_kill(struct daemon *daemon)
{
    process_kill(daemon->pid);
    daemon->pid = 0;
}

void daemon_restart(struct daemon *daemon)
{
    ck_assert_int_eq(daemon->pid, 0);
    launch(daemon);
}

/* Finds the instance's name in the path of its lock file, which the daemon keeps open. */
static void find_instance(struct daemon *daemon)
{
    char path[300], link[300];
    snprintf(path, sizeof path, "/proc/%d/fd", daemon->pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof link - 1);
        link[n < 0 ? 0 : n] = '\0';
        char *end = strstr(link, "/+daemon");
        if (end && sscanf(link, "/dev/shm/shmview.%63[^/]", daemon->instance) == 1)
            break;
    }
    closedir(dir);
    ck_assert_msg(daemon->instance[0], "process %d is no shmviewd", daemon->pid);
}

void daemon_adopt(struct daemon *daemon, const char *path)
{
    struct raw raw;
    struct ucred cred;
    socklen_t n = sizeof cred;
    *daemon = (struct daemon){0};
    snprintf(daemon->socket, sizeof daemon->socket, "%s", path);
    raw_connect(&raw, path);
    ck_assert_int_eq(getsockopt(raw.socket, SOL_SOCKET, SO_PEERCRED, &cred, &n), 0);
    raw_close(&raw);
    daemon->pid = cred.pid;
    find_instance(daemon);
    place_note_instance(daemon->instance);
}

int daemon_run(const char *arguments, char *text, size_t bytes)
{
    char command[1024];
    snprintf(command, sizeof command, "'%s' %s 2>&1", daemon_program(), arguments);
    FILE *f = popen(command, "re");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, bytes - 1, f);
    text[n] = '\0';
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Returns how many lines of its log contain either text. */
static unsigned count_lines(const struct daemon *daemon, const char *text, const char *other)
{
    char line[1100];
    unsigned n = 0;
    FILE *f = fopen(daemon->log, "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f))
        n += strstr(line, text) || strstr(line, other);
    fclose(f);
    return n;
}

void daemon_reload(struct daemon *daemon)
{
    static const char done[] = "configuration was read again", not [] = "was not replaced";
    unsigned before = count_lines(daemon, done, not );
    ck_assert_int_eq(kill(daemon->pid, SIGHUP), 0);
    AWAIT(count_lines(daemon, done, not ) > before);
}

bool daemon_said(const struct daemon *daemon, const char *text)
{
    char line[1100];
    bool found = false;
    FILE *f = fopen(daemon->log, "re");
    ck_assert_ptr_nonnull(f);
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, text);
    fclose(f);
    return found;
}

unsigned daemon_objects(const struct daemon *daemon)
{
    unsigned files = place_objects(daemon->instance, NULL, 0) - 1; /* the instance's lock */
    return files + (daemon->pid ? backing_objects(daemon->pid) : 0);
}

bool daemon_has_data(const struct daemon *daemon, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "/dev/shm/shmview.%s/%s", daemon->instance, name);
    return access(path, F_OK) == 0;
}

/* --- Its configuration --------------------------------------------------- */

const char *daemon_config_path(void)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/c.json", place_directory());
    return path;
}

void daemon_configure(const char *text)
{
    char new[160];
    snprintf(new, sizeof new, "%s.new", daemon_config_path());
    FILE *f = fopen(new, "we");
    ck_assert_ptr_nonnull(f);
    for (; *text; text++)
        fputc(*text == '\'' ? '"' : *text, f);
    fclose(f);
    ck_assert_int_eq(rename(new, daemon_config_path()), 0);
}
