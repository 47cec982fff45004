/* SPDX-License-Identifier: Apache-2.0 */
/* Looking for what is wrong, or would be next: each check adds findings. Where a check looks is in
 * struct doctor, so that tests can make a sick machine. */
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

struct doctor_finding {
    enum doctor_level level;
    const char *check; /* "shm-size" */
    char found[240];
    const char *means, *advice; /* static */
    double used, limit;         /* of something that ends; limit 0: of nothing */
};

enum doctor_probe {
    PROBE_FUTEX_WAITV,
    PROBE_PIDFD_OPEN,
    PROBE_PEER_PIDFD
};

struct doctor {
    const char *root;                  /* before /proc, /dev/shm, /etc ...; "" */
    const char *systemctl;             /* the command, with its options */
    uid_t uid;                         /* whose machine it is looked at for */
    const char *user;                  /* his name */
    const struct shmview_stats *stats; /* NULL: no daemon */
    const char *socket;                /* of the daemon, or why there is none */
    int (*get_limit)(int resource, struct rlimit *ret);
    int (*get_space)(const char *path, struct statvfs *ret);
    int (*probe)(enum doctor_probe probe); /* 0 or errno */
    struct doctor_finding *list;
    size_t n;
    bool is_short; /* memory was, for a finding */
};

/* This machine, this user. root is "" but in tests. Owes doctor_deinit(). */
void doctor_init(struct doctor *doctor, const char *root);
void doctor_deinit(struct doctor *doctor);

/* All of them. */
void doctor_check_memory(struct doctor *doctor);
void doctor_check_limits(struct doctor *doctor);
void doctor_check_kernel(struct doctor *doctor);
void doctor_check_places(struct doctor *doctor);
void doctor_check_systemd(struct doctor *doctor);

/* The worst level. */
enum doctor_level doctor_worst(const struct doctor *doctor);
/* The finding that has used most of its limit, or NULL. */
const struct doctor_finding *doctor_closest(const struct doctor *doctor);

/* --- For checks ---------------------------------------------------------- */

__attribute__((format(printf, 6, 7))) void doctor_find(struct doctor *doctor,
                                                       enum doctor_level level, const char *check,
                                                       const char *means, const char *advice,
                                                       const char *found, ...);
/* The last finding is of something that ends. */
void doctor_measure(struct doctor *doctor, double used, double limit);
/* What a share that is used of something is worth. */
enum doctor_level doctor_level_of(double used, double limit);

#define DOCTOR_PATH 512

/* Where path is on the machine that is looked at; in buffer of DOCTOR_PATH; returned. */
const char *doctor_path(const struct doctor *doctor, const char *path, char *buffer);
/* Reads the beginning of a file, without what follows the first line's end if one_line. Returns
 * whether it could. */
bool doctor_read(const struct doctor *doctor, const char *path, bool one_line, char *buffer,
                 size_t bytes);
/* The number in a file, or -1: it is not there, or holds none. */
long long doctor_read_number(const struct doctor *doctor, const char *path);

#endif
