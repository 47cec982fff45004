/* SPDX-License-Identifier: Apache-2.0 */
/* What memory new segments can get. */
#include <string.h>
#include <sys/stat.h>

#include "cli/doctor/doctor.h"

#define SHM             "/dev/shm"
#define MIB             (1024.0 * 1024)
#define CONTAINER_BYTES (64 * MIB) /* what container managers give where nobody asks for more */
#define OBJECTS         3          /* of a segment with a lock: data, control, liveness */
#define FEW_SEGMENTS    1000

static const char *human(char *buffer, double bytes)
{
    return human_bytes(buffer, (int64_t)bytes);
}

static void check_size(struct doctor *d, const struct statvfs *fs)
{
    char free_text[HUMAN_BYTES], size_text[HUMAN_BYTES];
    double size = (double)fs->f_blocks * (double)fs->f_frsize;
    double left = (double)fs->f_bavail * (double)fs->f_frsize;
    if (fs->f_blocks == 0) {
        doctor_find(d, DOCTOR_OK, "shm-size", "memory alone ends what segments can get", NULL,
                    SHM " has no limit of its own");
        return;
    }
    enum doctor_level level = doctor_level_of(size - left, size);
    const char *means = "all segments together fit into " SHM ", with what others keep there";
    const char *advice = "remove what is not needed ('shmviewctl list', 'ls " SHM "'), or enlarge "
                         "it: mount -o remount,size=8G " SHM;
    if (size == CONTAINER_BYTES) {
        level = level == DOCTOR_OK ? DOCTOR_WARN : level;
        means = "64 MiB is what containers get where nobody asks for more";
        advice = "docker run --shm-size=2g (podman the same, shm_size: in a compose file); "
                 "in Kubernetes an emptyDir with medium: Memory at " SHM;
    }
    doctor_find(d, level, "shm-size", means, advice, "%s free of %s", human(free_text, left),
                human(size_text, size));
    doctor_measure(d, size - left, size);
}

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

/* The daemon's own word: it may see another /dev/shm, and looks at memory too. */
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
                "memory and swap that are left, less a reserve, or " SHM ": what is less",
                "end what takes memory, or add swap", "the daemon can allocate %s%s",
                human(free_text, (double)s->memory_free),
                is_less ? ": memory ends before " SHM : "");
    if (is_less || !fs)
        doctor_measure(d, used, (double)s->memory_limit);
}

/* The least limit on the way up from our own group, and what is used of it. */
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
        long long limit = doctor_read_number(d, path); /* "max" is none */
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

static double meminfo(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtod(at + strlen(name), NULL) * 1024 : 0;
}

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
                    SHM " cannot be looked at");
    }
    check_daemons_view(d, is_there ? &fs : NULL);
    check_group(d);
    check_overcommit(d);
}
