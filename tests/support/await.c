/* SPDX-License-Identifier: Apache-2.0 */
#include "support/await.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#define PAUSE_NS 1000000

int64_t await_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool await_again(int64_t deadline_ns)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    if (await_now_ns() > deadline_ns)
        return false;
    nanosleep(&pause, NULL);
    return true;
}

void await_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, (int)(AWAIT_NS / 1000000));
    while (n < 0 && errno == EINTR);
    ck_assert_msg(n == 1, "nothing to read");
}
