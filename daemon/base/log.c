/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef SHMVIEW_SYSTEMD
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>
#endif

#include "common/base/util.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define TEXT_BYTES     1001
#define BURST          50 /* lines of one kind in WINDOW_NS that are written; further ones are counted */
#define WINDOW_NS      (10 * INT64_C(1000000000))

/* Where lines go. A build without libsystemd never chooses TO_JOURNAL. */
static enum {
    TO_STDERR,  /* a terminal, a file or a pipe: plain lines */
    TO_STREAM,  /* the journal reads standard error as text: lines begin with <priority> */
    TO_JOURNAL, /* messages with fields, to the socket of the journal */
} target;

static enum log_priority level = LOG_INFO;

void log_set_level(enum log_priority least)
{
    level = least;
}

/* Whether text, the value of JOURNAL_STREAM, names the file of st. systemd sets that variable to
 * the device and inode of the stream that it gave the service as standard error. A variable that
 * was inherited from another service names another file. */
static bool is_stream(const char *text, const struct stat *st)
{
    unsigned long long device, inode;
    char rest;
    return text && sscanf(text, "%llu:%llu%c", &device, &inode, &rest) == 2 &&
           device == st->st_dev && inode == st->st_ino;
}

void log_init(void)
{
    struct stat st;
    target = TO_STDERR;
    if (fstat(STDERR_FILENO, &st) || !is_stream(getenv("JOURNAL_STREAM"), &st))
        return;
    target = TO_STREAM;
#ifdef SHMVIEW_SYSTEMD
    if (S_ISSOCK(st.st_mode) && access(JOURNAL_SOCKET, F_OK) == 0)
        target = TO_JOURNAL;
#endif
}

/* Writes a line to standard error with one write(), so that lines of two processes do not mix. */
static void write_line(int priority, const char *text)
{
    char line[TEXT_BYTES + 16];
    int n = target == TO_STDERR ? snprintf(line, sizeof line, "shmviewd: %s\n", text)
                                : snprintf(line, sizeof line, "<%d>%s\n", priority, text);
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* there is no other place to report this error */
}

#ifdef SHMVIEW_SYSTEMD
static const char *const message_ids[LOG_N_KINDS] = {
    [LOG_START] = "6b473c8ebe974ed68aa3bdcadd2849ef",
    [LOG_TAKE_OVER] = "38b090b2f40d45f5b6abbfb3103038e8",
    [LOG_SET_ASIDE] = "5dcb194ec9894d4d98c34670fbe7fc50",
    [LOG_REPAIRED] = "c6b4c5d2a0b94d4b8f6d6cf1e5a7c0b2",
    [LOG_OWNER_DIED] = "1df4aacb1a184402a32d164ad3441707",
    [LOG_QUOTA] = "c7eaea6c0c95468eac923884d97dd488",
    [LOG_PROTOCOL] = "51b2ecf9a2b044ee9709f809f63049e4",
    [LOG_TURNED_AWAY] = "6a8007d53a7f4183815e4c08e247c663",
    [LOG_RELOAD] = "ff2c7e5feeb44e59a3288fd220c02ff1",
    [LOG_LEAVE] = "286cc9ad6d164be0adad9472a418b6e1",
};

/* The fields of one message as sd_journal_sendv() takes them. Each entry of list points to the text
 * with the same index. send_fields() adds at most 8. */
struct fields {
    struct iovec list[8];
    char text[8][TEXT_BYTES + 32];
    int n;
};

/* Appends one field "NAME=value", cut to TEXT_BYTES + 31 bytes. */
__attribute__((format(printf, 2, 3))) static void add(struct fields *f, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(f->text[f->n], sizeof f->text[0], format, ap);
    va_end(ap);
    size_t bytes = n < 0 ? 0 : (size_t)n;
    if (bytes >= sizeof f->text[0])
        bytes = sizeof f->text[0] - 1;
    f->list[f->n] = (struct iovec){.iov_base = f->text[f->n], .iov_len = bytes};
    f->n++;
}

/* Sends one message to the journal. Returns 0, or -errno if the journal did not accept it. */
static int send_fields(int priority, const struct log_event *event, const char *text)
{
    struct fields f;
    f.n = 0;
    add(&f, "MESSAGE=%s", text);
    add(&f, "PRIORITY=%d", priority);
    add(&f, "SYSLOG_IDENTIFIER=shmviewd");
    if (message_ids[event->kind])
        add(&f, "MESSAGE_ID=%s", message_ids[event->kind]);
    if (event->segment)
        add(&f, "SHMVIEW_SEGMENT=%s", event->segment);
    if (event->reason)
        add(&f, "SHMVIEW_REASON=%s", event->reason);
    if (event->has_uid)
        add(&f, "SHMVIEW_UID=%u", event->uid);
    if (event->pid)
        add(&f, "SHMVIEW_PID=%d", event->pid);
    return sd_journal_sendv(f.list, f.n);
}
#else
static int send_fields(int priority, const struct log_event *event, const char *text)
{
    (void)priority, (void)event, (void)text;
    return -EOPNOTSUPP;
}
#endif

/* Sends text to the target. If the journal refuses the message, the text goes to standard error, so
 * that no line is lost. */
static void send_line(int priority, const struct log_event *event, const char *text)
{
    if (target != TO_JOURNAL || send_fields(priority, event, text) < 0)
        write_line(priority, text);
}

/* Whether a line of this kind may be written now, and counts it. Otherwise a client could fill the
 * journal by an error that it repeats. A window begins with the first line after the previous
 * window is over. If lines were dropped in that previous window, their number is written first. */
static bool may_log(enum log_kind kind)
{
    static struct {
        int64_t since_ns;
        unsigned n, n_left_out;
    } windows[LOG_N_KINDS];
    int64_t now = now_ns();
    unsigned left_out = windows[kind].n_left_out;
    if (windows[kind].n > 0 && now - windows[kind].since_ns < WINDOW_NS) {
        if (windows[kind].n++ < BURST)
            return true;
        windows[kind].n_left_out++;
        return false;
    }
    windows[kind].since_ns = now;
    windows[kind].n = 1;
    windows[kind].n_left_out = 0;
    if (left_out) {
        char text[80];
        struct log_event event = {.kind = kind, .reason = "too many"};
        snprintf(text, sizeof text, "%u more lines like the following were left out", left_out);
        send_line(LOG_WARNING, &event, text);
    }
    return true;
}

/* Copies as much of `from` as fits into bytes, with the final NUL. Writes a backslash and every
 * byte that is not printable ASCII as \xNN, so that the line can be read back without ambiguity. */
static void escape(char *to, size_t bytes, const char *from)
{
    size_t n = 0;
    for (; *from; from++) {
        unsigned char c = (unsigned char)*from;
        bool plain = c >= ' ' && c <= '~' && c != '\\';
        if (n + (plain ? 1 : 4) >= bytes)
            break;
        if (plain)
            to[n++] = (char)c;
        else
            n += (size_t)snprintf(to + n, bytes - n, "\\x%02x", c);
    }
    to[n] = '\0';
}

/* Formats, escapes and sends one line, unless its priority or the count of its kind forbids it. */
__attribute__((format(printf, 3, 0))) static void
log_line(enum log_priority priority, const struct log_event *event, const char *format, va_list ap)
{
    char raw[TEXT_BYTES], text[TEXT_BYTES];
    if (priority > level || !may_log(event->kind) || vsnprintf(raw, sizeof raw, format, ap) < 0)
        return;
    escape(text, sizeof text, raw);
    send_line((int)priority, event, text);
}

/* The body of a variadic function whose last named parameter is `format`. */
#define LOG_AS(priority, event)                                                                    \
    do {                                                                                           \
        va_list ap;                                                                                \
        va_start(ap, format);                                                                      \
        log_line(priority, event, format, ap);                                                     \
        va_end(ap);                                                                                \
    } while (0)

static const struct log_event plain = {.kind = LOG_PLAIN};

void log_event(enum log_priority priority, const struct log_event *event, const char *format, ...)
{
    LOG_AS(priority, event);
}

void log_warning(const char *format, ...)
{
    LOG_AS(LOG_WARNING, &plain);
}

void log_error(const char *format, ...)
{
    LOG_AS(LOG_ERROR, &plain);
}
