/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of shmviewctl share: options, the connection, errors, numbers for people. */
#ifndef CLI_H
#define CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include <shmview/shmview.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CLEANUP(f)   __attribute__((cleanup(f)))
#define CLEANUP_FREE CLEANUP(free_pp)

static inline void free_pp(void *pp)
{
    free(*(void **)pp);
}

/* How the program ends. Those of man/shmviewctl.1. */
enum exit_status {
    GO_ON = -1, /* no status: the program does not end here */
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,       /* what was asked for cannot be understood; nothing was done */
    EXIT_NO_DAEMON = 3,   /* or it went away */
    EXIT_NOT_FOUND = 4,   /* no such segment, layout or view */
    EXIT_TIMED_OUT = 124, /* as timeout(1) */
};

struct context;

struct verb {
    const char *name;
    const char *arguments; /* as the usage line has them: "NAME SIZE" */
    const char *summary;   /* half a line */
    const char *help;      /* what follows the summary in --help: options and examples */
    /* Returns an enum exit_status. argv[0] is the verb. */
    int (*run)(struct context *c, int argc, char **argv);
    bool stops_at_argument; /* options end at the first argument: the rest is a command */
};

struct context {
    const struct verb *verb;               /* NULL before it is known */
    const char *socket;                    /* --socket; NULL: the usual search */
    struct shmview_connection *connection; /* NULL until connect_daemon() */
    int status;                            /* where options_read() returns false */
};

/* --- Options ------------------------------------------------------------- */

enum option_kind {
    OPTION_FLAG,     /* has no value: bool */
    OPTION_TEXT,     /* const char *, borrowed from the command line */
    OPTION_NUMBER,   /* int64_t */
    OPTION_TIME,     /* int64_t, nanoseconds */
    OPTION_DEADLINE, /* the same, from now on: for calls that wait */
    OPTION_WORD,     /* size_t, the index in words */
    OPTION_CALL,     /* whatever read() makes of it */
};

/* A row of a verb's options, which end with OPT_END. --socket and --help are options of all. */
struct verb_option {
    const char *name;
    char letter; /* '\0': none */
    enum option_kind kind;
    union { /* what is written when the option is there */
        bool *flag;
        const char **text;
        int64_t *number; /* or time */
        size_t *word;
        void *any; /* for read() */
    } to;
    bool is_off;              /* of a flag: it is cleared */
    bool *given;              /* of a time: is set; may be NULL */
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

/* Reads the options, and checks that between least and most arguments follow, from argv[optind] on.
 * Returns true; or false, and c->status is the exit status: what is wrong was printed, or the
 * help. */
bool options_read(struct context *c, int argc, char **argv, const struct verb_option *options,
                  int least, int most);

/* Prints that an argument is missing, and returns EXIT_USAGE. */
int fail_missing(struct context *c);

/* --- Errors -------------------------------------------------------------- */

/* All print "shmviewctl: VERB: ..." on standard error and return the exit status. */

/* The command line is wrong: adds where to read about it. */
__attribute__((format(printf, 2, 3))) int fail_usage(struct context *c, const char *format, ...);
/* Something failed: the text ends with what to do next. */
__attribute__((format(printf, 2, 3))) int fail_text(struct context *c, const char *format, ...);
/* A call of the library returned error: tells shmview_error_text() and what to do next. */
int fail_call(struct context *c, int error);
/* Like fail_call(), for a call that named a segment: where there is no such segment, it prints the
 * names that are like that one. */
int fail_segment(struct context *c, int error, const char *name);
/* Like fail_segment() with SHMVIEW_ERR_NOT_FOUND, where no call of the library has failed. */
int fail_not_found(struct context *c, const char *name);
int fail_memory(struct context *c);

/* Prints without an exit status: for what is worth a word, and goes on. */
__attribute__((format(printf, 2, 3))) void warn_text(struct context *c, const char *format, ...);

/* --- The daemon ---------------------------------------------------------- */

/* Connects c->connection, once. No daemon is started. Returns 0 or the exit status. */
int connect_daemon(struct context *c);
/* The same, and starts this user's session daemon where no other runs. */
int connect_or_start(struct context *c);
/* Connects and attaches the segment called name; the caller owes shmview_detach(). Returns 0 or the
 * exit status. */
int attach(struct context *c, const char *name, int access, struct shmview_segment **ret_segment);

/* --- Reading numbers ----------------------------------------------------- */

/* "4096", "4K", "1.5MiB", "2G": powers of 1024; "4KB" too, powers of 1000. what is the
 * argument's name, for the message. Return 0 or the exit status. */
int parse_bytes(struct context *c, const char *what, const char *text, uint64_t *ret);
/* The same without a word: whether it is one. */
bool read_bytes(const char *text, uint64_t *ret);
/* "10", "0.5", "500ms", "2min", "1h": nanoseconds. */
int parse_duration(struct context *c, const char *what, const char *text, int64_t *ret);
/* Digits, least to most. */
int parse_number(struct context *c, const char *what, const char *text, int64_t least, int64_t most,
                 int64_t *ret);
/* One of names, which end with NULL. *ret is its index. */
int parse_word(struct context *c, const char *what, const char *text, const char *const *names,
               size_t *ret);

/* --- Numbers for people -------------------------------------------------- */

#define HUMAN_BYTES 32

/* "0B", "512B", "4K", "1.5M". buffer has HUMAN_BYTES; returned. */
const char *human_bytes(char *buffer, int64_t bytes);
/* "3ms", "12s", "5min", "3h", "12d". */
const char *human_duration(char *buffer, int64_t us);
/* "2026-03-01T12:00:00Z" of microseconds of CLOCK_REALTIME. */
const char *iso_time(char *buffer, int64_t us);
/* Name of a user, or of a group; its number where it has none. The string is static, until the
 * next call. */
const char *user_name(int64_t uid);
const char *group_name(int64_t gid);

int64_t realtime_us(void);

/* Words for the library's numbers; NULL for one that is none. */
const char *access_name(uint32_t access);
const char *lifetime_name(uint32_t lifetime);
const char *hold_name(uint32_t hold);        /* SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED */
extern const char *const owner_died_names[]; /* of lock --owner-died */
extern const char *const access_names[], *const lifetime_names[]; /* index + 1 is the number */

/* --- Output -------------------------------------------------------------- */

/* Whether standard output is a terminal that may have colours: NO_COLOR and TERM=dumb say no. */
bool wants_color(void);
/* Columns of the terminal; $COLUMNS; 80. */
size_t terminal_width(void);
/* Whether the locale shows UTF-8. */
bool has_utf8(void);

/* Prints text that somebody else chose; what would move the cursor becomes '?'. */
void print_safely(const char *text);

/* Prints it and a newline, indented. Returns 0 or the exit status. */
int print_json(struct context *c, const json_t *json);
/* The same in one line, and flushes it: for what comes one after another. */
int print_json_line(struct context *c, const json_t *json);

#endif
