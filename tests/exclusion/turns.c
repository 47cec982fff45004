/* SPDX-License-Identifier: Apache-2.0 */
/* Failures in turn instead of at random. While this process holds a lock, each allocation and
 * each system call of each call of the library fails: alone, and then together with all later
 * ones. After each failure the next call must succeed, and a rival in another process must not
 * get the lock. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exclusion/arena.h"
#include "exclusion/mishap.h"
#include "exclusion/worker.h"

/* More allocations or system calls than any call makes. */
#define FAILURES_MAX 400

static int rival; /* this end of a socket pair */

static int open_handle(struct shmview_connection **connection, struct shmview_segment **segment)
{
    char name[64];
    snprintf(name, sizeof name, SEGMENT_NAME, 0);
    int r = shmview_connect(arena->socket, 0, connection);
    if (r == 0)
        r = shmview_attach(*connection, name, SHMVIEW_WRITE, 0, segment);
    if (r)
        violation("no handle: %s", shmview_error_text());
    return r;
}

/* The rival: tries the lock for each byte that it reads, and answers with the result. */
__attribute__((noreturn)) static void be_rival(int fd)
{
    struct shmview_connection *c;
    struct shmview_segment *s;
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (open_handle(&c, &s))
        _exit(1);
    while (read(fd, &byte, 1) == 1) {
        int r = shmview_trylock(s);
        if (write(fd, &r, sizeof r) != sizeof r)
            break;
    }
    _exit(0);
}

/* Lets the rival try the lock. Every result except SHMVIEW_ERR_TIMED_OUT is a violation, because
 * this process holds the lock. */
static void check_rival(const char *name, unsigned n)
{
    int r = 0;
    if (write(rival, "", 1) != 1 || read(rival, &r, sizeof r) != sizeof r)
        violation("the rival has ended");
    else if (r != -SHMVIEW_ERR_TIMED_OUT)
        violation("%s, failure %u: another process gets the lock: %d", name, n, r);
}

static void fail_in_turn(struct thread *t, struct shmview_segment *s, unsigned which,
                         enum mishap what, bool forever, int error_number)
{
    const char *name = calls_name(which);
    bool failed = true;
    for (unsigned n = 1; failed && !atomic_load(&arena->over); n++) {
        mishap_begin(what, n, forever, error_number);
        int r = calls_make(which, t, s);
        failed = mishap_end();
        arena_count(what == MISHAP_MEMORY ? COUNT_MEMORY : COUNT_SYSTEM);
        if (calls_judge(name, r, 0, what == MISHAP_MEMORY, failed))
            calls_judge("the next call", shmview_ping(t->worker->connection), 0, false, false);
        check_rival(name, n);
        if (n == FAILURES_MAX)
            violation("%s does not come to its end", name);
    }
}

static void hold_and_fail(struct thread *t, struct shmview_segment *s, bool exclusive)
{
    static const int errors[] = {EIO, ENOMEM, EMFILE, ECONNRESET};
    int r = exclusive ? shmview_lock(s) : shmview_lock_shared(s);
    if (r)
        violation("lock: %d %s", r, shmview_error_text());
    for (unsigned which = 0; which < calls_number(); which++)
        for (int forever = 0; forever < 2; forever++) {
            fail_in_turn(t, s, which, MISHAP_MEMORY, forever, 0);
            for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
                fail_in_turn(t, s, which, MISHAP_SYSTEM, forever, errors[i]);
        }
    for (int closes = 0; closes < 2; closes++) {
        if (closes)
            mishap_close_sockets();
        else
            mishap_provoke_hang_up();
        usleep(20000); /* the daemon notices it, although this process makes no call */
        check_rival(closes ? "close" : "hang-up", 1);
        calls_judge("the next call", shmview_ping(t->worker->connection), 0, false, false);
        check_rival(closes ? "close" : "hang-up", 2);
    }
    r = shmview_unlock(s);
    if (r)
        violation("the lock is lost: %d %s", r, shmview_error_text());
}

void turns_run(void)
{
    static struct worker w;
    struct shmview_segment *s;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        _exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        be_rival(ends[1]);
    }
    close(ends[1]);
    rival = dup2(ends[0], 200); /* above those that mishap_close_sockets() closes */
    close(ends[0]);
    w.threads[0] = (struct thread){&w, 0, 1};
    if (open_handle(&w.connection, &s) == 0)
        for (int exclusive = 0; exclusive < 2; exclusive++)
            hold_and_fail(&w.threads[0], s, exclusive);
    close(rival);
    waitpid(pid, NULL, 0);
}
