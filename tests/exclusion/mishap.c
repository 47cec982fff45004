/* SPDX-License-Identifier: Apache-2.0 */
#include "exclusion/mishap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

/* The library has fewer descriptors open. The test keeps its own above this number. */
#define DESCRIPTORS_MAX 128

static _Thread_local struct {
    enum mishap what;
    unsigned left; /* calls until the one that fails */
    bool forever, failed;
    int error_number;
} armed;

void mishap_begin(enum mishap what, unsigned n, bool forever, int error_number)
{
    armed.left = n;
    armed.forever = forever;
    armed.failed = false;
    armed.error_number = what == MISHAP_MEMORY ? ENOMEM : error_number;
    armed.what = what;
}

bool mishap_end(void)
{
    armed.what = MISHAP_NONE;
    return armed.failed;
}

static bool fails(enum mishap what)
{
    if (armed.what != what)
        return false;
    if (armed.left > 1) {
        armed.left--;
        return false;
    }
    if (armed.left == 0 && !armed.forever)
        return false;
    armed.left = 0;
    armed.failed = true;
    errno = armed.error_number;
    return true;
}

#define WRAP(what, type, failure, name, parameters, arguments)                                     \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails(what) ? (failure) : __real_##name arguments;                                  \
    }

WRAP(MISHAP_MEMORY, void *, NULL, malloc, (size_t n), (n))
WRAP(MISHAP_MEMORY, void *, NULL, calloc, (size_t n, size_t bytes), (n, bytes))
WRAP(MISHAP_MEMORY, void *, NULL, realloc, (void *p, size_t n), (p, n))
WRAP(MISHAP_MEMORY, void *, NULL, aligned_alloc, (size_t align, size_t n), (align, n))
WRAP(MISHAP_MEMORY, char *, NULL, strdup, (const char *s), (s))
WRAP(MISHAP_SYSTEM, int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(MISHAP_SYSTEM, int, -1, connect, (int fd, const struct sockaddr *address, socklen_t n),
     (fd, address, n))
WRAP(MISHAP_SYSTEM, int, -1, getsockopt, (int fd, int level, int option, void *value, socklen_t *n),
     (fd, level, option, value, n))
WRAP(MISHAP_SYSTEM, ssize_t, -1, recvmsg, (int fd, struct msghdr *msg, int flags), (fd, msg, flags))
WRAP(MISHAP_SYSTEM, ssize_t, -1, sendmsg, (int fd, const struct msghdr *msg, int flags),
     (fd, msg, flags))

__attribute__((constructor)) static void wrap_jansson(void)
{
    json_set_alloc_funcs(__wrap_malloc, free);
}

static bool is_socket(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

unsigned mishap_close_sockets(void)
{
    unsigned n = 0;
    for (int fd = 3; fd < DESCRIPTORS_MAX; fd++)
        if (is_socket(fd)) {
            close(fd);
            n++;
        }
    return n;
}

void mishap_provoke_hang_up(void)
{
    for (int fd = 3; fd < DESCRIPTORS_MAX; fd++) {
        int type = 0;
        socklen_t n = sizeof type;
        if (is_socket(fd) && __real_getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 &&
            type == SOCK_STREAM)
            send(fd, "no JSON", sizeof "no JSON", MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}
