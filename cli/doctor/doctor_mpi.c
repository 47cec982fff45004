/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the installations of MPI, and what ranks on this machine need: /dev/shm, reads of each
 * other's memory, limits. Installations are recognised by the names of their libraries, because a
 * program of an MPI may start daemons or read the network. */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#define SHM             "/dev/shm"
#define MIB             (1024.0 * 1024)
#define CONTAINER_BYTES (64 * MIB) /* /dev/shm of a container, unless its user requests more */
#define RANK_BYTES      (4 * MIB)  /* btl_vader_segment_size of Open MPI 4 */
#define SESSION_BYTES   (16 * MIB) /* of a job's session directory; usually far less */
#define FEW_DESCRIPTORS 256
#define FIRST_OPEN_MPI  20 /* libmpi.so.20 is Open MPI 2; a lower number may be MPICH */
#define PTRACE_ADMIN    2  /* of kernel.yama.ptrace_scope: only CAP_SYS_PTRACE may read */
#define LIBRARY_BYTES   64
#define DIRECTORY_BYTES 200

enum implementation {
    OPEN_MPI,
    MPICH,
    N_IMPLEMENTATIONS
};

/* What the directories of libraries have. */
struct found {
    char file[N_IMPLEMENTATIONS][LIBRARY_BYTES]; /* "": not installed */
    char where[N_IMPLEMENTATIONS][DIRECTORY_BYTES];
    bool has_ours[N_IMPLEMENTATIONS]; /* libshmview-mpi for it */
};

/* --- Libraries ----------------------------------------------------------- */

/* Keeps the library with the longest name, which has its whole version: libmpi.so.40.30.4. */
static void keep(struct found *found, enum implementation which, const char *dir, const char *file)
{
    size_t n = strlen(file);
    if (n >= LIBRARY_BYTES || n <= strlen(found->file[which]))
        return;
    snprintf(found->file[which], LIBRARY_BYTES, "%s", file);
    snprintf(found->where[which], DIRECTORY_BYTES, "%s", dir);
}

/* The ABI of MPICH, which others have as well, is libmpi.so.12 where it is not libmpich.so. */
static void look_at_file(struct found *found, const char *dir, const char *file)
{
    static const char mpi[] = "libmpi.so.", mpich[] = "libmpich.so.", ours[] = "libshmview-mpi";
    if (strncmp(file, mpi, strlen(mpi)) == 0) {
        bool is_open = strtol(file + strlen(mpi), NULL, 10) >= FIRST_OPEN_MPI;
        keep(found, is_open ? OPEN_MPI : MPICH, dir, file);
    } else if (strncmp(file, mpich, strlen(mpich)) == 0) {
        keep(found, MPICH, dir, file);
    } else if (strncmp(file, ours, strlen(ours)) == 0 && strstr(file, ".so.")) {
        const char *which = file + strlen(ours); /* ".so.0" serves the only MPI there was */
        found->has_ours[OPEN_MPI] |= which[0] == '.' || strncmp(which, "-openmpi.", 9) == 0;
        found->has_ours[MPICH] |= which[0] == '.' || strncmp(which, "-mpich.", 7) == 0;
    }
}

static void look_in(const struct doctor *d, struct found *found, const char *dir)
{
    char path[DOCTOR_PATH];
    DIR *list = opendir(doctor_path(d, dir, path));
    for (struct dirent *e; list && (e = readdir(list));)
        look_at_file(found, dir, e->d_name);
    if (list)
        closedir(list);
}

/* Looks in a directory of libraries, and in those of one MPI below it. */
static void look_below(const struct doctor *d, struct found *found, const char *dir)
{
    static const char *const below[] = {"", "/openmpi/lib", "/mpich/lib"};
    char path[DIRECTORY_BYTES];
    for (size_t i = 0; i < ARRAY_LEN(below); i++)
        if (snprintf(path, sizeof path, "%s%s", dir, below[i]) < (int)sizeof path)
            look_in(d, found, path);
}

/* Looks in the directories of each machine type: /usr/lib/x86_64-linux-gnu. */
static void look_in_types(const struct doctor *d, struct found *found)
{
    char path[DOCTOR_PATH], dir[DIRECTORY_BYTES];
    DIR *list = opendir(doctor_path(d, "/usr/lib", path));
    for (struct dirent *e; list && (e = readdir(list));)
        if (strstr(e->d_name, "-linux-") &&
            snprintf(dir, sizeof dir, "/usr/lib/%s", e->d_name) < (int)sizeof dir)
            look_below(d, found, dir);
    if (list)
        closedir(list);
}

static void look_everywhere(const struct doctor *d, struct found *found)
{
    static const char *const usual[] = {"/usr/lib",         "/usr/lib64",       "/usr/local/lib",
                                        "/usr/local/lib64", "/opt/openmpi/lib", "/opt/mpich/lib"};
    const char *set = getenv("LD_LIBRARY_PATH"); /* modules of a cluster set it */
    char dir[DIRECTORY_BYTES];
    for (; set && *set; set += strcspn(set, ":"), set += *set == ':') {
        size_t n = strcspn(set, ":");
        if (*set != '/' || n >= sizeof dir)
            continue;
        snprintf(dir, sizeof dir, "%.*s", (int)n, set);
        look_in(d, found, dir);
    }
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        look_below(d, found, usual[i]);
    look_in_types(d, found);
}

/* Returns whether there is any MPI. */
static bool check_libraries(struct doctor *d, struct found *found)
{
    static const char *const names[] = {"Open MPI", "MPICH"};
    static const char *const ours[] = {"libshmview-mpi-openmpi", "libshmview-mpi-mpich"};
    size_t n = 0;
    look_everywhere(d, found);
    for (int i = 0; i < N_IMPLEMENTATIONS; i++) {
        if (!found->file[i][0])
            continue;
        n++;
        doctor_find(d, DOCTOR_OK, "mpi",
                    "programs of this MPI open segments by libshmview-mpi, which is built for it "
                    "where its mpicc is installed (MPI.md)",
                    NULL, "%s: %s in %s; %s is %sinstalled", names[i], found->file[i],
                    found->where[i], ours[i], found->has_ours[i] ? "" : "not ");
    }
    if (n == 0)
        doctor_find(d, DOCTOR_OK, "mpi", "only jobs of MPI need one", NULL, "not installed");
    return n > 0;
}

/* --- Shared memory ------------------------------------------------------- */

/* Returns how many processors a list such as "0-3,8" has, or 1. */
static long count_processors(const struct doctor *d)
{
    char text[256];
    long n = 0;
    if (!doctor_read(d, "/sys/devices/system/cpu/online", true, text, sizeof text))
        return 1;
    for (char *at = text; *at;) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        n += last >= first ? last - first + 1 : 0;
        at = end + (*end == ',');
    }
    return n > 0 ? n : 1;
}

/* Both MPIs keep messages between the ranks of a node there. */
static void check_shared_memory(struct doctor *d)
{
    char path[DOCTOR_PATH], text[HUMAN_BYTES];
    struct statvfs fs;
    if (d->get_space(doctor_path(d, SHM, path), &fs) || fs.f_blocks == 0)
        return; /* doctor_memory.c reports that */
    double left = (double)fs.f_bavail * (double)fs.f_frsize;
    double size = (double)fs.f_blocks * (double)fs.f_frsize;
    long ranks = (long)(left / RANK_BYTES), processors = count_processors(d);
    const char *advice = "remove what is not needed, or enlarge it: mount -o remount,size=8G " SHM;
    if (size == CONTAINER_BYTES)
        advice = "docker run --shm-size=2g (podman the same), or --ipc=host";
    doctor_find(d, ranks < processors ? DOCTOR_WARN : DOCTOR_OK, "mpi-shm",
                "ranks of a node exchange messages by files in " SHM ", 4 MiB for each rank of "
                "Open MPI; a rank that finds no room is killed by SIGBUS or refuses to start",
                advice, "%s free in " SHM ": room for %ld ranks on %ld processors",
                human_bytes(text, (int64_t)left), ranks, processors);
}

/* Open MPI keeps the state of a job in a directory below $TMPDIR. */
static void check_session(struct doctor *d)
{
    char path[DOCTOR_PATH], text[HUMAN_BYTES];
    struct statvfs fs;
    const char *set = getenv("TMPDIR"), *dir = set && set[0] == '/' ? set : "/tmp";
    static const char means[] = "Open MPI keeps the files of a job there";
    static const char advice[] = "set TMPDIR to a directory on a local disk with free space";
    if (d->get_space(doctor_path(d, dir, path), &fs)) {
        doctor_find(d, DOCTOR_WARN, "mpi-session", means, advice, "%s cannot be examined", dir);
        return;
    }
    double left = (double)fs.f_bavail * (double)fs.f_frsize;
    doctor_find(d, left < SESSION_BYTES ? DOCTOR_WARN : DOCTOR_OK, "mpi-session", means, advice,
                "%s free in %s", human_bytes(text, (int64_t)left), dir);
}

/* --- Reads between ranks, limits ----------------------------------------- */

/* A rank of Open MPI reads large messages out of the memory of another (process_vm_readv). It asks
 * Yama for that by prctl(2), which does not help from scope 2 on. */
static void check_reads(struct doctor *d)
{
    long long scope = doctor_read_number(d, "/proc/sys/kernel/yama/ptrace_scope");
    int r = d->probe(PROBE_VM_READ);
    static const char means[] = "ranks of Open MPI read large messages from each other's memory; "
                                "where they may not, such messages fail or are copied twice";
    if (r)
        doctor_find(d, DOCTOR_WARN, "mpi-reads", means,
                    "a seccomp profile that allows process_vm_readv, or --cap-add=SYS_PTRACE of "
                    "the container; or OMPI_MCA_btl_vader_single_copy_mechanism=none",
                    "process_vm_readv: %s", strerror(r));
    else
        doctor_find(d, scope >= PTRACE_ADMIN ? DOCTOR_WARN : DOCTOR_OK, "mpi-reads", means,
                    "sysctl kernel.yama.ptrace_scope=1, or "
                    "OMPI_MCA_btl_vader_single_copy_mechanism=none (btl_sm in Open MPI 5)",
                    scope < 0 ? "allowed; Yama is not there" : "kernel.yama.ptrace_scope is %lld",
                    scope);
}

static void check_limits(struct doctor *d)
{
    char path[DOCTOR_PATH], text[HUMAN_BYTES];
    struct rlimit limit;
    bool has_device = access(doctor_path(d, "/sys/class/infiniband", path), F_OK) == 0;
    if (d->get_limit(RLIMIT_MEMLOCK, &limit) == 0 && has_device) {
        bool is_open = limit.rlim_cur == RLIM_INFINITY;
        doctor_find(d, is_open ? DOCTOR_OK : DOCTOR_WARN, "mpi-memlock",
                    "an InfiniBand device locks the memory that it sends from",
                    "ulimit -l unlimited, also for the daemon of the batch system", "%s",
                    is_open ? "unlimited"
                            : human_bytes(text, (int64_t)(limit.rlim_cur & INT64_MAX)));
    }
    if (d->get_limit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        doctor_find(d, limit.rlim_cur < FEW_DESCRIPTORS ? DOCTOR_WARN : DOCTOR_OK, "mpi-nofile",
                    "over TCP a rank has a connection for each rank that it sends to",
                    "ulimit -n 4096", "a rank may have %llu descriptors",
                    (unsigned long long)limit.rlim_cur);
}

void doctor_check_mpi(struct doctor *d)
{
    struct found found = {0};
    if (!check_libraries(d, &found))
        return;
    check_shared_memory(d);
    if (found.file[OPEN_MPI][0]) {
        check_session(d);
        check_reads(d);
    }
    check_limits(d);
}
