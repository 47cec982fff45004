/* SPDX-License-Identifier: Apache-2.0 */
/* shmviewd: reads options and configuration, takes the lock of the instance, opens socket and
 * registry, and runs the server. Each step needs the one before it:
 *
 *   socket passed or named -> its directory is checked -> a child that will check the registry is
 *   forked -> lock of the instance -> socket -> registry -> server
 *
 * The exit status is 1 if another start might succeed, and 2 if it cannot because options or the
 * configuration are wrong; the service units do not restart a daemon that ended with 2. A
 * configuration that cannot be read for want of memory or descriptors, or because of a disk or of
 * the look-up of a user, is not wrong. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/base/notify.h"
#include "daemon/base/way.h"
#include "daemon/clients/instance.h"
#include "daemon/clients/listener.h"
#include "daemon/config/config_read.h"
#include "daemon/config/options.h"
#include "daemon/memory/keeper.h"
#include "daemon/memory/keeping.h"
#include "daemon/memory/sealed.h"
#include "daemon/server.h"
#include "daemon/store/store_check.h"

/* Before the end by a fault that may pass: with 20 starts in 10 s systemd would give up. */
#define PAUSE_NS 600000000

/* Forks. The parent waits until the socket listens, and exits with status 0; or with 1 if the child
 * ends before that. The program that started it thus knows when it can connect. The child returns 0
 * and gets a descriptor on which it must report this (foreground_done()). */
static int background(int *ret_ready)
{
    int ready[2];
    close_range(3, ~0u, 0); /* descriptors of the program that started this one */
    if (pipe2(ready, O_CLOEXEC))
        return -errno;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid > 0) {
        char byte;
        int status;
        close(ready[1]);
        if (read(ready[0], &byte, 1) == 1)
            _exit(0);
        if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
            log_error("ended by signal %d before the socket listened", WTERMSIG(status));
        _exit(1);
    }
    close(ready[0]);
    setsid();
    if (chdir("/"))
        return -errno;
    *ret_ready = ready[1];
    return 0;
}

/* Replaces standard input, output and error by /dev/null, then lets the parent exit. Errors up to
 * here were still printed for the user. */
static void foreground_done(int ready)
{
    CLEANUP_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    log_init();
    if (write(ready, "", 1) != 1)
        log_error("the program that started this daemon has ended");
    close(ready);
}

/* Opens the registry, and ends the check in any case. Returns NULL after logging why. */
static struct store *open_store(int dir, const char *path, struct store_check *check)
{
    struct store *store;
    bool was_bad;
    int r = store_open(dir, way_name(path), check, &store, &was_bad);
    if (r) {
        log_error("cannot keep a registry in %s: %s", path, strerror(-r));
        return NULL;
    }
    if (was_bad)
        log_event(
            LOG_WARNING, &(struct log_event){.kind = LOG_SET_ASIDE, .reason = "registry"},
            "%s is not a valid registry of this version: renamed to %s.bad, its segments are lost",
            path, path);
    return store;
}

/* Reports to the program that gave --ready-fd that clients are served: writes a newline to the
 * descriptor and closes it. */
static void tell_ready(int fd)
{
    if (fd < 0)
        return;
    if (write(fd, "\n", 1) != 1)
        log_warning("--ready-fd %d: %s", fd, strerror(errno));
    close(fd);
}

/* Runs the server until it is stopped. Takes over the listener, the store and the configuration.
 * Returns the exit status. */
static int serve(const struct options *options, const struct listener *listener,
                 const char *instance, struct config *config, struct store *store, int ready)
{
    /* static, because threads of the pool may use its loop until the process ends */
    static struct server server;
    int r = server_init(&server, listener, options, store, config);
    if (r) {
        struct listener left = *listener;
        log_error("cannot start: %s", strerror(-r));
        listener_close(&left);
        return 1;
    }
    log_event(LOG_INFO, &(struct log_event){.kind = LOG_START},
              "version " SHMVIEW_VERSION ", instance %s, listening on %s", instance,
              listener->path);
    if (ready >= 0)
        foreground_done(ready);
    tell_ready(options->ready_fd);
    notify_ready();
    server_run(&server);
    return 0;
}

/* Takes the socket that the service manager has passed; listener->fd is -1 if there is none.
 * Returns 0 or -errno after logging it. */
static int take_passed(const struct options *options, struct listener *listener)
{
    int fd = notify_take_socket();
    listener->fd = -1;
    if (fd == -1)
        return 0;
    int r = fd < 0 ? fd : listener_adopt(listener, fd);
    if (r == 0 && options->socket_given && strcmp(options->socket, listener->path) != 0) {
        log_error("the socket that was passed is %s, but --socket names %s", listener->path,
                  options->socket);
        listener_close(listener);
        r = -EINVAL;
    }
    return r;
}

/* Serves the instance of socket, which is in the directory dir. Takes over the configuration.
 *
 * The child for the check is forked before the lock is taken, because it has copies of all
 * descriptors and would hold the lock, too. Returns the exit status. */
static int serve_socket(int dir, const char *socket, const struct options *options,
                        struct listener *listener, struct config *config, int ready)
{
    listener_instance instance;
    struct instance_lock lock;
    struct store_check check;
    char registry[sizeof(address_path) + sizeof ".registry"];
    snprintf(registry, sizeof registry, "%s.registry", socket);
    listener_instance_of(socket, instance);
    int status = 1, r = store_check_begin(&check, dir, way_name(registry));
    if (r)
        log_error("cannot start a process: %s", strerror(-r));
    if (r == 0 && instance_lock(&lock, dir, socket, instance)) {
        store_check_end(&check, -1);
        r = -1;
    }
    if (r) {
        config_free(config);
        return 1;
    }
    struct store *store = NULL;
    if (listener->fd >= 0 || listener_open(listener, socket) == 0)
        store = open_store(dir, registry, &check);
    else
        store_check_end(&check, -1);
    if (store) {
        keeping_init(socket);
        status = serve(options, listener, instance, config, store, ready);
        sealed_end();
    } else {
        listener_close(listener);
        config_free(config);
    }
    instance_unlock(&lock);
    return status;
}

/* Finds the socket and its directory, and serves. Takes over the configuration. Returns the exit
 * status. */
static int serve_instance(const struct options *options, struct config *config, int ready)
{
    struct listener listener;
    const char *socket = NULL;
    CLEANUP_FD int dir = -1;
    if (take_passed(options, &listener) == 0) {
        socket = listener.fd >= 0 ? listener.path : options->socket;
        dir = way_open(socket);
    }
    if (dir < 0) {
        config_free(config);
        return 1;
    }
    return serve_socket(dir, socket, options, &listener, config, ready);
}

/* Reports an error of the configuration: to the log, or with --check-config to standard error. */
static void say(void *arg, const char *line)
{
    if (arg)
        log_error("%s", line);
    else
        fprintf(stderr, "%s\n", line);
}

/* Smaller blocks, among them the largest message, come from the heap. By default glibc takes blocks
 * of 128 KiB and more from mmap(), and the page faults of each new message take up to 1 ms of the
 * loop's time. */
#define MMAP_BYTES ((int)512 << 10)
/* So much stays in the heap when it is free. */
#define TRIM_BYTES ((int)1 << 20)

static void keep_messages_in_heap(void)
{
#ifdef M_MMAP_THRESHOLD /* glibc */
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
    mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
#endif
}

/* Opens /dev/null in place of each standard file that is closed. Otherwise another file, such as
 * the registry, would get its number, and the lines of the log. Returns 0 or -1. */
static int open_standard(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    struct options options;
    int ready = -1;
    if (open_standard())
        return 1;
    if (argc == 2 && strcmp(argv[1], KEEPER_ARGUMENT) == 0)
        return keeper_run();
    int status = options_read(&options, argc, argv);
    if (status != -1)
        return status;
    keep_messages_in_heap();
    log_init();
    bool may_pass;
    struct config *config = config_read(options.config, options.config_given, say,
                                        options.check_config ? NULL : &options, &may_pass);
    if (!config && may_pass && getenv("NOTIFY_SOCKET"))
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    if (!config)
        return options.check_config || may_pass ? EXIT_FAILURE : EXIT_USAGE;
    if (options.check_config) {
        config_free(config);
        return 0;
    }
    log_set_level(config->log_level);
    signal(SIGHUP, SIG_IGN); /* until the server handles it; the default would end the daemon */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* if it is ignored, waitpid() reports no status */
    signal(SIGXFSZ, SIG_IGN); /* a file that is too large fails one creation, not the daemon */
    umask(077);
    if (options.session) {
        notify_ignore();
        int r = background(&ready);
        if (r) {
            log_error("cannot go to the background: %s", strerror(-r));
            return 1;
        }
    }
    server_hold_signals(SIG_BLOCK);
    return serve_instance(&options, config, ready);
}
