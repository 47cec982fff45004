/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for the operator: one for each event that an operator should know of, none for an ordinary
 * request. If the journal reads standard error, a line goes to the journal with fields (SHMVIEW_UID
 * and others), by which an operator can filter. Otherwise it goes to standard error as text.
 *
 * A line may contain text that a client chose, such as a name. Therefore every byte that is not
 * printable ASCII is escaped: a client cannot forge a second line or send escape sequences to a
 * terminal. A client could also cause the same error again and again. Therefore at most 50 lines of
 * one kind are written in 10 s; the others are counted, and the next line is preceded by their
 * number.
 *
 * Only the thread of the loop logs, because the counts have no lock. Code that runs on other
 * threads returns its error and the loop logs it. */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>
#include <sys/types.h>

/* What a line is about. Lines of each kind are counted separately. Each kind but LOG_PLAIN has a
 * MESSAGE_ID in the journal; shmviewd(8) lists them. */
enum log_kind {
    LOG_PLAIN,       /* an event of no other kind */
    LOG_START,       /* the daemon serves clients from now on */
    LOG_TAKE_OVER,   /* the daemon has taken over the segments of the previous daemon */
    LOG_SET_ASIDE,   /* a registry, a segment or a layout could not be taken over */
    LOG_REPAIRED,    /* an object that a client had truncated, enlarged or overwritten */
    LOG_OWNER_DIED,  /* a client died while it held a lock */
    LOG_QUOTA,       /* a client exceeded a quota, and its request was refused */
    LOG_PROTOCOL,    /* a client broke the protocol and was disconnected */
    LOG_TURNED_AWAY, /* a client could not be served */
    LOG_RELOAD,      /* the configuration was read again, or reading it failed */
    LOG_LEAVE,       /* the daemon ends */
    LOG_N_KINDS,
};

/* The priorities that the daemon uses, with the numbers of syslog(3). */
enum log_priority {
    LOG_ERROR = 3,
    LOG_WARNING = 4,
    LOG_NOTICE = 5,
    LOG_INFO = 6
};

/* The fields of one line in the journal. A field that is NULL or 0 is left out. The strings are
 * borrowed for the call. */
struct log_event {
    enum log_kind kind;
    const char *segment;
    const char *reason; /* one or two words, for filters */
    bool has_uid;       /* uid is set; needed because uid 0 is root */
    uid_t uid;          /* of the client that caused the event */
    pid_t pid;
};

/* Decides where lines go: finds out whether the journal reads standard error. Must be called again
 * after standard error is replaced. */
void log_init(void);

/* Drops all lines that are less important than `least` from now on. The default is LOG_INFO. */
void log_set_level(enum log_priority least);

/* Logs one line, which is cut after 1000 bytes. Never fails. */
__attribute__((format(printf, 3, 4))) void
log_event(enum log_priority priority, const struct log_event *event, const char *format, ...);

/* Like log_event(), but for a line of LOG_PLAIN without fields. */
__attribute__((format(printf, 1, 2))) void log_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_error(const char *format, ...);

#endif
