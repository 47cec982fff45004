/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator would want to know: one line an event, none a request. To the journal with
 * fields where it reads standard error, else to standard error.
 *
 * Text of clients may be part of a line: what is not printable ASCII is escaped, and what
 * comes too often is counted instead. Only the loop's thread logs. */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>
#include <sys/types.h>

/* Each kind but the first has a MESSAGE_ID in the journal; shmviewd(8) lists them. */
enum log_kind {
    LOG_PLAIN,       /* none of those below */
    LOG_START,       /* serves from now on */
    LOG_TAKE_OVER,   /* what the daemon before has left was looked through */
    LOG_SET_ASIDE,   /* a registry, a segment or a layout that does not fit */
    LOG_REPAIRED,    /* an object that a client had truncated, enlarged or overwritten */
    LOG_OWNER_DIED,  /* a client died while it held a lock */
    LOG_QUOTA,       /* a client was refused more than it may have */
    LOG_PROTOCOL,    /* a client broke the protocol and was disconnected */
    LOG_TURNED_AWAY, /* a client could not be served */
    LOG_RELOAD,      /* the configuration was read again, or could not be */
    LOG_LEAVE,       /* leaves */
    LOG_N_KINDS,
};

/* Priorities, as syslog(3) has them. */
enum log_priority {
    LOG_ERROR = 3,
    LOG_WARNING = 4,
    LOG_NOTICE = 5,
    LOG_INFO = 6
};

/* What is known of an event; what is zero is left out. Strings are borrowed. */
struct log_event {
    enum log_kind kind;
    const char *segment;
    const char *reason; /* in a word or two, for filters */
    bool has_uid;
    uid_t uid; /* of the client that it is about */
    pid_t pid;
};

/* Looks once whether the journal reads standard error. */
void log_init(void);

/* Lines that are less important are not logged from now on. */
void log_set_level(enum log_priority least);

/* Logs one line of at most 1000 bytes; those of a kind that come too often are counted. */
__attribute__((format(printf, 3, 4))) void
log_event(enum log_priority priority, const struct log_event *event, const char *format, ...);

/* Lines of LOG_PLAIN. */
__attribute__((format(printf, 1, 2))) void log_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_error(const char *format, ...);

#endif
