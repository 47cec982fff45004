/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon of the test's own: $SHMVIEWD, in the test's private directory.
 *
 *     struct daemon d;
 *     daemon_start(&d);
 *     ... shmview_connect(d.socket, 0, &conn) ...
 *     daemon_stop(&d);
 */
#ifndef SUPPORT_DAEMON_H
#define SUPPORT_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct daemon {
    pid_t pid; /* 0: not running */
    char socket[108];
    char log[128];            /* file of what it says */
    char instance[64];        /* in the names of its objects */
    unsigned max_descriptors; /* 0: as many as the test has */
    char config[128];         /* "": none, whatever the machine has */
};

/* The program under test: $SHMVIEWD, which must be set. */
const char *daemon_program(void);

/* The file that tests give to daemon_start_configured(), in the test's own place. */
const char *daemon_config_path(void);
/* Writes it, ' turned into ". Never half of it at a time. */
void daemon_configure(const char *text);

/* Starts a daemon and returns when it listens. Each of a test has its own name. */
void daemon_start(struct daemon *daemon);
void daemon_start_named(struct daemon *daemon, const char *name);
/* The same with the configuration in the file at path, whatever it may say. */
void daemon_start_configured(struct daemon *daemon, const char *path);
/* The same with that many file descriptors (RLIMIT_NOFILE) for the daemon. */
void daemon_start_limited(struct daemon *daemon, unsigned max_descriptors);

/* SIGINT; asserts that it leaves with status 0, without its socket, and without
 * an object. */
void daemon_stop(struct daemon *daemon);
/* SIGTERM; asserts that it leaves with status 0. Its objects and its registry stay. */
void daemon_leave(struct daemon *daemon);
/* kill -9, and waits until it is gone. Its socket and its objects stay. */
void daemon_kill(struct daemon *daemon);
/* Starts it again on the same socket. */
void daemon_restart(struct daemon *daemon);

/* Takes over the daemon that serves the socket at path, whoever started it. */
void daemon_adopt(struct daemon *daemon, const char *path);
/* Waits until the daemon has left by itself; asserts what daemon_stop() does. */
void daemon_await_end(struct daemon *daemon);
/* Runs the program with these arguments (a shell reads them) to its end. Returns
 * its exit status; what it says is in text. */
int daemon_run(const char *arguments, char *text, size_t bytes);

/* Whether its log holds text. */
bool daemon_said(const struct daemon *daemon, const char *text);
/* SIGHUP, and waits until it says that it has read the configuration, or has not. */
void daemon_reload(struct daemon *daemon);

/* Objects in /dev/shm of its segments, its instance's lock not counted. */
unsigned daemon_objects(const struct daemon *daemon);
/* Whether /dev/shm has the data object of the segment called name. */
bool daemon_has_data(const struct daemon *daemon, const char *name);

#endif
