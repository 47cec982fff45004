/* SPDX-License-Identifier: Apache-2.0 */
/* Checks how systemd affects the daemon: logind may remove a user's objects, and a unit may have
 * failed. Reports facts only, without an error, if systemd does not run. */
#include <glob.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#define FIRST_USER 1000 /* RemoveIPC= applies only to uids from this one on */

static bool is_there(const struct doctor *d, const char *path)
{
    char where[DOCTOR_PATH];
    return access(doctor_path(d, path, where), F_OK) == 0;
}

/* --- RemoveIPC= ---------------------------------------------------------- */

/* Returns the last RemoveIPC= of a file, or `was` if the file has none. */
static bool read_setting(const char *path, bool was)
{
    char line[256];
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *at = line + strspn(line, " \t");
        if (strncmp(at, "RemoveIPC=", strlen("RemoveIPC=")) != 0)
            continue;
        at += strlen("RemoveIPC=");
        at[strcspn(at, " \t\r\n")] = '\0';
        was = strcasecmp(at, "no") && strcasecmp(at, "false") && strcasecmp(at, "off") &&
              strcmp(at, "0");
    }
    if (f)
        fclose(f);
    return was;
}

/* Returns the setting of the last file that has one. logind orders its drop-ins by name across the
 * directories, so this may be wrong if drop-ins of two directories contradict each other. */
static bool removes_ipc(const struct doctor *d)
{
    static const char *const files[] = {
        "/etc/systemd/logind.conf", "/usr/lib/systemd/logind.conf.d/*.conf",
        "/run/systemd/logind.conf.d/*.conf", "/etc/systemd/logind.conf.d/*.conf"};
    bool removes = true; /* logind's default */
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char pattern[DOCTOR_PATH];
        glob_t found;
        if (glob(doctor_path(d, files[i], pattern), 0, NULL, &found))
            continue;
        for (size_t j = 0; j < found.gl_pathc; j++)
            removes = read_setting(found.gl_pathv[j], removes);
        globfree(&found);
    }
    return removes;
}

/* RemoveIPC= ends segments while no fault shows, so a user who logs in by ssh loses them at logout.
 * Lingering keeps the user's manager, and logind then leaves the objects alone. */
static void check_remove_ipc(struct doctor *d)
{
    char linger[DOCTOR_PATH];
    snprintf(linger, sizeof linger, "/var/lib/systemd/linger/%s", d->user);
    bool is_safe = d->uid < FIRST_USER || is_there(d, linger) || !removes_ipc(d);
    doctor_find(d, is_safe ? DOCTOR_OK : DOCTOR_WARN, "remove-ipc",
                "when this user's last session ends, logind removes the user's objects in "
                "/dev/shm: all segments of the user's own daemon",
                "loginctl enable-linger, or RemoveIPC=no in logind.conf(5)", "%s",
                d->uid < FIRST_USER ? "is not for system users"
                : is_safe           ? "off, or this user lingers"
                                    : "RemoveIPC= is on, and this user does not linger");
}

/* --- Units --------------------------------------------------------------- */

/* The properties of a unit, as systemctl show prints them. */
struct unit {
    char load[32], active[32], sub[32], enabled[32];
};

/* Copies the value if line is NAME=VALUE with this name. */
static void take(const char *line, const char *name, char value[32])
{
    size_t n = strlen(name);
    if (strncmp(line, name, n) == 0 && line[n] == '=')
        snprintf(value, 32, "%.*s", (int)strcspn(line + n + 1, "\n"), line + n + 1);
}

/* Runs systemctl, and blocks until it ends. Returns false if the service manager does not reply, as
 * without a user session. */
static bool ask_unit(const struct doctor *d, const char *name, struct unit *ret)
{
    char command[DOCTOR_PATH], line[256];
    *ret = (struct unit){.load = ""};
    snprintf(command, sizeof command,
             "%s show -p LoadState -p ActiveState -p SubState -p UnitFileState %s 2>/dev/null",
             d->systemctl, name);
    FILE *f = popen(command, "re");
    while (f && fgets(line, sizeof line, f)) {
        take(line, "LoadState", ret->load);
        take(line, "ActiveState", ret->active);
        take(line, "SubState", ret->sub);
        take(line, "UnitFileState", ret->enabled);
    }
    return f && pclose(f) == 0 && ret->load[0];
}

/* Reports the state of one unit. Only a failed unit is a fault: shmview also works without systemd.
 */
static void check_unit(struct doctor *d, const char *check, const char *name)
{
    struct unit u;
    if (!ask_unit(d, name, &u)) {
        doctor_find(d, DOCTOR_OK, check, "the service manager does not reply to this user", NULL,
                    "nothing is known");
        return;
    }
    if (strcmp(u.load, "loaded") != 0) {
        doctor_find(d, DOCTOR_OK, check, "the daemon is not installed as a service", NULL,
                    "%s is %s", name, u.load);
        return;
    }
    bool has_failed = strcmp(u.active, "failed") == 0;
    doctor_find(d, has_failed ? DOCTOR_FAIL : DOCTOR_OK, check,
                has_failed ? "the unit failed and does not run"
                           : "the service starts with its socket's first client",
                "journalctl -u shmviewd (--user-unit) shows why; then systemctl reset-failed "
                "and start",
                "%s is %s (%s), %s", name, u.active, u.sub,
                u.enabled[0] ? u.enabled : "of unknown state");
}

void doctor_check_systemd(struct doctor *d)
{
    if (!is_there(d, "/run/systemd/system")) {
        doctor_find(d, DOCTOR_OK, "systemd", "only programs and users start the daemon", NULL,
                    "does not run here");
        return;
    }
    check_remove_ipc(d);
    check_unit(d, "unit-socket", "shmviewd.socket");
    check_unit(d, "unit-service", "shmviewd.service");
}
