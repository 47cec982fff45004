/* SPDX-License-Identifier: Apache-2.0 */
/* A signal handler that interrupts the library and forks, as one does that starts a program
 * which reports a crash. The handler runs in the middle of a change of the library's private
 * state: this program's close() raises the signal, and the library closes its socket there. */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/child.h"
#include "support/client.h"
#include "support/suite.h"

static volatile sig_atomic_t is_armed, n_forks;
static pid_t forked[16];

/* The library's calls of close() come here. */
int close(int fd)
{
    if (is_armed && n_forks < (int)(sizeof forked / sizeof forked[0]))
        raise(SIGUSR1);
    return (int)syscall(SYS_close, fd);
}

static void fork_a_child(int signal)
{
    int saved = errno;
    (void)signal;
    is_armed = 0;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    if (pid > 0)
        forked[n_forks++] = pid;
    is_armed = 1;
    errno = saved;
}

START_TEST(fork_in_the_middle_of_a_call)
{
    struct daemon d;
    struct sigaction action = {.sa_handler = fork_a_child}, old;
    daemon_start(&d);
    ck_assert_int_eq(sigaction(SIGUSR1, &action, &old), 0);
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *seg = client_create(conn, "s", 4096);
    is_armed = 1;
    int fd = -1;
    OK(shmview_change_fd(seg, &fd));
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    is_armed = 0;
    ck_assert_int_gt(n_forks, 0);
    for (int i = 0; i < n_forks; i++)
        ck_assert_int_eq(process_wait(forked[i]), 0);
    /* what the interrupted calls were about is in order */
    conn = client_connect(&d);
    seg = client_create(conn, "t", 4096);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    ck_assert_int_eq(sigaction(SIGUSR1, &old, NULL), 0);
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(fork_in_the_middle_of_a_call),
        SUITE_END,
    };
    return suite_main("fork_signal", tests);
}
