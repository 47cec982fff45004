/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: prints figures for Prometheus.
 *
 * The daemon serves no HTTP. The figures reach Prometheus through the textfile collector of
 * node_exporter: a timer runs this verb with --textfile, and node_exporter publishes the file. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/text/metrics.h"
#include "cli/text/stream_metrics.h"

#define SUFFIX    ".prom" /* node_exporter reads only such files */
#define FILE_MODE 0644    /* node_exporter runs as another user */

/* The command line. */
struct request {
    const char *textfile; /* NULL: standard output */
    bool no_segments, no_streams, all_streams;
    char **patterns;
};

/* Stores the segments whose names match a pattern, or all if there is none, in ret, which has room
 * for all. Returns their number. */
static size_t select_segments(const struct shmview_stats *stats, const struct request *q,
                              const struct shmview_segment_stats **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < stats->n_segments; i++) {
        bool fits = !q->patterns[0];
        for (size_t j = 0; q->patterns[j] && !fits; j++)
            fits = fnmatch(q->patterns[j], stats->segments[i]->name, 0) == 0;
        if (fits)
            ret[n++] = stats->segments[i];
    }
    return n;
}

/* Prints the figures; stats is NULL if no daemon answers. Returns 0 or the exit status. */
static int print_to(struct context *c, const struct request *q, FILE *file,
                    const struct shmview_stats *stats)
{
    CLEANUP_FREE const struct shmview_segment_stats **segments = NULL;
    struct stream_metrics streams = {.n = 0};
    size_t n = 0;
    if (stats) {
        segments = malloc((stats->n_segments + 1) * sizeof *segments);
        if (!segments)
            return fail_memory(c);
        n = select_segments(stats, q, segments);
    }
    int status = q->no_streams ? 0 : stream_metrics_get(c, segments, n, !q->all_streams, &streams);
    if (status == 0) {
        metrics_print(file, stats, segments, n, realtime_us());
        stream_metrics_print(file, &streams);
    }
    free(streams.figures);
    return status;
}

/* Writes the file under another name and then renames it, so that a reader never finds half of it.
 * The other name does not end with SUFFIX, so node_exporter skips it. After an error the old file
 * stays. Returns 0 or the exit status. */
static int write_textfile(struct context *c, const struct request *q,
                          const struct shmview_stats *stats)
{
    CLEANUP_FREE char *name = NULL;
    if (asprintf(&name, "%s.XXXXXX", q->textfile) < 0) {
        name = NULL;
        return fail_memory(c);
    }
    int fd = mkstemp(name);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file) {
        int status = fail_text(c, "cannot write %s: %s: its directory must exist and be writable",
                               name, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    int status = print_to(c, q, file, stats);
    bool is_bad = ferror(file) | fchmod(fd, FILE_MODE);
    int saved = errno; /* the calls below overwrite it */
    if (fclose(file) || is_bad || status || rename(name, q->textfile)) {
        if (!status)
            status = fail_text(c, "cannot write %s: %s: the old file stays", q->textfile,
                               strerror(is_bad ? saved : errno));
        unlink(name);
    }
    return status;
}

/* Connects and gets the figures. The caller owes shmview_stats_free(). Returns 0 or the exit
 * status. */
static int get_stats(struct context *c, const struct request *q, const struct shmview_stats **ret)
{
    struct shmview_stats_options want = {.struct_bytes = sizeof want,
                                         .limit = q->no_segments ? 0 : SHMVIEW_STATS_ALL};
    int status = connect_daemon(c);
    if (status)
        return status;
    int r = shmview_stats_get(c->connection, &want, ret);
    return r ? fail_call(c, r) : 0;
}

static int run_metrics(struct context *c, int argc, char **argv)
{
    struct request q = {.textfile = NULL};
    const struct verb_option options[] = {
        OPT_TEXT("textfile", '\0', &q.textfile),
        OPT_FLAG("no-segments", '\0', &q.no_segments),
        OPT_FLAG("streams", '\0', &q.all_streams),
        OPT_FLAG("no-streams", '\0', &q.no_streams),
        OPT_END,
    };
    const struct shmview_stats *stats = NULL;
    if (!options_read(c, argc, argv, options, 0, argc))
        return c->status;
    q.patterns = argv + optind;
    if (q.all_streams && (q.no_segments || q.no_streams))
        return fail_usage(c, "--streams needs what --%s omits",
                          q.no_segments ? "no-segments" : "no-streams");
    size_t n = q.textfile ? strlen(q.textfile) : 0, m = strlen(SUFFIX);
    if (q.textfile && (n < m || strcmp(q.textfile + n - m, SUFFIX) != 0))
        return fail_usage(c, "node_exporter reads files that end with " SUFFIX ", not '%s'",
                          q.textfile);
    int status = get_stats(c, &q, &stats);
    /* no daemon is a figure too: without a new file the old figures would look like present ones */
    if (q.textfile && (status == 0 || status == EXIT_NO_DAEMON)) {
        int failed = write_textfile(c, &q, stats);
        if (failed == EXIT_NO_DAEMON) { /* it has ended after it reported the figures */
            status = failed;
            failed = write_textfile(c, &q, NULL);
        }
        status = failed ? failed : status;
    } else if (status == 0) {
        status = print_to(c, &q, stdout, stats);
    }
    shmview_stats_free(stats);
    return status;
}

const struct verb verb_metrics = {
    .name = "metrics",
    .arguments = "[PATTERN]...",
    .summary = "Print figures of the daemon and its segments for Prometheus",
    .help = "      --textfile PATH       replace that file as a whole, for node_exporter;\n"
            "                            PATH ends with .prom\n"
            "      --no-segments         omit the figures of single segments\n"
            "      --no-streams          omit the figures of streams, and attach none\n"
            "      --streams             look into all streams, not only the first 64\n"
            "\nWith PATTERN: only segments whose names match. Removed ones are left out.\n"
            "Example: shmviewctl metrics --textfile /var/lib/node_exporter/shmview.prom\n\n",
    .run = run_metrics,
};
