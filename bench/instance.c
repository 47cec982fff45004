/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon under test, in a new temporary directory, so that it shares nothing with other daemons
 * of this user. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define WAIT_NS  10000000000
#define LEAVE_NS 60000000000 /* with a hundred thousand segments to remove */

static pid_t named_after; /* the process that started the instance */

void instance_object_name(char *ret, size_t bytes, const char *what)
{
    snprintf(ret, bytes, "/shmview-bench.%d.%s", named_after, what);
}

/* $SHMVIEWD, $SHMVIEW_DAEMON, or the one built beside this program. */
static int find_daemon(char *ret, size_t bytes)
{
    char self[PATH_MAX - 64];
    const char *set = getenv("SHMVIEWD");
    if (!set || !set[0])
        set = getenv("SHMVIEW_DAEMON");
    if (set && set[0]) {
        snprintf(ret, bytes, "%s", set);
    } else {
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        self[n > 0 ? n : 0] = '\0';
        for (int i = 0; i < 2; i++) {
            char *slash = strrchr(self, '/');
            if (slash)
                *slash = '\0';
        }
        snprintf(ret, bytes, "%s/daemon/shmviewd", self);
    }
    return access(ret, X_OK) ? failed("%s: %s; set SHMVIEWD", ret, strerror(errno)) : 0;
}

static void log_path(const struct instance *instance, char *ret, size_t bytes)
{
    snprintf(ret, bytes, "%s/log", instance->directory);
}

static void show_log(const struct instance *instance)
{
    char path[PATH_MAX], line[256];
    log_path(instance, path, sizeof path);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        fputs(line, stderr);
    if (f)
        fclose(f);
}

static void run_daemon(const struct instance *instance)
{
    char path[PATH_MAX];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); /* so that killing the group of the rows leaves the daemon time to clean up */
    prctl(PR_SET_PDEATHSIG, SIGINT);
    if (instance->descriptors)
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){instance->descriptors, instance->descriptors});
    char config[PATH_MAX] = "/dev/null";
    if (instance->pool)
        snprintf(config, sizeof config, "%s/pool.json", instance->directory);
    log_path(instance, path, sizeof path);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log >= 0) {
        dup2(log, 1);
        dup2(log, 2);
    }
    execl(instance->program, instance->program, "--socket", instance->socket, "--config", config,
          (char *)NULL);
    perror(instance->program);
    _exit(127);
}

/* Starts the daemon and waits until it answers. Returns 0 or -1. */
static int launch(struct instance *instance)
{
    instance->daemon = fork();
    if (instance->daemon == 0)
        run_daemon(instance);
    int64_t deadline = now_ns() + WAIT_NS;
    while (instance->daemon > 0 && now_ns() < deadline) {
        struct shmview_connection *c;
        if (shmview_connect(instance->socket, SHMVIEW_CONNECT_NO_START, &c) == 0) {
            shmview_disconnect(c);
            return 0;
        }
        if (waitpid(instance->daemon, NULL, WNOHANG) == instance->daemon)
            instance->daemon = -1;
        usleep(2000);
    }
    return -1;
}

static int launch_or_tell(struct instance *instance)
{
    snprintf(instance->socket, sizeof instance->socket, "%s/socket", instance->directory);
    if (launch(instance) == 0)
        return 0;
    show_log(instance);
    return failed("%s does not come up", instance->program);
}

int instance_start(struct instance *instance)
{
    const char *tmp = getenv("TMPDIR");
    *instance = (struct instance){.daemon = -1};
    named_after = getpid();
    if (find_daemon(instance->program, sizeof instance->program))
        return -1;
    snprintf(instance->directory, sizeof instance->directory, "%s/shmview-bench.XXXXXX",
             tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(instance->directory)) {
        failed("%s: %s", instance->directory, strerror(errno));
        instance->directory[0] = '\0';
        return -1;
    }
    return launch_or_tell(instance);
}

/* Makes the directory of another instance. Returns 0 or -1. */
static int make_directory(struct instance *instance, const struct instance *first, const char *name)
{
    snprintf(instance->program, sizeof instance->program, "%s", first->program);
    if (snprintf(instance->directory, sizeof instance->directory, "%s/%s", first->directory,
                 name) >= (int)sizeof instance->directory ||
        mkdir(instance->directory, 0700)) {
        instance->directory[0] = '\0';
        return failed("%s/%s: %s", first->directory, name, strerror(errno));
    }
    return 0;
}

int instance_start_beside(struct instance *instance, const struct instance *first, const char *name,
                          unsigned descriptors)
{
    *instance = (struct instance){.daemon = -1, .descriptors = descriptors};
    return make_directory(instance, first, name) ? -1 : launch_or_tell(instance);
}

int instance_start_with_pool(struct instance *instance, const struct instance *first,
                             const char *name)
{
    static const char text[] = "{\"pool\": \"64MiB\"}\n";
    char path[PATH_MAX];
    *instance = (struct instance){.daemon = -1, .pool = true};
    if (make_directory(instance, first, name))
        return -1;
    snprintf(path, sizeof path, "%s/pool.json", instance->directory);
    FILE *f = fopen(path, "we");
    bool written = f && fputs(text, f) >= 0;
    if ((f && fclose(f)) || !written)
        return failed("%s: %s", path, strerror(errno));
    return launch_or_tell(instance);
}

/* Objects of rows that did not get to remove them. */
static void sweep_objects(void)
{
    char name[64];
    instance_object_name(name, sizeof name, "");
    DIR *dir = opendir("/dev/shm");
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));)
        if (strncmp(e->d_name, name + 1, strlen(name + 1)) == 0)
            unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
}

/* Ends the daemon. Returns whether it left as it should. */
static bool end_daemon(struct instance *instance, int with)
{
    int status = -1;
    int64_t deadline = now_ns() + LEAVE_NS;
    if (instance->daemon <= 0)
        return true;
    kill(instance->daemon, with);
    while (waitpid(instance->daemon, &status, WNOHANG) == 0) {
        if (now_ns() > deadline)
            kill(instance->daemon, SIGKILL);
        usleep(1000);
    }
    instance->daemon = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int instance_restart(struct instance *instance)
{
    return end_daemon(instance, SIGTERM) ? launch_or_tell(instance) : failed("the daemon died");
}

/* Instances in this one's directory whose rows came to an end are on their way out: each
 * removes its registry last. */
static void await_others(const struct instance *instance)
{
    char pattern[PATH_MAX];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*/socket.registry", instance->directory);
    for (int64_t deadline = now_ns() + LEAVE_NS; now_ns() < deadline; usleep(10000)) {
        bool none = glob(pattern, GLOB_NOSORT, NULL, &found) == GLOB_NOMATCH;
        globfree(&found);
        if (none)
            return;
    }
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    remove(path);
    return 0;
}

void instance_stop(struct instance *instance)
{
    if (!end_daemon(instance, SIGINT)) {
        /* it could not clean up; the next one of this instance does */
        failed("the daemon died");
        launch(instance);
        end_daemon(instance, SIGINT);
    }
    sweep_objects();
    if (!instance->directory[0])
        return;
    await_others(instance);
    nftw(instance->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
