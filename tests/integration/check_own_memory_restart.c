/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon is replaced right before a client passes its memory to it (SHMVIEW_OWN_MEMORY). */
#include <sys/syscall.h>

#include "integration/own_memory.h"

static unsigned n_replacements; /* how many of the next descriptors meet a daemon that has ended */

/* Replaces that of libc, also for the library. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (n_replacements && message->msg_controllen) {
        n_replacements--;
        daemon_kill(&d);
        daemon_restart(&d);
    }
    return syscall(SYS_sendmsg, fd, message, flags);
}

static void use(struct shmview_segment *segment)
{
    OK(shmview_lock(segment));
    memset(shmview_data(segment), 7, BYTES);
    OK(shmview_unlock(segment));
}

START_TEST(the_daemon_is_replaced_twice)
{
    begin();
    n_replacements = 2;
    struct shmview_segment *s = make_own("s", BYTES);
    ck_assert_uint_eq(n_replacements, 0);
    use(s);
    daemon_kill(&d);
    daemon_restart(&d);
    struct shmview_segment *again = client_attach(conn, "s", SHMVIEW_READ);
    ck_assert_int_eq(((char *)shmview_data(again))[BYTES - 1], 7);
    OK(shmview_detach(again));
    drop(s, "s");
    end();
}
END_TEST

START_TEST(the_daemon_is_replaced_each_time)
{
    struct shmview_segment *s;
    begin();
    n_replacements = 3;
    REFUSED(shmview_create(conn, "s", BYTES, &own, &s), DISCONNECTED,
            "the daemon ended while memory was handed over");
    ck_assert_uint_eq(n_replacements, 0);
    REFUSED(shmview_attach(conn, "s", SHMVIEW_READ, 0, &s), NOT_FOUND, "");
    s = make_own("s", BYTES);
    use(s);
    drop(s, "s");
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(the_daemon_is_replaced_twice),
        SUITE_TEST(the_daemon_is_replaced_each_time),
        SUITE_END,
    };
    return suite_main("own_memory_restart", tests);
}
