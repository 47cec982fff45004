/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of shmviewctl doctor. Each check adds findings about the machine, the limits, or the
 * daemon. It changes nothing, and continues without files that it may not read.
 *
 * struct doctor has all the places where a check looks. A test replaces them and so presents a
 * machine with faults, which no test machine has. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <shmview/stats.h>

#include "cli/shell/cli.h"

enum doctor_level {
    DOCTOR_OK,
    DOCTOR_WARN,
    DOCTOR_FAIL
};

/* One line of the report. */
struct doctor_finding {
    enum doctor_level level;
    const char *check;          /* name of the check: "shm-size" */
    char found[240];            /* the fact: "12M free of 64M" */
    const char *means, *advice; /* the consequence, and what to do; static; may be NULL */
    double used, limit;         /* of a resource; limit 0: the finding is about no resource */
};

/* System calls that an old kernel lacks, or that a seccomp filter forbids. */
enum doctor_probe {
    PROBE_FUTEX_WAITV,
    PROBE_PIDFD_OPEN,
    PROBE_PEER_PIDFD,
    PROBE_VM_READ
};

/* The places where the checks look, and the findings. The verb owns it; the strings are borrowed.
 */
struct doctor {
    const char *root;                  /* prefix of /proc, /dev/shm, /etc ...; "" except in tests */
    const char *systemctl;             /* the command, with its options */
    uid_t uid;                         /* the user for whom the checks are made */
    const char *user;                  /* name of that user */
    const struct shmview_stats *stats; /* NULL: no daemon */
    const char *socket; /* path of the daemon's socket, or the reason why no daemon was found */
    int (*get_limit)(int resource, struct rlimit *ret);
    int (*get_space)(const char *path, struct statvfs *ret);
    int (*probe)(enum doctor_probe probe); /* returns 0 or errno */
    struct doctor_finding *list;
    size_t n;
    bool is_short; /* memory was short, so a finding is missing */
};

/* Sets the places of this machine and this user. The caller then sets stats and socket, and owes
 * doctor_deinit(). */
void doctor_init(struct doctor *doctor, const char *root);
void doctor_deinit(struct doctor *doctor);

/* Run the checks of one file each, and add their findings. */
void doctor_check_memory(struct doctor *doctor);
void doctor_check_limits(struct doctor *doctor);
void doctor_check_kernel(struct doctor *doctor);
void doctor_check_places(struct doctor *doctor);
void doctor_check_systemd(struct doctor *doctor);
void doctor_check_mpi(struct doctor *doctor);
void doctor_check_huge(struct doctor *doctor);

/* Returns the worst level of all findings. */
enum doctor_level doctor_worst(const struct doctor *doctor);
/* Returns the finding that has used the largest share of its limit, or NULL. This resource will run
 * out first. */
const struct doctor_finding *doctor_closest(const struct doctor *doctor);

/* --- For checks ---------------------------------------------------------- */

/* Adds a finding; `found` is a format. Sets is_short if memory is short. */
__attribute__((format(printf, 6, 7))) void doctor_find(struct doctor *doctor,
                                                       enum doctor_level level, const char *check,
                                                       const char *means, const char *advice,
                                                       const char *found, ...);
/* Marks the last finding as one about a limited resource. */
void doctor_measure(struct doctor *doctor, double used, double limit);
/* Returns the level for a used share: a warning from 80 % on, a failure from 100 % on. */
enum doctor_level doctor_level_of(double used, double limit);

#define DOCTOR_PATH 512

/* Writes root and path into buffer, of DOCTOR_PATH. Returns buffer. */
const char *doctor_path(const struct doctor *doctor, const char *path, char *buffer);
/* Reads at most bytes - 1 bytes from the beginning of a file; only the first line if one_line.
 * Returns whether the file could be read. */
bool doctor_read(const struct doctor *doctor, const char *path, bool one_line, char *buffer,
                 size_t bytes);
/* Returns the number at the beginning of a file, or -1 if there is no file or no number. */
long long doctor_read_number(const struct doctor *doctor, const char *path);

#endif
