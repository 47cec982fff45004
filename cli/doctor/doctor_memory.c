/* SPDX-License-Identifier: Apache-2.0 */
/* Checks how much memory new segments can get. Four limits apply at once: the size of /dev/shm, its
 * inodes, the memory of the machine, and that of the control groups. The smallest one decides. */
#include <string.h>
#include <sys/stat.h>

#include "cli/doctor/doctor.h"

#define SHM             "/dev/shm"
#define MIB             (1024.0 * 1024)
#define CONTAINER_BYTES (64 * MIB) /* /dev/shm of a container, unless its user requests more */
#define OBJECTS         3          /* for a segment with a lock: data, control, liveness */
#define FEW_SEGMENTS    1000

static const char *human(char *buffer, double bytes)
{
    return human_bytes(buffer, (int64_t)bytes);
}

/* Reports the size of /dev/shm. Exactly 64 MiB is the default of container managers, for which the
 * remedy is an option of the container and not a mount. */
static void check_size(struct doctor *d, const struct statvfs *fs)
{
    char free_text[HUMAN_BYTES], size_text[HUMAN_BYTES];
    double size = (double)fs->f_blocks * (double)fs->f_frsize;
    double left = (double)fs->f_bavail * (double)fs->f_frsize;
    if (fs->f_blocks == 0) {
        doctor_find(d, DOCTOR_OK, "shm-size", "only memory limits the segments", NULL,
                    SHM " has no limit of its own");
        return;
    }
    enum doctor_level level = doctor_level_of(size - left, size);
    const char *means = "all segments, and the files of other programs, must fit into " SHM;
    const char *advice = "remove what is not needed ('shmviewctl list', 'ls " SHM "'), or enlarge "
                         "it: mount -o remount,size=8G " SHM;
    if (size == CONTAINER_BYTES) {
        level = level == DOCTOR_OK ? DOCTOR_WARN : level;
        means = "containers get 64 MiB unless their user requests more";
        advice = "docker run --shm-size=2g (podman the same, shm_size: in a compose file); "
                 "in Kubernetes an emptyDir with medium: Memory at " SHM;
    }
    doctor_find(d, level, "shm-size", means, advice, "%s free of %s", human(free_text, left),
                human(size_text, size));
    doctor_measure(d, size - left, size);
}

/* Many small segments use up the inodes of /dev/shm before its bytes. */
static void check_inodes(struct doctor *d, const struct statvfs *fs)
{
    unsigned long long left = fs->f_favail / OBJECTS;
    if (fs->f_files == 0)
        return; /* no limit */
    doctor_find(d, left < FEW_SEGMENTS ? DOCTOR_WARN : DOCTOR_OK, "shm-inodes",
                "each segment takes up to three inodes of " SHM,
                "mount -o remount,nr_inodes=1M " SHM, "room for %llu segments more", left);
    doctor_measure(d, (double)(fs->f_files - fs->f_favail), (double)fs->f_files);
}

/* Without the sticky bit any user could rename or remove the directory of a daemon. */
static void check_mode(struct doctor *d)
{
    char path[DOCTOR_PATH];
    struct stat st;
    if (stat(doctor_path(d, SHM, path), &st))
        return;
    bool is_good = (st.st_mode & 07777) == 01777;
    doctor_find(d, is_good ? DOCTOR_OK : DOCTOR_WARN, "shm-mode",
                "every user may create objects, nobody may remove those of others",
                "chmod 1777 " SHM, "mode of " SHM " is %04o", (unsigned)st.st_mode & 07777);
}

/* Reports the daemon's own figure. The daemon may have another /dev/shm than this process, as in a
 * container, and it counts memory and control groups too. The finding counts as limited only if
 * memory ends before /dev/shm; otherwise check_size() has reported that limit. */
static void check_daemons_view(struct doctor *d, const struct statvfs *fs)
{
    char free_text[HUMAN_BYTES];
    const struct shmview_stats *s = d->stats;
    if (!s || s->memory_limit <= 0)
        return;
    double shm = fs ? (double)fs->f_bavail * (double)fs->f_frsize : 0;
    bool is_less = fs && fs->f_blocks && (double)s->memory_free < shm * 0.95;
    double used = (double)(s->memory_limit - s->memory_free);
    doctor_find(d, (double)s->memory_free < MIB ? DOCTOR_FAIL : DOCTOR_OK, "memory-free",
                "the least of free memory and swap (less a reserve), control groups and " SHM,
                "end programs that use memory, or add swap", "the daemon can allocate %s%s",
                human(free_text, (double)s->memory_free),
                is_less ? ": memory ends before " SHM : "");
    if (is_less || !fs)
        doctor_measure(d, used, (double)s->memory_limit);
}

/* Finds the smallest memory limit of this process's control group and the groups above it (cgroup
 * v2), and its use. Returns whether any group has a limit. */
static bool find_group_limit(const struct doctor *d, double *ret_limit, double *ret_used)
{
    char text[1024], group[DOCTOR_PATH], path[DOCTOR_PATH + 64];
    bool found = false;
    if (!doctor_read(d, "/proc/self/cgroup", false, text, sizeof text))
        return false;
    char *at = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (!at)
        return false;
    snprintf(group, sizeof group, "%s", strchr(at, '/') ? strchr(at, '/') : "/");
    group[strcspn(group, "\n")] = '\0';
    for (;;) {
        const char *name = strcmp(group, "/") == 0 ? "" : group;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", name);
        long long limit = doctor_read_number(d, path); /* "max" is not a number: no limit */
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", name);
        long long used = doctor_read_number(d, path);
        if (limit >= 0 && (!found || (double)limit < *ret_limit)) {
            *ret_limit = (double)limit;
            *ret_used = used < 0 ? 0 : (double)used;
            found = true;
        }
        char *slash = strrchr(group, '/');
        if (!slash || !name[0])
            return found;
        *slash = '\0';
    }
}

/* A segment whose pages exceed the group's limit gets a process killed, so a high use is a warning
 * although segments can still be created. */
static void check_group(struct doctor *d)
{
    char limit_text[HUMAN_BYTES], used_text[HUMAN_BYTES];
    double limit = 0, used = 0;
    if (!find_group_limit(d, &limit, &used)) {
        doctor_find(d, DOCTOR_OK, "cgroup-memory", "no control group limits this program's memory",
                    NULL, "no limit");
        return;
    }
    doctor_find(d, doctor_level_of(used, limit), "cgroup-memory",
                "pages of a segment count for the group that touches them first; reaching the "
                "limit kills",
                "raise MemoryMax= of the unit, or --memory of the container", "%s used of %s",
                human(used_text, used), human(limit_text, limit));
    doctor_measure(d, used, limit);
}

/* Returns a value of /proc/meminfo in bytes, or 0. */
static double meminfo(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtod(at + strlen(name), NULL) * 1024 : 0;
}

/* In mode 2 the kernel counts memory when it is promised, and refuses at CommitLimit. Allocated
 * segments count in full there. */
static void check_overcommit(struct doctor *d)
{
    char text[4096], used_text[HUMAN_BYTES], limit_text[HUMAN_BYTES];
    long long mode = doctor_read_number(d, "/proc/sys/vm/overcommit_memory");
    if (mode < 0 || !doctor_read(d, "/proc/meminfo", false, text, sizeof text))
        return;
    if (mode != 2) {
        doctor_find(d, DOCTOR_OK, "overcommit", "promises of memory have no limit of their own",
                    NULL, "vm.overcommit_memory is %lld", mode);
        return;
    }
    double limit = meminfo(text, "CommitLimit:"), used = meminfo(text, "Committed_AS:");
    enum doctor_level level = doctor_level_of(used, limit);
    doctor_find(d, level == DOCTOR_OK ? DOCTOR_WARN : level, "overcommit",
                "segments count in full against the limit of promises, with all other memory",
                "raise vm.overcommit_ratio, or set vm.overcommit_memory to 0",
                "vm.overcommit_memory is 2: %s promised of %s", human(used_text, used),
                human(limit_text, limit));
    doctor_measure(d, used, limit);
}

void doctor_check_memory(struct doctor *d)
{
    char path[DOCTOR_PATH];
    struct statvfs fs;
    bool is_there = d->get_space(doctor_path(d, SHM, path), &fs) == 0;
    if (is_there) {
        check_size(d, &fs);
        check_inodes(d, &fs);
        check_mode(d);
    } else {
        doctor_find(d, DOCTOR_FAIL, "shm-size", "segments are objects in " SHM,
                    "mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs " SHM,
                    SHM " cannot be examined");
    }
    check_daemons_view(d, is_there ? &fs : NULL);
    check_group(d);
    check_overcommit(d);
}
