/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, with the next step for the user, and the connection. */
#include <stdarg.h>
#include <string.h>

#include "cli/shell/cli.h"
#include "cli/shell/suggest.h"

/* --- Errors -------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) static void print_error(const struct context *c,
                                                              const char *format, va_list ap)
{
    fflush(stdout); /* so that both outputs appear in the order of events */
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

/* The next step and the exit status for each error of the library. An error without a hint exits
 * with EXIT_FAILED; its own text suffices. */
static const struct hint {
    int error, status;
    const char *text;
} hints[] = {
    {SHMVIEW_ERR_NO_DAEMON, EXIT_NO_DAEMON,
     "start one with 'systemctl --user start shmviewd.socket', or 'shmviewd &', or name its "
     "socket with --socket"},
    {SHMVIEW_ERR_DISCONNECTED, EXIT_NO_DAEMON,
     "'systemctl status shmviewd' may show why; try again"},
    {SHMVIEW_ERR_NOT_FOUND, EXIT_NOT_FOUND,
     "'shmviewctl list' shows the segments that you may see"},
    {SHMVIEW_ERR_NO_LAYOUT, EXIT_NOT_FOUND,
     "'shmviewctl show' shows the layouts that there are, 'shmviewctl define' makes one"},
    {SHMVIEW_ERR_EXISTS, EXIT_FAILED,
     "take another name, or 'shmviewctl remove' the old one; if you cannot see it, another user "
     "has the name"},
    {SHMVIEW_ERR_LAYOUT_EXISTS, EXIT_FAILED,
     "layouts stay as long as their segment: take another name"},
    {SHMVIEW_ERR_NO_SPACE, EXIT_FAILED,
     "'shmviewctl remove' what is not needed, or enlarge /dev/shm ('mount -o remount,size=')"},
    {SHMVIEW_ERR_QUOTA, EXIT_FAILED,
     "'shmviewctl remove' what is not needed, or raise it in shmviewd.json(5)"},
    {SHMVIEW_ERR_NO_SLOT, EXIT_FAILED, "'shmviewctl who' lists their users: one must detach"},
    {SHMVIEW_ERR_NO_LOCK, EXIT_FAILED, "create it without --no-lock"},
    {SHMVIEW_ERR_LOST, EXIT_FAILED, "others may have changed the bytes; try again"},
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

int fail_attach(struct context *c, int error, const char *name)
{
    if (abs(error) != SHMVIEW_ERR_DENIED)
        return fail_segment(c, error, name);
    return fail_text(c,
                     "%s: 'shmviewctl list -o NAME,OWNER,GROUP,MODE' shows who may; its owner can "
                     "'shmviewctl chmod'",
                     shmview_error_text());
}

int fail_not_found(struct context *c, const char *name)
{
    warn_text(c, "no segment '%s': %s", name, find_hint(SHMVIEW_ERR_NOT_FOUND)->text);
    suggest_segments(c, name);
    return EXIT_NOT_FOUND;
}

/* --- The daemon ---------------------------------------------------------- */

static int connect_with(struct context *c, unsigned flags)
{
    if (c->connection)
        return 0;
    int r = shmview_connect(c->socket, flags, &c->connection);
    if (r == -SHMVIEW_ERR_DENIED)
        return fail_text(c,
                         "%s: ask its administrator for access to the socket, or name another "
                         "with --socket",
                         shmview_error_text());
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
    return r ? fail_attach(c, r, name) : 0;
}
