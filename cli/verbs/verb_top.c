/* SPDX-License-Identifier: Apache-2.0 */
/* top: shows segments and locks, and updates them every two seconds.
 *
 * cli/top computes and draws the figures, because its two outputs share them: a screen that reads
 * keys, and with --batch pages for a file. This file reads the options and gets the figures.
 *
 * A daemon that goes away does not end the verb: the old figures stay, with a note. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/text/bus_error.h"
#include "cli/top/top_screen.h"
#include "cli/top/top_streams.h"

#define NAME_MOST       32                  /* columns of a name on a screen, which may be narrow */
#define NAME_MOST_BATCH 128                 /* the longest possible name */
#define DELAY_NS        INT64_C(2000000000) /* without --delay */
#define DELAY_LEAST     INT64_C(50000000)

/* Streams stay attached for a shorter time only: a stream whose programs have all ended exists
 * until this one lets it go, and its next creator would find the name taken. */
#define ATTACHED_MOST_NS DELAY_NS

/* Options of this file; the others are in struct top. */
struct how {
    bool is_batch, streams;
    int64_t count; /* of batch; 0: no end */
    int64_t delay_ns;
};

/* Gets new figures, also of streams. If the daemon does not answer, keeps the old ones and sets
 * t->trouble to the reason; without old ones that is an error. Returns 0 or the exit status. */
static int refresh_figures(struct context *c, struct top *t)
{
    static char trouble[200];
    const struct shmview_stats_options all = {.struct_bytes = sizeof all,
                                              .limit = SHMVIEW_STATS_ALL};
    const struct shmview_stats *stats;
    int r = shmview_stats_get(c->connection, &all, &stats);
    if (r == 0) {
        t->trouble = NULL;
        if (top_update(t, stats, realtime_us()))
            return fail_memory(c);
    } else if (!t->now) {
        return fail_call(c, r);
    } else {
        snprintf(trouble, sizeof trouble, "old figures: %s", shmview_error_text());
        t->trouble = trouble;
    }
    return top_streams_update(t->streams, c, t);
}

/* --- Without a terminal -------------------------------------------------- */

/* Prints the header and a line for each segment. */
static void print_segments(const struct top *t)
{
    struct top_line header[TOP_HEADER], line;
    top_header(t, header);
    for (int i = 0; i < TOP_HEADER; i++)
        puts(header[i].text);
    for (size_t i = 0; i < t->n_rows; i++) {
        top_row_line(t, &t->rows[i], &line);
        puts(line.text);
    }
}

/* Prints one page: segments and then streams, or streams with their readers. Returns 0 or the exit
 * status. */
static int print_page(struct context *c, const struct top *t, const struct how *how)
{
    size_t n;
    CLEANUP_FREE struct top_line *lines = top_stream_lines(t, how->streams, &n);
    if (!lines)
        return fail_memory(c);
    if (!how->streams)
        print_segments(t);
    for (size_t i = 0; i < n; i++)
        puts(lines[i].text);
    return fflush(stdout) ? EXIT_FAILED : EXIT_OK; /* main() prints the reason */
}

/* Sleeps until an absolute time of CLOCK_MONOTONIC, also after signals. */
static void pause_until(int64_t deadline_ns)
{
    struct timespec at = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                          .tv_nsec = (long)(deadline_ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
        continue;
}

/* Prints pages until --count, or until the output cannot be written. Returns the exit status. */
static int print_pages(struct context *c, struct top *t, const struct how *how)
{
    int status = print_page(c, t, how);
    for (int64_t n = 1; status == 0 && (how->count == 0 || n < how->count); n++) {
        pause_until(shmview_deadline(how->delay_ns));
        status = refresh_figures(c, t);
        putchar('\n');
        if (status == 0)
            status = print_page(c, t, how);
    }
    return status;
}

/* --- The verb ------------------------------------------------------------ */

static int show(struct context *c, struct top *t, const struct how *how)
{
    int status = connect_daemon(c);
    if (status == 0)
        status = refresh_figures(c, t);
    if (status)
        return status;
    return how->is_batch ? print_pages(c, t, how)
                         : top_screen(c, t, how->delay_ns, how->streams, refresh_figures);
}

static int run_top(struct context *c, int argc, char **argv)
{
    struct how how = {.delay_ns = DELAY_NS};
    struct top_streams streams = {.n = 0};
    struct top t = {.streams = &streams};
    size_t key = TOP_WAITING;
    const struct verb_option options[] = {
        OPT_FLAG("batch", 'b', &how.is_batch),
        OPT_NUMBER("count", 'n', &how.count, 1, INT64_MAX),
        OPT_TIME("delay", 'd', &how.delay_ns, DELAY_LEAST, NULL),
        OPT_WORD("sort", 's', &key, top_key_names),
        OPT_FLAG("reverse", 'r', &t.is_reversed),
        OPT_FLAG("bytes", 'B', &t.wants_bytes),
        OPT_FLAG("streams", '\0', &how.streams),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 0, 1))
        return c->status;
    t.key = (enum top_key)key;
    t.name_most = how.is_batch ? NAME_MOST_BATCH : NAME_MOST;
    if (optind < argc && strlen(argv[optind]) >= sizeof t.filter)
        return fail_usage(c, "a filter has at most %zu characters", sizeof t.filter - 1);
    if (optind < argc)
        strcpy(t.filter, argv[optind]);
    if (how.count && !how.is_batch)
        return fail_usage(c, "--count is for --batch");
    if (!how.is_batch && !(isatty(STDOUT_FILENO) && isatty(STDIN_FILENO)))
        return fail_usage(c, "standard input and output are not a terminal: use --batch");
    streams.lets_go = how.delay_ns > ATTACHED_MOST_NS;
    bus_error_catch();
    int status = show(c, &t, &how);
    top_streams_deinit(&streams);
    top_deinit(&t);
    return status;
}

const struct verb verb_top = {
    .name = "top",
    .arguments = "[FILTER]",
    .summary = "Show segments, holders, waiters and deaths, and update them",
    .help = "  -s, --sort KEY            sort by name, size, resident, attached, held,\n"
            "                            waiting (default), changes, deaths or age\n"
            "  -r, --reverse             reverse the order\n"
            "  -d, --delay TIME          time between two updates (2s)\n"
            "  -b, --batch               print one page after the other, without a terminal\n"
            "  -n, --count N             end after that many pages of --batch\n"
            "  -B, --bytes               print sizes in bytes\n"
            "      --streams             show streams alone, with each stage and reader\n"
            "\nFILTER is a part of the names that are shown, or a pattern with * ? [. Press ?\n"
            "for the keys: Enter opens a segment, s shows the streams, / filters, < and >\n"
            "sort, q leaves.\n"
            "Example: shmviewctl top -s size camera\n\n",
    .run = run_top,
};
