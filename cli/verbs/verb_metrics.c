/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: figures for Prometheus. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/text/metrics.h"

#define SUFFIX    ".prom" /* what node_exporter looks for */
#define FILE_MODE 0644    /* it is another user's program */

struct request {
    const char *textfile; /* NULL: standard output */
    bool no_segments;
    char **patterns;
};

/* Leaves those that fit. Returns how many. */
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

/* Returns 0 or the exit status. */
static int print_to(struct context *c, const struct request *q, FILE *file,
                    const struct shmview_stats *stats)
{
    CLEANUP_FREE const struct shmview_segment_stats **segments = NULL;
    size_t n = 0;
    if (stats) {
        segments = malloc((stats->n_segments + 1) * sizeof *segments);
        if (!segments)
            return fail_memory(c);
        n = select_segments(stats, q, segments);
    }
    metrics_print(file, stats, segments, n, realtime_us());
    return 0;
}

/* Another name first: who reads the file never finds half of it. */
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
        int status = fail_text(c, "cannot write %s: %s: its directory must be there and writable",
                               name, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    int status = print_to(c, q, file, stats);
    bool is_bad = ferror(file) | fchmod(fd, FILE_MODE);
    int saved = errno;
    if (fclose(file) || is_bad || status || rename(name, q->textfile)) {
        if (!status)
            status = fail_text(c, "cannot write %s: %s: the file that was there stays", q->textfile,
                               strerror(is_bad ? saved : errno));
        unlink(name);
    }
    return status;
}

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
        OPT_END,
    };
    const struct shmview_stats *stats = NULL;
    if (!options_read(c, argc, argv, options, 0, argc))
        return c->status;
    q.patterns = argv + optind;
    size_t n = q.textfile ? strlen(q.textfile) : 0, m = strlen(SUFFIX);
    if (q.textfile && (n < m || strcmp(q.textfile + n - m, SUFFIX) != 0))
        return fail_usage(c, "node_exporter reads files that end with " SUFFIX ", not '%s'",
                          q.textfile);
    int status = get_stats(c, &q, &stats);
    /* that there is no daemon is a figure too */
    if (q.textfile && (status == 0 || status == EXIT_NO_DAEMON)) {
        int failed = write_textfile(c, &q, stats);
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
    .help = "      --textfile PATH       replace that file, of which nobody reads half, for\n"
            "                            node_exporter; PATH ends with .prom\n"
            "      --no-segments         nothing of single segments\n"
            "\nPATTERN chooses segments; removed ones are left out.\n"
            "Example: shmviewctl metrics --textfile /var/lib/node_exporter/shmview.prom\n\n",
    .run = run_metrics,
};
