/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the version and the features of the kernel. A seccomp filter may forbid a system call that
 * the kernel has, so features are probed and not derived from the version. */
#include <errno.h>
#include <string.h>

#include "cli/doctor/doctor.h"

#define NEEDS_MAJOR 5
#define NEEDS_MINOR 9

static void check_release(struct doctor *d)
{
    char text[128];
    int major, minor;
    if (!doctor_read(d, "/proc/sys/kernel/osrelease", true, text, sizeof text) ||
        sscanf(text, "%d.%d", &major, &minor) != 2)
        return;
    bool is_old = major < NEEDS_MAJOR || (major == NEEDS_MAJOR && minor < NEEDS_MINOR);
    doctor_find(d, is_old ? DOCTOR_FAIL : DOCTOR_OK, "kernel", "shmviewd needs Linux 5.9 or later",
                "install a newer kernel", "Linux %s", text);
}

/* Probes one feature. `level` is the level of the finding if the feature is missing. */
static void check_probe(struct doctor *d, enum doctor_probe probe, enum doctor_level level,
                        const char *check, const char *means, const char *advice)
{
    int r = d->probe(probe);
    bool is_forbidden = r == EPERM || r == EACCES;
    doctor_find(d, r ? level : DOCTOR_OK, check, means, advice, "%s",
                r == 0         ? "there"
                : is_forbidden ? "forbidden, by seccomp most likely"
                               : "missing");
}

static void check_features(struct doctor *d)
{
    check_probe(d, PROBE_FUTEX_WAITV, DOCTOR_WARN, "futex_waitv",
                "a waiter for a lock notices the holder's death at once; without it, within 10 ms",
                "Linux 5.16 or later, and a seccomp profile that allows it (newer runc, "
                "--security-opt seccomp=)");
    check_probe(d, PROBE_PIDFD_OPEN, DOCTOR_FAIL, "pidfd_open",
                "the daemon watches its clients by pidfds",
                "a seccomp profile that allows pidfd_open");
    /* OK even without it: the daemon then opens a pidfd by number, and checks afterwards that the
     * client is still connected, because otherwise the number may mean another process */
    check_probe(
        d, PROBE_PEER_PIDFD, DOCTOR_OK, "so_peerpidfd",
        "identifies a client without a race (Linux 6.5); without it, the daemon checks again",
        NULL);
}

/* Reports settings that change speed or safety, but that shmview does not need. */
static void check_settings(struct doctor *d)
{
    long long value = doctor_read_number(d, "/proc/sys/fs/protected_regular");
    if (value >= 0)
        doctor_find(d, DOCTOR_OK, "protected-regular",
                    "from 1 on, files that other users put into /dev/shm cannot mislead a program; "
                    "they never mislead shmviewd",
                    NULL, "fs.protected_regular is %lld", value);
}

void doctor_check_kernel(struct doctor *d)
{
    check_release(d);
    check_features(d);
    check_settings(d);
}
