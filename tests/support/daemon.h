/* SPDX-License-Identifier: Apache-2.0 */
/* A private daemon for one test: it runs $SHMVIEWD in the test's directory.
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
    char log[128];            /* path of its log */
    char instance[64];        /* in the names of its objects */
    unsigned max_descriptors; /* 0: the test's own limit */
    char config[128];         /* "": none, not even the machine's */
};

/* Returns the program under test: $SHMVIEWD, which must be set. */
const char *daemon_program(void);

/* Returns the path, in the test's directory, that tests pass to daemon_start_configured(). */
const char *daemon_config_path(void);
/* Replaces the file at once, so that no daemon reads half of it. Each ' in text becomes ". */
void daemon_configure(const char *text);

/* Start a daemon and return when it listens. Daemons of one test need different names. */
void daemon_start(struct daemon *daemon);
void daemon_start_named(struct daemon *daemon, const char *name);
/* Like daemon_start(), but with the configuration file at path, which need not be valid. */
void daemon_start_configured(struct daemon *daemon, const char *path);
/* Like daemon_start(), but with at most max_descriptors descriptors (RLIMIT_NOFILE). */
void daemon_start_limited(struct daemon *daemon, unsigned max_descriptors);

/* Sends SIGINT. Asserts that the daemon exits with status 0 and leaves neither its socket nor any
 * object. */
void daemon_stop(struct daemon *daemon);
/* Sends SIGTERM. Asserts that the daemon exits with status 0. Its objects and its registry stay. */
void daemon_leave(struct daemon *daemon);
/* Sends SIGKILL and waits until the daemon is gone. Its socket and its objects stay. */
void daemon_kill(struct daemon *daemon);
/* Starts the daemon again on its socket, and returns when it listens. */
void daemon_restart(struct daemon *daemon);

/* Fills in *daemon for the daemon that serves the socket at path; the test need not have started
 * that daemon. */
void daemon_adopt(struct daemon *daemon, const char *path);
/* Waits until the daemon exits by itself. Asserts the same as daemon_stop(). */
void daemon_await_end(struct daemon *daemon);
/* Runs the program with these arguments, which a shell splits, and waits for its end. Stores its
 * output in text. Returns its exit status. */
int daemon_run(const char *arguments, char *text, size_t bytes);

/* Returns whether its log contains text. */
bool daemon_said(const struct daemon *daemon, const char *text);
/* Sends SIGHUP and waits until the daemon logs that it has read the configuration or failed to. */
void daemon_reload(struct daemon *daemon);

/* Returns how many objects its segments have: files in /dev/shm without the instance's lock file,
 * and sealed objects that a running daemon has open. */
unsigned daemon_objects(const struct daemon *daemon);
/* Returns whether /dev/shm has the data object of the segment called name. */
bool daemon_has_data(const struct daemon *daemon, const char *name);

#endif
