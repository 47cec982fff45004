/* SPDX-License-Identifier: Apache-2.0 */
#include "support/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#define SHM_DIRECTORY "/dev/shm"
#define DESCRIPTORS   1024

static char directory[] = "/tmp/shmview-test.XXXXXX";
static bool was_open[DESCRIPTORS];
static int caretaker = -1;
static pid_t opener;
/* Where nftw() writes what it finds. */
static char *found_text;
static size_t found_bytes;

const char *place_directory(void)
{
    return directory;
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t bytes,
                                                         const char *format, ...)
{
    size_t n = strlen(text);
    va_list ap;
    va_start(ap, format);
    vsnprintf(text + n, bytes - n, format, ap);
    va_end(ap);
}

/* --- Objects ------------------------------------------------------------- */

static void open_notes(char path[64])
{
    snprintf(path, 64, "%s/instances.log", directory);
}

void place_note_instance(const char *instance)
{
    char path[64];
    open_notes(path);
    FILE *f = fopen(path, "ae");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%s\n", instance);
    fclose(f);
}

/* Calls visit for each directory of objects that the instance has, below SHM_DIRECTORY. A
 * directory's name has a suffix if another user had taken the name without it. */
static void each_directory(const char *instance, void (*visit)(const char *, void *), void *arg)
{
    char name[128];
    int n = snprintf(name, sizeof name, "shmview.%s", instance);
    DIR *shm = opendir(SHM_DIRECTORY);
    ck_assert_ptr_nonnull(shm);
    for (struct dirent *e; (e = readdir(shm));)
        if (strncmp(e->d_name, name, (size_t)n) == 0 &&
            (e->d_name[n] == '\0' || e->d_name[n] == '~'))
            visit(e->d_name, arg);
    closedir(shm);
}

struct visit {
    void (*visit)(const char *, void *);
    void *arg;
    unsigned n;
};

static void visit_objects(const char *directory_name, void *arg)
{
    char path[2 * NAME_MAX];
    struct visit *v = arg;
    snprintf(path, sizeof path, SHM_DIRECTORY "/%s", directory_name);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory_name, e->d_name);
        v->n += strcmp(e->d_name, "+presence") != 0; /* a directory */
        v->visit(path, v->arg);
    }
    if (dir)
        closedir(dir);
}

/* Calls visit for each object of the instance, by its path below SHM_DIRECTORY. */
static unsigned each_object(const char *instance, void (*visit)(const char *, void *), void *arg)
{
    struct visit v = {.visit = visit, .arg = arg};
    each_directory(instance, visit_objects, &v);
    return v.n;
}

struct text {
    char *text;
    size_t bytes;
};

static void append_object(const char *name, void *arg)
{
    struct text *to = arg;
    if (to->text)
        append(to->text, to->bytes, " " SHM_DIRECTORY "/%s\n", name);
}

static int remove_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    remove(path);
    return 0;
}

static void remove_object(const char *name, void *arg)
{
    char path[2 * NAME_MAX + sizeof SHM_DIRECTORY];
    (void)arg;
    snprintf(path, sizeof path, SHM_DIRECTORY "/%s", name);
    nftw(path, remove_file, 8, FTW_DEPTH | FTW_PHYS);
}

unsigned place_objects(const char *instance, char *text, size_t bytes)
{
    struct text to = {text, bytes};
    return each_object(instance, append_object, &to);
}

static void each_noted(void (*visit)(const char *, void *), void *arg)
{
    char path[64], instance[80];
    open_notes(path);
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    while (fscanf(f, "%79s", instance) == 1) {
        each_object(instance, visit, arg);
        each_directory(instance, visit, arg);
    }
    fclose(f);
}

/* --- Descriptors, processes, files --------------------------------------- */

static void each_descriptor(void (*visit)(int fd, const char *what, void *arg), void *arg)
{
    char what[256];
    DIR *dir = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        int fd = atoi(e->d_name);
        if (e->d_name[0] == '.' || fd == dirfd(dir))
            continue;
        ssize_t n = readlinkat(dirfd(dir), e->d_name, what, sizeof what - 1);
        what[n < 0 ? 0 : n] = '\0';
        visit(fd, what, arg);
    }
    closedir(dir);
}

static void remember_descriptor(int fd, const char *what, void *arg)
{
    (void)what;
    (void)arg;
    if (fd < DESCRIPTORS)
        was_open[fd] = true;
}

static void append_new_descriptor(int fd, const char *what, void *arg)
{
    struct text *to = arg;
    if (fd >= DESCRIPTORS || !was_open[fd])
        append(to->text, to->bytes, " descriptor %d: %s\n", fd, what);
}

/* Reaps dead children, also orphans: this process is their subreaper. */
static void append_processes(char *text, size_t bytes)
{
    siginfo_t info;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    if (waitid(P_ALL, 0, &info, WNOHANG | WNOWAIT | WEXITED) == 0 || errno != ECHILD)
        append(text, bytes, " a process\n");
}

/* Whether standard input of the process is a socket with a path in the test's directory: it is the
 * keeper of a daemon, which has no arguments that name the directory. */
static bool is_keeper(const char *pid)
{
    char path[300], input[64] = "", line[512];
    unsigned long inode, n;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%s/fd/0", pid);
    if (readlink(path, input, sizeof input - 1) < 0 || sscanf(input, "socket:[%lu]", &inode) != 1)
        return false;
    FILE *sockets = fopen("/proc/net/unix", "re");
    while (sockets && !found && fgets(line, sizeof line, sockets))
        found = sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &n) == 1 && n == inode &&
                strstr(line, directory);
    if (sockets)
        fclose(sockets);
    return found;
}

/* Calls visit for each process whose arguments name the test's directory. This also finds
 * processes that have left the process group. */
static void each_daemon(void (*visit)(pid_t, void *), void *arg)
{
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[300], text[512];
        pid_t pid = atoi(e->d_name);
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        FILE *f = pid > 0 && pid != getpid() ? fopen(path, "re") : NULL;
        if (!f)
            continue;
        size_t n = fread(text, 1, sizeof text, f);
        fclose(f);
        if (memmem(text, n, directory, strlen(directory)))
            visit(pid, arg);
    }
    if (dir)
        closedir(dir);
}

static void count_daemon(pid_t pid, void *n)
{
    (void)pid;
    ++*(unsigned *)n;
}

static void kill_daemon(pid_t pid, void *arg)
{
    (void)arg;
    kill(pid, SIGKILL);
}

static void kill_keepers(void)
{
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (atoi(e->d_name) > 0 && is_keeper(e->d_name))
            kill(atoi(e->d_name), SIGKILL);
    if (dir)
        closedir(dir);
}

unsigned place_daemons(void)
{
    unsigned n = 0;
    each_daemon(count_daemon, &n);
    return n;
}

static int append_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    size_t n = strlen(path);
    (void)st;
    (void)at;
    if (kind != FTW_D && (n < 4 || strcmp(path + n - 4, ".log") != 0))
        append(found_text, found_bytes, " %s\n", path);
    return 0;
}

static void remove_directory(void)
{
    nftw(directory, remove_file, 8, FTW_DEPTH | FTW_PHYS);
}

/* --- Before and after a test --------------------------------------------- */

void place_enter(void)
{
    /* otherwise the test might find a daemon or file of the user */
    setenv("XDG_RUNTIME_DIR", directory, 1);
    unsetenv("SHMVIEW_SOCKET");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (getpid() != opener)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    memset(was_open, 0, sizeof was_open);
    each_descriptor(remember_descriptor, NULL);
}

bool place_left_nothing(char *text, size_t bytes)
{
    struct text to = {text, bytes};
    text[0] = '\0';
    append_processes(text, bytes);
    each_descriptor(append_new_descriptor, &to);
    each_noted(append_object, &to);
    found_text = text;
    found_bytes = bytes;
    nftw(directory, append_file, 8, FTW_PHYS);
    if (text[0])
        return false;
    remove_directory();
    return true;
}

/* --- After a test that failed -------------------------------------------- */

static int show_log(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    char line[512];
    size_t n = strlen(path);
    (void)st;
    (void)at;
    if (kind != FTW_F || n < 4 || strcmp(path + n - 4, ".log") != 0)
        return 0;
    FILE *f = fopen(path, "re");
    for (fprintf(stderr, "%s:\n", path); f && fgets(line, sizeof line, f);)
        fprintf(stderr, "    %s", line);
    if (f)
        fclose(f);
    return 0;
}

static void clean(void)
{
    if (access(directory, F_OK))
        return;
    nftw(directory, show_log, 8, FTW_PHYS);
    each_daemon(kill_daemon, NULL);
    kill_keepers(); /* after the daemons, which start them */
    each_noted(remove_object, NULL);
    remove_directory();
}

/* The caretaker is an orphan, so that it can clean up after a runner that was killed, and so that
 * no test finds it among its children. It begins when its socket ends, or earlier on request, and
 * closes the socket when it is done. */
void place_open(void)
{
    int ends[2];
    opener = getpid();
    strcpy(strrchr(directory, '.'), ".XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        char byte;
        close(ends[0]);
        if (setsid() < 0 || fork() != 0)
            _exit(0);
        if (read(ends[1], &byte, 1) >= 0)
            clean();
        _exit(0);
    }
    close(ends[1]);
    waitpid(pid, NULL, 0);
    caretaker = ends[0];
}

void place_close(void)
{
    char byte;
    ck_assert_int_eq(shutdown(caretaker, SHUT_WR), 0);
    ck_assert_int_eq(read(caretaker, &byte, 1), 0);
    close(caretaker);
}
