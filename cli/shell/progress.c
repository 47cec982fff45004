/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/shell/cli.h"

#define FIRST_NS INT64_C(500000000) /* a transfer that ends sooner shows no bar */
#define EVERY_NS INT64_C(100000000)
#define LINE     512

const char *progress_text(char *text, size_t bytes, size_t width, bool utf8, uint64_t done,
                          uint64_t total, int64_t elapsed_ns)
{
    char tail[128], so_far[HUMAN_BYTES], all[HUMAN_BYTES], rate[HUMAN_BYTES];
    double part = total ? (double)done / (double)total : 1;
    double seconds = (double)elapsed_ns / 1e9;
    double per_second = seconds > 0 ? (double)done / seconds : 0;
    if (total == PROGRESS_UNKNOWN) {
        snprintf(text, bytes, "%s  %s/s", human_bytes(so_far, (int64_t)done),
                 human_bytes(rate, (int64_t)per_second));
        return text;
    }
    long left = per_second > 0 ? (long)((double)(total - done) / per_second + 0.5) : 0;
    snprintf(tail, sizeof tail, " %s of %s  %s/s  %ld:%02ld left",
             human_bytes(so_far, (int64_t)done), human_bytes(all, (int64_t)total),
             human_bytes(rate, (int64_t)per_second), left / 60, left % 60);
    const char *full = utf8 ? "━" : "#";
    size_t n = (size_t)snprintf(text, bytes, "%3d%% ", (int)(part * 100));
    size_t room = width > n + strlen(tail) ? width - n - strlen(tail) : 0;
    size_t n_full = (size_t)((double)room * part);
    for (size_t i = 0; i < room && n + strlen(full) < bytes; i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s", i < n_full ? full : " ");
    if (n < bytes)
        snprintf(text + n, bytes - n, "%s", tail);
    return text;
}

void progress_begin(struct progress *p, uint64_t total_bytes)
{
    const char *term = getenv("TERM");
    *p = (struct progress){
        .total = total_bytes,
        .begin_ns = shmview_deadline(0),
        .is_terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0,
        .has_utf8 = has_utf8(),
    };
    p->shown_ns = p->begin_ns + FIRST_NS - EVERY_NS;
}

void progress_update(struct progress *p, uint64_t done)
{
    char line[LINE];
    struct winsize size = {.ws_col = 0};
    int64_t now = p->is_terminal ? shmview_deadline(0) : 0;
    if (now - p->shown_ns < EVERY_NS)
        return;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0)
        size.ws_col = 80;
    size_t width = size.ws_col - 1u;
    if (width > LINE / 4)
        width = LINE / 4; /* a character may have four bytes */
    progress_text(line, sizeof line, width, p->has_utf8, done, p->total, now - p->begin_ns);
    fprintf(stderr, "\r%s", line);
    p->shown_ns = now;
    p->is_shown = true;
}

void progress_end(struct progress *p)
{
    if (p->is_shown)
        fputs("\r\033[K", stderr);
    p->is_shown = false;
}
