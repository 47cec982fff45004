/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the limits of this process, of the daemon's process, and of this user's quotas. The limits
 * of this process stand for those of the user's other programs, which usually inherit the same. */
#include <inttypes.h>
#include <string.h>

#include "cli/doctor/doctor.h"

#define FEW_DESCRIPTORS 64
#define FEW_MAPPINGS    65530 /* the kernel's default */
#define MAPPINGS        3     /* for an attachment with a lock: data, control, liveness */

static const char *limit_text(char *buffer, rlim_t limit, bool is_bytes)
{
    if (limit == RLIM_INFINITY)
        snprintf(buffer, HUMAN_BYTES, "unlimited");
    else if (is_bytes)
        human_bytes(buffer, (int64_t)(limit & INT64_MAX));
    else
        snprintf(buffer, HUMAN_BYTES, "%" PRIu64, (uint64_t)limit);
    return buffer;
}

/* Checks the limits that this process inherited. None of them fails: each only bounds how many
 * segments a program can attach. */
static void check_own(struct doctor *d)
{
    char text[HUMAN_BYTES];
    struct rlimit limit;
    if (d->get_limit(RLIMIT_NOFILE, &limit) == 0)
        doctor_find(d, limit.rlim_cur < FEW_DESCRIPTORS ? DOCTOR_WARN : DOCTOR_OK, "nofile",
                    "a connection takes one descriptor, an attachment none",
                    "ulimit -n 1024, or LimitNOFILE= of the unit", "%s descriptors",
                    limit_text(text, limit.rlim_cur, false));
    if (d->get_limit(RLIMIT_AS, &limit) == 0)
        doctor_find(d, limit.rlim_cur == RLIM_INFINITY ? DOCTOR_OK : DOCTOR_WARN, "address-space",
                    "every segment that is attached counts in full",
                    "ulimit -v unlimited, or LimitAS= of the unit", "%s",
                    limit_text(text, limit.rlim_cur, true));
    if (d->get_limit(RLIMIT_MEMLOCK, &limit) == 0)
        doctor_find(d, DOCTOR_OK, "memlock",
                    "nothing here locks memory; pinning segments for a device does, and mlock(2)",
                    NULL, "%s", limit_text(text, limit.rlim_cur, true));
    long long maps = doctor_read_number(d, "/proc/sys/vm/max_map_count");
    if (maps >= 0)
        doctor_find(d, maps < FEW_MAPPINGS ? DOCTOR_WARN : DOCTOR_OK, "mappings",
                    "each attachment takes up to three mappings of its process",
                    "sysctl vm.max_map_count=262144",
                    "a process may have some %lld segments attached", maps / MAPPINGS);
}

/* Returns the soft value of a line of /proc/PID/limits, or -1 if it is unlimited or missing. */
static long long soft_limit(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    if (!at)
        return -1;
    at += strlen(name);
    at += strspn(at, " ");
    return strncmp(at, "unlimited", strlen("unlimited")) == 0 ? -1 : strtoll(at, NULL, 10);
}

/* Reads /proc/PID/limits of the daemon. Checks the name of the process first: the daemon may run in
 * another pid namespace, where its number means another process. Returns whether it was read. */
static bool read_daemons_limits(const struct doctor *d, char *text, size_t bytes)
{
    char path[64], name[32];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/comm", d->stats->pid);
    if (!doctor_read(d, path, true, name, sizeof name) || strcmp(name, "shmviewd") != 0)
        return false;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/limits", d->stats->pid);
    return doctor_read(d, path, false, text, bytes);
}

static void check_daemon(struct doctor *d)
{
    char text[4096], size[HUMAN_BYTES];
    const struct shmview_stats *s = d->stats;
    if (s->connections >= 0 && s->max_connections > 0) {
        double used = (double)s->connections, limit = (double)s->max_connections;
        doctor_find(d, doctor_level_of(used, limit), "connections",
                    "the daemon has descriptors for so many clients; it keeps the last eighth for "
                    "users with few connections",
                    "LimitNOFILE= of the service, or close connections that nobody needs",
                    "%" PRId64 " of %" PRId64, s->connections, s->max_connections);
        doctor_measure(d, used, limit);
    }
    if (!read_daemons_limits(d, text, sizeof text))
        return;
    long long bytes = soft_limit(text, "Max file size");
    if (bytes >= 0)
        doctor_find(d, DOCTOR_WARN, "daemon-fsize", "no segment can be larger",
                    "LimitFSIZE=infinity of the service, ulimit -f unlimited where it is started",
                    "the daemon's files have at most %s", human_bytes(size, bytes));
    else
        doctor_find(d, DOCTOR_OK, "daemon-fsize", "segments may be as large as memory", NULL,
                    "unlimited");
}

/* Adds a finding for one quota, unless it is unlimited (limit < 0). */
static void check_quota(struct doctor *d, const char *check, const char *whose, int64_t used,
                        int64_t limit, const char *means)
{
    char used_text[HUMAN_BYTES], limit_of[HUMAN_BYTES];
    bool is_bytes = strstr(check, "bytes") != NULL;
    if (limit < 0)
        return;
    if (is_bytes) {
        human_bytes(used_text, used);
        human_bytes(limit_of, limit);
    } else {
        snprintf(used_text, sizeof used_text, "%" PRId64, used);
        snprintf(limit_of, sizeof limit_of, "%" PRId64, limit);
    }
    doctor_find(d, doctor_level_of((double)used, (double)limit), check, means,
                "remove or detach what is not needed, or raise quotas in shmviewd.json(5)",
                "%s: %s of %s", whose, used_text, limit_of);
    doctor_measure(d, (double)used, (double)limit);
}

/* Reports the quotas of this user and those of all users together. The daemon reports only limits
 * that exist and that this user may know. */
static void check_quotas(struct doctor *d)
{
    static const struct {
        const char *what, *check;
    } names[] = {{"bytes", "quota-bytes"},
                 {"segments", "quota-segments"},
                 {"attachments", "quota-attachments"},
                 {"connections", "quota-connections"},
                 {"layout_bytes", "quota-layout-bytes"}};
    size_t before = d->n;
    for (size_t i = 0; i < d->stats->n_quotas; i++) {
        const struct shmview_quota_stats *q = d->stats->quotas[i];
        for (size_t j = 0; j < ARRAY_LEN(names); j++) {
            if (strcmp(q->what, names[j].what) != 0)
                continue;
            check_quota(d, names[j].check, "this user", q->used, q->limit,
                        "the daemon refuses this user more");
            check_quota(d, names[j].check, "all users", q->total_used, q->total_limit,
                        "the daemon refuses everybody more");
        }
    }
    if (d->n == before)
        doctor_find(d, DOCTOR_OK, "quotas",
                    "the daemon limits this user only by the memory that is left", NULL,
                    "none are reported to this user");
}

void doctor_check_limits(struct doctor *d)
{
    check_own(d);
    if (!d->stats)
        return;
    check_daemon(d);
    check_quotas(d);
}
