/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon whose address space, or number of threads, is limited either serves or logs why it
 * does not: a signal never ends it, whatever the limit, and whatever clients ask of it there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/await.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/place.h"
#include "support/raw.h"
#include "support/suite.h"

#define MIB       ((rlim_t)1 << 20)
#define N_CLIENTS 24

static char path[108], log_path[128];

static pid_t start(const struct rlimit *space)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid)
        return pid;
    const struct rlimit no_core = {0, 0};
    int fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(fd, STDERR_FILENO) < 0 || setrlimit(RLIMIT_CORE, &no_core) ||
        setrlimit(RLIMIT_AS, space))
        _exit(126);
    execl(daemon_program(), daemon_program(), "--socket", path, "--config", "/dev/null",
          (char *)NULL);
    _exit(127);
}

/* Whether it serves; else *ret_status is how it ended. */
static bool await_start(pid_t pid, struct shmview_connection **ret, int *ret_status)
{
    bool served = false, ended = false;
    AWAIT((served = shmview_connect(path, SHMVIEW_CONNECT_NO_START, ret) == 0) ||
          (ended = waitpid(pid, ret_status, WNOHANG) == pid));
    return !ended;
}

/* Each client holds a buffer with the first part of a large request, a segment and a connection.
 * Any of it may be refused. */
static void use_much(struct shmview_connection *first)
{
    struct shmview_connection *conn[N_CLIENTS];
    struct shmview_segment *seg[N_CLIENTS] = {NULL}, *other;
    struct raw raw[N_CLIENTS];
    char name[16], *part = malloc(MIB);
    ck_assert_ptr_nonnull(part);
    memset(part, ' ', MIB);
    for (int i = 0; i < N_CLIENTS; i++) {
        raw_connect(&raw[i], path);
        raw_send(&raw[i], part, (size_t)(i % 8 + 1) << 16);
        conn[i] = NULL;
        if (shmview_connect(path, SHMVIEW_CONNECT_NO_START, &conn[i]))
            continue;
        snprintf(name, sizeof name, "s%d", i);
        if (shmview_create(conn[i], name, (uint64_t)MIB << i % 5, NULL, &seg[i]))
            seg[i] = NULL;
        if (seg[i] && shmview_attach(first, name, SHMVIEW_READ, 0, &other) == 0)
            shmview_detach(other);
    }
    for (int i = 0; i < N_CLIENTS; i++) {
        raw_close(&raw[i]);
        shmview_detach(seg[i]);
        shmview_disconnect(conn[i]);
    }
    free(part);
}

static bool log_is_empty(void)
{
    FILE *f = fopen(log_path, "re");
    bool empty = !f || fgetc(f) == EOF;
    if (f)
        fclose(f);
    return empty;
}

/* Returns whether it served. */
static bool try_limit(const struct rlimit *space)
{
    struct shmview_connection *first = NULL;
    int status = 0;
    pid_t pid = start(space);
    bool served = await_start(pid, &first, &status);
    if (served) {
        use_much(first);
        shmview_disconnect(first);
        kill(pid, SIGINT);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    }
    ck_assert_msg(WIFEXITED(status), "limit %llu KiB: signal %d",
                  (unsigned long long)space->rlim_cur >> 10, WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0 || !log_is_empty(), "status %d, and not a word",
                  WEXITSTATUS(status));
    return served && WEXITSTATUS(status) == 0;
}

static void begin(void)
{
    snprintf(path, sizeof path, "%s/limited", place_directory());
    snprintf(log_path, sizeof log_path, "%s.log", path);
}

/* Sanitizers take the address space that they need. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

START_TEST(it_serves_or_says_why)
{
    bool least = true, most = false;
    if (IS_SANITIZED)
        return;
    begin();
    for (rlim_t kib = 6 << 10; kib < 96 << 10; kib += kib / 9) {
        most = try_limit(&(struct rlimit){kib << 10, kib << 10});
        least = least && most;
    }
    ck_assert_msg(!least, "6 MiB are enough: begin with less");
    ck_assert(most);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(it_serves_or_says_why),
        SUITE_END,
    };
    return suite_main("address_space", tests);
}
