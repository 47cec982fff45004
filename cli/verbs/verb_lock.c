/* SPDX-License-Identifier: Apache-2.0 */
/* lock: runs a command while this process holds the lock of a segment, like flock(1) for files.
 *
 * This process is the holder, not the command. The lock therefore ends with this process, and a
 * child that the command leaves in the background does not keep it. The reverse needs care: if this
 * process is killed, the lock is free at once, so the command is killed too.
 *
 * The command cannot report that it left the bytes half written. So a command that a signal ends
 * counts as an owner that died inside, and a command that ran after a death counts as a repair only
 * with --owner-died=repair and exit status 0. */
#include <inttypes.h>
#include <string.h>

#include "cli/shell/command.h"

#define STATUS_CONFLICT 1 /* like flock(1) */
#define STATUS_DIED     5 /* of --owner-died=fail; none of enum exit_status */

#define OWNER_DIED_VARIABLE "SHMVIEW_OWNER_DIED" /* the pid of the dead owner, for the command */

/* The action if the last owner died inside; by index of owner_died_names. */
enum died_mode {
    DIED_TELL,
    DIED_REPAIR,
    DIED_FAIL
};
const char *const owner_died_names[] = {"tell", "repair", "fail", NULL};

/* The command line. Either shell_command or argv is the command. */
struct request {
    const char *name;
    bool shared, nonblock;
    int64_t deadline; /* SHMVIEW_FOREVER without --timeout */
    int64_t conflict_status, died_status;
    size_t died; /* enum died_mode */
    const char *shell_command;
    char **argv;
    int argc;
};

/* --- The command line ---------------------------------------------------- */

/* Reads the command line in two passes, because options may come before and after NAME. The command
 * begins after "--", or with the first word after NAME that is not an option. Returns GO_ON or the
 * exit status. */
static int read_request(struct context *c, int argc, char **argv, struct request *q)
{
    const struct verb_option options[] = {
        OPT_FLAG("shared", 's', &q->shared),
        OPT_OFF("exclusive", 'x', &q->shared),
        OPT_FLAG("nonblock", 'n', &q->nonblock),
        OPT_DEADLINE("timeout", 'w', &q->deadline),
        OPT_DEADLINE("wait", 'w', &q->deadline), /* flock(1) has both names */
        OPT_NUMBER("conflict-exit-code", 'E', &q->conflict_status, 0, 255),
        OPT_TEXT("command", 'c', &q->shell_command),
        OPT_WORD("owner-died", '\0', &q->died, owner_died_names),
        OPT_NUMBER("owner-died-exit-code", '\0', &q->died_status, 0, 255),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 0, argc))
        return c->status;
    if (optind == argc)
        return fail_usage(c, "the name of a segment is missing");
    bool ended = strcmp(argv[optind - 1], "--") == 0;
    q->name = argv[optind++];
    if (!ended && !options_read(c, argc, argv, options, 0, argc))
        return c->status;
    q->argv = argv + optind;
    q->argc = argc - optind;
    if (q->shell_command && q->argc)
        return fail_usage(c, "--command takes the place of '%s': give one of them", q->argv[0]);
    if (!q->shell_command && !q->argc)
        return fail_usage(c, "a command to run is missing after '%s'", q->name);
    return GO_ON;
}

/* --- Taking the lock ----------------------------------------------------- */

/* Takes the lock. Deadline 0 tries once. Returns what the library returns. */
static int take(struct shmview_segment *segment, const struct request *q)
{
    int64_t deadline = q->nonblock ? 0 : q->deadline;
    return q->shared ? shmview_lock_shared_until(segment, deadline)
                     : shmview_lock_until(segment, deadline);
}

#define N_PARTIES 64 /* room for the parties that the query returns */

/* Prints a holder of the lock, if one is known. The lock may have been released since the wait
 * ended, and then the query names nobody. Returns the exit status for a conflict. */
static int fail_conflict(struct context *c, struct shmview_segment *segment,
                         const struct request *q)
{
    struct shmview_lock_status status = {.n_parties = 0};
    struct shmview_lock_party parties[N_PARTIES];
    char since[HUMAN_BYTES] = "";
    if (shmview_lock_query(segment, &status, parties, N_PARTIES))
        status.n_parties = 0;
    for (size_t i = 0; i < status.n_parties && i < N_PARTIES; i++) {
        struct shmview_lock_party *p = &parties[i];
        if (p->role != SHMVIEW_HOLDS && p->role != SHMVIEW_HOLDS_SHARED)
            continue;
        bool is_known = p->since_ns > 0;
        if (is_known)
            human_duration(since, (shmview_deadline(0) - p->since_ns) / 1000);
        warn_text(c,
                  "'%s' is held by process %" PRIu32 " (%s)%s%s: "
                  "wait longer with --timeout, or look at 'shmviewctl who %s'",
                  q->name, p->pid, p->command, is_known ? " for " : "", since, q->name);
        return (int)q->conflict_status;
    }
    warn_text(c, "'%s' is held by another process: wait longer with --timeout", q->name);
    return (int)q->conflict_status;
}

/* Reports the owner that died inside: on standard error, and to the command by OWNER_DIED_VARIABLE.
 * The pid is 0 if it is not known, or if an owner left the bytes unrepaired. */
static void tell_death(struct context *c, struct shmview_segment *segment, const char *name)
{
    struct shmview_death death;
    char ago[HUMAN_BYTES], pid[16] = "0";
    if (shmview_owner_died(segment, &death))
        death = (struct shmview_death){.pid = 0};
    snprintf(pid, sizeof pid, "%" PRIu32, death.pid);
    setenv(OWNER_DIED_VARIABLE, pid, 1);
    if (death.pid == 0) {
        warn_text(c,
                  "the last holder of '%s' died inside, or left it unrepaired: "
                  "its bytes may be half written",
                  name);
        return;
    }
    human_duration(ago, (shmview_deadline(0) - death.when_ns) / 1000);
    warn_text(c,
              "the last holder of '%s', process %s%s%s%s, died inside%s%s%s: "
              "its bytes may be half written",
              name, pid, death.command[0] ? " (" : "", death.command, death.command[0] ? ")" : "",
              death.when_ns ? ", " : "", death.when_ns ? ago : "", death.when_ns ? " ago" : "");
}

/* --- Running the command ------------------------------------------------- */

/* Gives the lock back, as not repaired if the bytes may be half written, so that the next owner
 * gets SHMVIEW_OWNER_DIED. A failure of this call means that the attachment ended while the command
 * ran, and others may have been inside. Returns the exit status: that of the command, or
 * EXIT_FAILED if the lock was lost and the command succeeded. */
static int give_back(struct context *c, struct shmview_segment *segment, const struct request *q,
                     bool was_died, int status, int signal_number)
{
    bool is_in_order = !was_died || (q->died == DIED_REPAIR && status == 0);
    if (signal_number && !q->shared)
        is_in_order = false; /* a reader leaves nothing half written */
    int r = is_in_order ? shmview_unlock(segment) : shmview_unlock_not_repaired(segment);
    if (r)
        warn_text(c, "the lock was lost while the command ran: %s", shmview_error_text());
    return r && status == 0 ? EXIT_FAILED : status;
}

/* Runs the command under the lock, which it gives back in any case. Returns the exit status. */
static int run_locked(struct context *c, struct shmview_segment *segment, const struct request *q,
                      bool was_died)
{
    const char *shell = getenv("SHELL");
    char *shell_argv[] = {(char *)(shell && shell[0] ? shell : "/bin/sh"), (char *)"-c",
                          (char *)q->shell_command, NULL};
    /* if this process is killed, the lock is free, and the command must not continue without it */
    struct command command = {.argv = q->shell_command ? shell_argv : q->argv,
                              .death_signal = SIGKILL};
    int number = 0;
    unsetenv(OWNER_DIED_VARIABLE); /* it may come from a lock around this program */
    if (was_died)
        tell_death(c, segment, q->name);
    if (was_died && q->died == DIED_FAIL) {
        warn_text(c, "nothing was run: repair it with --owner-died=repair -- COMMAND");
        shmview_unlock_not_repaired(segment);
        return (int)q->died_status;
    }
    int status = command_run(c, &command, &number);
    return give_back(c, segment, q, was_died, status, number);
}

/* Attaches for reading, which suffices for the lock in either mode: the command writes by itself.
 */
static int run_lock(struct context *c, int argc, char **argv)
{
    struct request q = {.conflict_status = STATUS_CONFLICT,
                        .died_status = STATUS_DIED,
                        .deadline = SHMVIEW_FOREVER};
    struct shmview_segment *segment;
    int status = read_request(c, argc, argv, &q);
    if (status != GO_ON)
        return status;
    status = attach(c, q.name, SHMVIEW_READ, &segment);
    if (status)
        return status;
    int r = take(segment, &q);
    if (r == -SHMVIEW_ERR_TIMED_OUT)
        status = fail_conflict(c, segment, &q);
    else if (r < 0)
        status = fail_call(c, r);
    else
        status = run_locked(c, segment, &q, r == SHMVIEW_OWNER_DIED);
    shmview_detach(segment);
    return status;
}

const struct verb verb_lock = {
    .name = "lock",
    .arguments = "NAME [--] COMMAND [ARGUMENT]...",
    .summary = "Run a command while holding the lock of a segment",
    .help = "  -x, --exclusive           exclude all others (default)\n"
            "  -s, --shared              let others hold the lock shared\n"
            "  -n, --nonblock            do not wait for other holders\n"
            "  -w, --timeout TIME        wait at most that long: 10, 0.5, 500ms, 2min\n"
            "  -E, --conflict-exit-code N  status if the lock was not free in time (1)\n"
            "  -c, --command TEXT        have $SHELL run TEXT instead\n"
            "      --owner-died WHAT     if the last holder died inside:\n"
            "                            tell     run the command, report it again (default)\n"
            "                            repair   run it; its success ends the report\n"
            "                            fail     run nothing\n"
            "      --owner-died-exit-code N  status of fail (5)\n"
            "\nThe status is the command's, or 128+N if signal N ended it. The next holder then\n"
            "learns of that death. After a death SHMVIEW_OWNER_DIED is the pid, or 0.\n"
            "Example: shmviewctl lock camera -w 5 -- ./calibrate --fast\n\n",
    .run = run_lock,
    .stops_at_argument = true,
};
