/* SPDX-License-Identifier: Apache-2.0 */
/* Options, errors, the connection. */
#include <stdarg.h>
#include <string.h>

#include "cli/shell/cli.h"
#include "cli/shell/suggest.h"

/* --- Errors -------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) static void print_error(const struct context *c,
                                                              const char *format, va_list ap)
{
    fflush(stdout); /* in the order that things happened */
    fprintf(stderr, "shmviewctl: %s%s", c->verb ? c->verb->name : "", c->verb ? ": " : "");
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
}

int fail_usage(struct context *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    print_error(c, format, ap);
    va_end(ap);
    fprintf(stderr, "Try 'shmviewctl %s%s--help'.\n", c->verb ? c->verb->name : "",
            c->verb ? " " : "");
    return EXIT_USAGE;
}

int fail_text(struct context *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    print_error(c, format, ap);
    va_end(ap);
    return EXIT_FAILED;
}

void warn_text(struct context *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    print_error(c, format, ap);
    va_end(ap);
}

int fail_memory(struct context *c)
{
    return fail_text(c, "out of memory: free some and try again");
}

/* What to do next, by the error. */
static const struct hint {
    int error, status;
    const char *text;
} hints[] = {
    {SHMVIEW_ERR_NO_DAEMON, EXIT_NO_DAEMON,
     "start one with 'systemctl --user start shmviewd.socket', or 'shmviewd &', or name its "
     "socket with --socket"},
    {SHMVIEW_ERR_DISCONNECTED, EXIT_NO_DAEMON,
     "'systemctl status shmviewd' may tell why; try again"},
    {SHMVIEW_ERR_NOT_FOUND, EXIT_NOT_FOUND,
     "'shmviewctl list' shows the segments that you may see"},
    {SHMVIEW_ERR_NO_LAYOUT, EXIT_NOT_FOUND,
     "'shmviewctl show' shows the layouts that there are, 'shmviewctl define' makes one"},
    {SHMVIEW_ERR_EXISTS, EXIT_FAILED, "take another name, or 'shmviewctl remove' the old one"},
    {SHMVIEW_ERR_LAYOUT_EXISTS, EXIT_FAILED,
     "layouts stay as long as their segment: take another name"},
    {SHMVIEW_ERR_DENIED, EXIT_FAILED,
     "'shmviewctl list -o NAME,OWNER,GROUP,MODE' shows who may; its owner can 'shmviewctl chmod'"},
    {SHMVIEW_ERR_NO_SPACE, EXIT_FAILED,
     "'shmviewctl remove' what is not needed, or enlarge /dev/shm ('mount -o remount,size=')"},
    {SHMVIEW_ERR_QUOTA, EXIT_FAILED,
     "'shmviewctl remove' what is not needed, or raise it in shmviewd.json(5)"},
    {SHMVIEW_ERR_NO_SLOT, EXIT_FAILED, "'shmviewctl who' shows who has them: somebody must detach"},
    {SHMVIEW_ERR_NO_LOCK, EXIT_FAILED, "create it without --no-lock"},
    {SHMVIEW_ERR_LOST, EXIT_FAILED, "others may have changed the bytes; try again"},
    {SHMVIEW_ERR_READ_ONLY, EXIT_FAILED, "its owner can 'shmviewctl chmod'"},
    {SHMVIEW_ERR_TIMED_OUT, EXIT_TIMED_OUT,
     "'shmviewctl who' shows who holds locks; or give --timeout more"},
    {SHMVIEW_ERR_FORMAT, EXIT_FAILED, "FORMATS in shmviewctl(1) has the formats that there are"},
    {SHMVIEW_ERR_MISALIGNED, EXIT_FAILED, "give the view another @OFFSET, or other strides"},
    {SHMVIEW_ERR_BOUNDS, EXIT_FAILED, "make the view smaller, or a larger segment"},
    {SHMVIEW_ERR_OVERFLOW, EXIT_FAILED, "make the view smaller"},
    {SHMVIEW_ERR_UNSUPPORTED, EXIT_FAILED, "the daemon is older than this program: update it"},
    {SHMVIEW_ERR_PROTOCOL, EXIT_FAILED, "something else may listen there: look at --socket"},
    {SHMVIEW_ERR_NO_MEMORY, EXIT_FAILED, "free some and try again"},
};

static const struct hint *find_hint(int error)
{
    for (size_t i = 0; i < ARRAY_LEN(hints); i++)
        if (hints[i].error == error)
            return &hints[i];
    return NULL;
}

int fail_call(struct context *c, int error)
{
    const char *text = shmview_error_text();
    const struct hint *hint = find_hint(abs(error));
    if (!text[0])
        text = shmview_strerror(error);
    if (!hint)
        return fail_text(c, "%s", text);
    warn_text(c, "%s: %s", text, hint->text);
    return hint->status;
}

int fail_segment(struct context *c, int error, const char *name)
{
    int status = fail_call(c, error);
    if (abs(error) == SHMVIEW_ERR_NOT_FOUND)
        suggest_segments(c, name);
    return status;
}

int fail_not_found(struct context *c, const char *name)
{
    warn_text(c, "no segment '%s': %s", name, find_hint(SHMVIEW_ERR_NOT_FOUND)->text);
    suggest_segments(c, name);
    return EXIT_NOT_FOUND;
}

/* --- Options ------------------------------------------------------------- */

/* The letters of options, "+:so:". */
static char *letters_of(const struct option *options, bool stops)
{
    size_t n = 0;
    while (options[n].name)
        n++;
    char *letters = malloc(2 * n + 3), *at = letters;
    if (!letters)
        return NULL;
    if (stops)
        *at++ = '+';
    *at++ = ':';
    for (size_t i = 0; i < n; i++)
        if (options[i].val < OPTION_LONG) {
            *at++ = (char)options[i].val;
            if (options[i].has_arg == required_argument)
                *at++ = ':';
        }
    *at = '\0';
    return letters;
}

static int fail_option(struct context *c, const struct option *options, const char *typed)
{
    char word[SUGGEST_BYTES], name[SUGGEST_BYTES];
    struct suggest s = {.typed = word};
    int status = fail_usage(c, "there is no option %s", typed);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(typed, "="), typed);
    for (size_t i = 0; options[i].name && word[1] == '-'; i++) {
        snprintf(name, sizeof name, "--%s", options[i].name);
        suggest_offer(&s, name);
    }
    suggest_print(&s);
    return status;
}

static int bad_option(struct context *c, char **argv, const struct option *options, int o)
{
    char letter[] = {'-', (char)optopt, '\0'};
    const char *what = letter;
    if (optopt == 0)
        what = argv[optind - 1];
    for (size_t i = 0; options[i].name; i++)
        if (optopt >= OPTION_LONG && options[i].val == optopt)
            what = argv[optind - 1];
    if (o == ':')
        return fail_usage(c, "option %s needs a value", what);
    if (optopt >= OPTION_LONG || (optopt && strncmp(argv[optind - 1], "--", 2) == 0))
        return fail_usage(c, "option %s takes no value", argv[optind - 1]);
    return fail_option(c, options, what);
}

int option_next(struct context *c, int argc, char **argv, const struct option *options)
{
    opterr = 0;
    free(c->letters);
    c->letters = letters_of(options, !c->verb || c->verb->stops_at_argument);
    if (!c->letters) {
        c->status = fail_memory(c);
        return OPTION_EXIT;
    }
    for (int o;;) {
        o = getopt_long(argc, argv, c->letters, options, NULL);
        if (o == COMMON_SOCKET) {
            c->socket = optarg;
        } else if (o == 'h' && c->verb) {
            printf("Usage: shmviewctl %s [OPTION]...%s%s\n%s.\n\n%s" COMMON_HELP, c->verb->name,
                   c->verb->arguments[0] ? " " : "", c->verb->arguments, c->verb->summary,
                   c->verb->help);
            c->status = EXIT_OK;
            return OPTION_EXIT;
        } else if (o == '?' || o == ':') {
            c->status = bad_option(c, argv, options, o);
            return OPTION_EXIT;
        } else {
            return o;
        }
    }
}

bool has_arguments(struct context *c, int argc, char **argv, int least, int most)
{
    int n = argc - optind;
    if (n < least)
        fail_usage(c, "an argument is missing: %s %s", c->verb->name, c->verb->arguments);
    else if (n > most)
        fail_usage(c, "'%s' is one argument too many: %s %s", argv[optind + most], c->verb->name,
                   c->verb->arguments);
    return n >= least && n <= most;
}

/* --- The daemon ---------------------------------------------------------- */

static int connect_with(struct context *c, unsigned flags)
{
    if (c->connection)
        return 0;
    int r = shmview_connect(c->socket, flags, &c->connection);
    return r ? fail_call(c, r) : 0;
}

int connect_daemon(struct context *c)
{
    return connect_with(c, SHMVIEW_CONNECT_NO_START);
}

int connect_or_start(struct context *c)
{
    return connect_with(c, 0);
}

int attach(struct context *c, const char *name, int access, struct shmview_segment **ret_segment)
{
    int status = connect_daemon(c);
    if (status)
        return status;
    int r = shmview_attach(c->connection, name, access, 0, ret_segment);
    return r ? fail_segment(c, r, name) : 0;
}
