/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: reports problems of this machine, and the limit that would be reached next.
 *
 * cli/doctor makes the findings; this file only prints them. The verb must work where everything
 * else fails. Therefore it never starts a daemon, and a daemon that does not answer is a finding
 * and not an error. */
#include <string.h>

#include "cli/doctor/doctor.h"

static const char *const level_names[] = {"ok", "warn", "fail"}; /* by enum doctor_level */

/* Options of the output. */
struct how {
    bool json, is_verbose, is_quiet;
};

/* --- Output -------------------------------------------------------------- */

/* Prints one finding: its level, check and fact; then the meaning and the next step, unless it is
 * ok and the user did not ask for more. */
static void print_finding(const struct doctor_finding *f, const struct how *how)
{
    static const char *const colors[] = {"\033[32m", "\033[33m", "\033[31m"};
    const char *begin = wants_color() ? colors[f->level] : "", *end = begin[0] ? "\033[0m" : "";
    if (how->is_quiet && f->level == DOCTOR_OK)
        return;
    printf("%s%-4s%s  %-18s %s\n", begin, level_names[f->level], end, f->check, f->found);
    if (f->level == DOCTOR_OK && !how->is_verbose)
        return;
    printf("      means: %s\n", f->means);
    if (f->advice && f->level != DOCTOR_OK)
        printf("      do:    %s\n", f->advice);
}

static void print_summary(const struct doctor *d)
{
    const struct doctor_finding *closest = doctor_closest(d);
    size_t n[3] = {0};
    for (size_t i = 0; i < d->n; i++)
        n[d->list[i].level]++;
    printf("\n%zu ok, %zu warnings, %zu failures.\n", n[DOCTOR_OK], n[DOCTOR_WARN], n[DOCTOR_FAIL]);
    if (closest)
        printf("Closest to its limit: %s, %.1f%% used (%s).\n", closest->check,
               closest->used / closest->limit * 100, closest->found);
}

static json_t *number_or_null(double number, bool is_known)
{
    return is_known ? json_real(number) : json_null();
}

/* used and limit are null for a finding that is not about a limit. */
static json_t *finding_json(const struct doctor_finding *f)
{
    bool has_limit = f->limit > 0;
    return json_pack("{s:s, s:s, s:s, s:s, s:s*, s:o, s:o}", "check", f->check, "level",
                     level_names[f->level], "found", f->found, "means", f->means, "advice",
                     f->advice, "used", number_or_null(f->used, has_limit), "limit",
                     number_or_null(f->limit, has_limit));
}

static int print_as_json(struct context *c, const struct doctor *d, const struct how *how)
{
    const struct doctor_finding *closest = doctor_closest(d);
    json_auto_t *all = json_pack("{s:s, s:s?, s:[]}", "level", level_names[doctor_worst(d)],
                                 "closest", closest ? closest->check : NULL, "findings");
    for (size_t i = 0; all && i < d->n; i++)
        if (!(how->is_quiet && d->list[i].level == DOCTOR_OK) &&
            json_array_append_new(json_object_get(all, "findings"), finding_json(&d->list[i])))
            return fail_memory(c);
    return print_json(c, all);
}

/* --- The verb ------------------------------------------------------------ */

/* Gets the figures of the daemon if one runs. Otherwise d->socket is the reason, as text for the
 * finding. */
static void look_at_daemon(struct context *c, struct doctor *d)
{
    int r = shmview_connect(c->socket, SHMVIEW_CONNECT_NO_START, &c->connection);
    if (r == 0)
        r = shmview_stats_get(c->connection, NULL, &d->stats);
    d->socket = r ? shmview_error_text() : shmview_socket_path(c->connection);
}

static int run_doctor(struct context *c, int argc, char **argv)
{
    struct how how = {.json = false};
    const struct verb_option options[] = {
        OPT_FLAG("json", 'J', &how.json),
        OPT_FLAG("verbose", 'v', &how.is_verbose),
        OPT_FLAG("quiet", 'q', &how.is_quiet),
        OPT_END,
    };
    struct doctor d;
    if (!options_read(c, argc, argv, options, 0, 0))
        return c->status;
    doctor_init(&d, "");
    look_at_daemon(c, &d);
    doctor_check_places(&d);
    doctor_check_memory(&d);
    doctor_check_limits(&d);
    doctor_check_kernel(&d);
    doctor_check_systemd(&d);
    doctor_check_huge(&d);
    doctor_check_mpi(&d);
    /* a finding that is missing for want of memory must not look like one that is ok */
    int status = d.is_short ? fail_memory(c) : EXIT_OK;
    if (status == EXIT_OK && how.json) {
        status = print_as_json(c, &d, &how);
    } else if (status == EXIT_OK) {
        for (size_t i = 0; i < d.n; i++)
            print_finding(&d.list[i], &how);
        print_summary(&d);
    }
    if (status == EXIT_OK && doctor_worst(&d) == DOCTOR_FAIL)
        status = EXIT_FAILED;
    shmview_stats_free(d.stats);
    doctor_deinit(&d);
    return status;
}

const struct verb verb_doctor = {
    .name = "doctor",
    .arguments = "",
    .summary = "Report problems of this machine, and the limit to be reached next",
    .help = "  -v, --verbose             print the meaning of findings that are ok too\n"
            "  -q, --quiet               print only findings that are not ok\n"
            "  -J, --json                print JSON\n"
            "\nChecks memory and /dev/shm, limits, quotas, the kernel, systemd, MPI, and\n"
            "sockets and objects that were left over. Changes nothing and starts\n"
            "nothing. The exit status is 1 if a finding is a failure, but not for warnings.\n"
            "Example: shmviewctl doctor -q\n\n",
    .run = run_doctor,
};
