/* SPDX-License-Identifier: Apache-2.0 */
/* A machine for the checks of `shmviewctl doctor`: files below a directory, and limits, space and
 * probes that a test sets. Each test includes this once. */
#ifndef UNIT_MACHINE_H
#define UNIT_MACHINE_H

#include <ftw.h>

#include "cli/doctor/doctor.h"
#include "unit/unit.h"

static char root[64];
static struct doctor d;
static struct statvfs space;
static struct rlimit limits[RLIM_NLIMITS];
static int probes[4];

static int get_limit(int resource, struct rlimit *ret)
{
    *ret = limits[resource];
    return 0;
}

static int get_space(const char *path, struct statvfs *ret)
{
    const char *below = path + strlen(root);
    ck_assert(strcmp(below, "/dev/shm") == 0 || strcmp(below, "/scratch") == 0);
    *ret = space;
    return space.f_bsize ? 0 : -1;
}

static int probe(enum doctor_probe what)
{
    return probes[what];
}

/* Writes a file of the machine, with its directories. */
static void put(const char *path, const char *text)
{
    char where[DOCTOR_PATH];
    doctor_path(&d, path, where);
    for (char *at = where + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        ck_assert(mkdir(where, 0755) == 0 || errno == EEXIST);
    }
    FILE *f = fopen(where, "we");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void begin(void)
{
    snprintf(root, sizeof root, "/tmp/shmview-doctor-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    doctor_init(&d, root);
    d.get_limit = get_limit;
    d.get_space = get_space;
    d.probe = probe;
    d.uid = 1000;
    d.user = "alice";
    d.socket = "nowhere";
    space = (struct statvfs){.f_bsize = 4096,
                             .f_frsize = 4096,
                             .f_blocks = 1 << 20,
                             .f_bavail = 1 << 19,
                             .f_files = 1 << 20,
                             .f_favail = 1 << 19};
    for (int i = 0; i < RLIM_NLIMITS; i++)
        limits[i] = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    memset(probes, 0, sizeof probes);
    setenv("XDG_RUNTIME_DIR", "/run/user/1000", 1);
    setenv("TMPDIR", "/scratch", 1);
    unsetenv("SHMVIEW_SOCKET");
    unsetenv("LD_LIBRARY_PATH");
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static void end(void)
{
    doctor_deinit(&d);
    ck_assert_int_eq(nftw(root, remove_one, 10, FTW_DEPTH | FTW_PHYS), 0);
}

/* Asserts that the check has one finding, of this level and with text in what was found. Returns
 * it. */
static const struct doctor_finding *finds(const char *check, enum doctor_level level,
                                          const char *text)
{
    const struct doctor_finding *found = NULL;
    for (size_t i = 0; i < d.n; i++)
        if (strcmp(d.list[i].check, check) == 0 && strstr(d.list[i].found, text))
            found = &d.list[i];
    ck_assert_msg(found != NULL, "%s finds no '%s'", check, text);
    ck_assert_msg(found->level == level, "%s: '%s' is of level %d", check, found->found,
                  found->level);
    ck_assert(found->means[0] && (level == DOCTOR_OK || found->advice));
    return found;
}

static void finds_nothing(const char *check)
{
    for (size_t i = 0; i < d.n; i++)
        ck_assert_str_ne(d.list[i].check, check);
}

/* Runs the check again, without earlier findings. */
static void look(void (*check)(struct doctor *))
{
    doctor_deinit(&d);
    d.list = NULL;
    d.n = 0;
    check(&d);
}

#endif
