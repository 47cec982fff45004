/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that all verbs of shmviewctl share: options, the connection, errors, numbers.
 *
 * A function that can fail prints the error itself, with the next step for the user, and returns an
 * exit status. A verb passes that on, so every error is printed once and in one form. Only
 * the main thread uses these functions, so nothing here has a lock. */
#ifndef CLI_H
#define CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include <shmview/freeze.h>
#include <shmview/shmview.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CLEANUP(f)   __attribute__((cleanup(f)))
#define CLEANUP_FREE CLEANUP(free_pp)

static inline void free_pp(void *pp)
{
    free(*(void **)pp);
}

/* The exit statuses, as man/shmviewctl.1 documents them. */
enum exit_status {
    GO_ON = -1, /* not a status: the program continues */
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,       /* the command line is wrong; nothing was done */
    EXIT_NO_DAEMON = 3,   /* or the connection was lost */
    EXIT_NOT_FOUND = 4,   /* no such segment, layout or view */
    EXIT_TIMED_OUT = 124, /* as timeout(1) */
};

struct context;

/* One verb, static. cli/verbs.h lists them all. */
struct verb {
    const char *name;
    const char *arguments; /* for the usage line: "NAME SIZE" */
    const char *summary;   /* half a line */
    const char *help;      /* text after the summary in --help: options and examples */
    /* Returns an enum exit_status. argv[0] is the verb. */
    int (*run)(struct context *c, int argc, char **argv);
    bool stops_at_argument; /* options end at the first argument: the rest is a command */
};

/* One run of shmviewctl. main() owns it, and disconnects at the end. */
struct context {
    const struct verb *verb;               /* NULL before it is known */
    const char *socket;                    /* --socket; NULL: the usual search */
    struct shmview_connection *connection; /* NULL until connect_daemon() */
    int status;                            /* set if options_read() returns false */
};

/* --- Options ------------------------------------------------------------- */

enum option_kind {
    OPTION_FLAG,     /* has no value: bool */
    OPTION_TEXT,     /* const char *, borrowed from the command line */
    OPTION_NUMBER,   /* int64_t */
    OPTION_TIME,     /* int64_t, nanoseconds */
    OPTION_DEADLINE, /* int64_t, CLOCK_MONOTONIC after that time: for calls that wait */
    OPTION_WORD,     /* size_t, the index in words */
    OPTION_CALL,     /* any type: read() converts the value */
};

/* One option of a verb. The list ends with OPT_END. options_read() adds --socket and --help. A
 * table instead of code in each verb lets all verbs report wrong options alike. */
struct verb_option {
    const char *name;
    char letter; /* '\0': none */
    enum option_kind kind;
    union { /* the variable that the option sets; unchanged without it */
        bool *flag;
        const char **text;
        int64_t *number; /* or time */
        size_t *word;
        void *any; /* for read() */
    } to;
    bool is_off;              /* of a flag: clear it */
    bool *given;              /* of a time: set to true; may be NULL */
    int64_t least, most;      /* of a number; least of a time */
    const char *const *words; /* end with NULL */
    int (*read)(struct context *c, const char *value, void *to); /* returns 0 or the exit status */
};

#define OPT_ROW(n, l, k, ...)                                                                      \
    {                                                                                              \
        .name = n, .letter = l, .kind = OPTION_##k, __VA_ARGS__                                    \
    }
#define OPT_FLAG(n, l, t) OPT_ROW(n, l, FLAG, .to.flag = t)
#define OPT_OFF(n, l, t)  OPT_ROW(n, l, FLAG, .to.flag = t, .is_off = true)
#define OPT_TEXT(n, l, t) OPT_ROW(n, l, TEXT, .to.text = t)
#define OPT_NUMBER(n, l, t, min, max)                                                              \
    OPT_ROW(n, l, NUMBER, .to.number = t, .least = min, .most = max)
#define OPT_TIME(n, l, t, min, g) OPT_ROW(n, l, TIME, .to.number = t, .least = min, .given = g)
#define OPT_DEADLINE(n, l, t)     OPT_ROW(n, l, DEADLINE, .to.number = t)
#define OPT_WORD(n, l, t, w)      OPT_ROW(n, l, WORD, .to.word = t, .words = w)
#define OPT_CALL(n, l, t, f)      OPT_ROW(n, l, CALL, .to.any = t, .read = f)
#define OPT_END                   OPT_ROW(NULL, '\0', FLAG, .to.flag = NULL)

#define COMMON_HELP                                                                                \
    "      --socket PATH         the daemon's socket (default: the usual search)\n"                \
    "  -h, --help                show this and exit\n"

/* Reads the options into their variables, and checks that `least` to `most` arguments follow, from
 * argv[optind] on. Returns true, or false with c->status after printing an error or the help. */
bool options_read(struct context *c, int argc, char **argv, const struct verb_option *options,
                  int least, int most);

/* Prints that an argument is missing, and returns EXIT_USAGE. */
int fail_missing(struct context *c);

/* --- Errors -------------------------------------------------------------- */

/* All print "shmviewctl: VERB: ..." on standard error and return the exit status. */

/* The command line is wrong: adds where to read about it. */
__attribute__((format(printf, 2, 3))) int fail_usage(struct context *c, const char *format, ...);
/* Something failed. The text must end with the next step for the user. */
__attribute__((format(printf, 2, 3))) int fail_text(struct context *c, const char *format, ...);
/* A call of the library returned `error`: prints shmview_error_text() and the next step. */
int fail_call(struct context *c, int error);
/* Like fail_call(), but for a call that named a segment: if it does not exist, prints similar
 * names.
 */
int fail_segment(struct context *c, int error, const char *name);
/* Like fail_segment(), if the segment could not be attached. Prints how the user can get access. */
int fail_attach(struct context *c, int error, const char *name);
/* Like fail_segment() with SHMVIEW_ERR_NOT_FOUND, but no call of the library has failed. */
int fail_not_found(struct context *c, const char *name);
int fail_memory(struct context *c);

/* Prints a warning; the verb continues. */
__attribute__((format(printf, 2, 3))) void warn_text(struct context *c, const char *format, ...);

/* --- The daemon ---------------------------------------------------------- */

/* Sets c->connection unless it is set. Starts no daemon, because a new one has no segments.
 * Blocks for one round trip. Returns 0, or the exit status. */
int connect_daemon(struct context *c);
/* Like connect_daemon(), but starts this user's session daemon if no other one runs. */
int connect_or_start(struct context *c);
/* Connects, and attaches the segment called name. The caller owes shmview_detach(). Returns 0, or
 * the exit status. */
int attach(struct context *c, const char *name, int access, struct shmview_segment **ret_segment);

/* --- Reading numbers ----------------------------------------------------- */

/* Each prints a usage error that names `what`, the argument. Each returns 0, or the exit status. */

/* Reads "4096", "4K", "1.5MiB", "2G" (powers of 1024), or "4KB" (powers of 1000). */
int parse_bytes(struct context *c, const char *what, const char *text, uint64_t *ret);
/* Like parse_bytes(), but prints nothing. Returns whether text is a number of bytes. */
bool read_bytes(const char *text, uint64_t *ret);
/* Reads "10" (seconds), "0.5", "500ms", "2min", "1h" as nanoseconds. */
int parse_duration(struct context *c, const char *what, const char *text, int64_t *ret);
/* Reads a decimal integer from least to most. */
int parse_number(struct context *c, const char *what, const char *text, int64_t least, int64_t most,
                 int64_t *ret);
/* Finds text in names, which end with NULL. *ret is its index. */
int parse_word(struct context *c, const char *what, const char *text, const char *const *names,
               size_t *ret);

/* --- Numbers for people -------------------------------------------------- */

#define HUMAN_BYTES 32

/* These write into buffer, of HUMAN_BYTES, and return it. */

/* "0B", "512B", "4K", "1.5M". */
const char *human_bytes(char *buffer, int64_t bytes);
/* "3ms", "12s", "5min", "3h", "12d". */
const char *human_duration(char *buffer, int64_t us);
/* "2026-03-01T12:00:00Z", from microseconds of CLOCK_REALTIME. */
const char *iso_time(char *buffer, int64_t us);
/* Return the name of a user or a group, or its number if it has no name. The string is static and
 * valid until the next call. */
const char *user_name(int64_t uid);
const char *group_name(int64_t gid);

int64_t realtime_us(void);

/* Return the word for a number of the library, or NULL for an unknown number. */
const char *access_name(uint32_t access);
const char *lifetime_name(uint32_t lifetime);
const char *backing_name(uint32_t backing);
const char *frozen_name(uint32_t frozen);
const char *hold_name(uint32_t hold);        /* SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED */
extern const char *const owner_died_names[]; /* of lock --owner-died */
extern const char *const huge_names[];       /* index + 1 is the number */
extern const char *const numa_names[];       /* of --numa, which also takes a number */
extern const char *const access_names[], *const lifetime_names[],
                                             *const backing_names[]; /* index + 1 is the number */
#define N_BACKINGS ((size_t)SHMVIEW_BACKING_SEALED)

/* --- Output -------------------------------------------------------------- */

/* Whether standard output is a terminal, and neither NO_COLOR nor TERM=dumb forbids colours. */
bool wants_color(void);
/* Returns the columns of the terminal, otherwise $COLUMNS, otherwise 80. */
size_t terminal_width(void);
/* Whether the locale shows UTF-8. */
bool has_utf8(void);

/* Prints text that another program chose. Control characters become '?', because they could move
 * the cursor or change the terminal. */
void print_safely(const char *text);

/* Prints json indented, and a newline. json NULL counts as out of memory. Returns 0, or the exit
 * status. */
int print_json(struct context *c, const json_t *json);
/* Like print_json(), but in one line, and flushes it: a reader of a stream of records gets each one
 * at once. */
int print_json_line(struct context *c, const json_t *json);

#endif
