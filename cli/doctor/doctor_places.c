/* SPDX-License-Identifier: Apache-2.0 */
/* Finds sockets that no daemon serves, and objects in /dev/shm that no daemon manages. A daemon
 * that was killed leaves both for the next one on its socket; without that, the memory stays taken.
 *
 * The kernel's lists (/proc/net/unix, /proc/locks) are read instead of connecting to each socket,
 * because a connection would start a service that systemd holds ready. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#define SHM            "/dev/shm"
#define PREFIX         "shmview."
#define DAEMON_OBJECT  "+daemon" /* a file in each instance; its daemon holds a lock on it */
#define N_LISTED_BYTES (4 << 20) /* of /proc/net/unix, /proc/locks */

static void check_daemon(struct doctor *d)
{
    char up[HUMAN_BYTES];
    if (d->stats)
        doctor_find(d, DOCTOR_OK, "daemon", "it replies", NULL, "version %s at %s, up %s",
                    d->stats->version, d->socket, human_duration(up, d->stats->uptime_us));
    else
        doctor_find(d, DOCTOR_WARN, "daemon",
                    "programs start one for this user, which ends when it is idle; shmviewctl "
                    "doctor does not",
                    d->uid ? "for one that stays: systemctl --user enable --now shmviewd.socket"
                           : "for one for everybody: systemctl enable --now shmviewd.socket",
                    "%s", d->socket);
}

/* --- Sockets ------------------------------------------------------------- */

/* Whether list, the text of /proc/net/unix, has a listening socket at path. 0x10000 is the kernel's
 * flag for listening. */
static bool is_listed(const char *list, const char *path)
{
    size_t n = strlen(path);
    for (const char *at = list; at && *at; at = strchr(at, '\n'), at += at != NULL) {
        unsigned flags;
        size_t line = strcspn(at, "\n");
        if (line > n && strncmp(at + line - n, path, n) == 0 && at[line - n - 1] == ' ' &&
            sscanf(at, "%*x: %*x %*x %x", &flags) == 1 && flags & 0x10000)
            return true;
    }
    return false;
}

/* Returns 0 if a process listens at path, or errno. Connects only if the kernel does not list the
 * socket, as for one of another network namespace. EAGAIN means that its queue is full. */
static int try_socket(const struct doctor *d, const char *list, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char where[DOCTOR_PATH];
    struct stat st;
    doctor_path(d, path, where);
    if (lstat(where, &st))
        return ENOENT;
    if (!S_ISSOCK(st.st_mode))
        return ENOTSOCK;
    if (is_listed(list, path) || strlen(where) >= sizeof address.sun_path)
        return 0;
    strcpy(address.sun_path, where);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    int r = connect(fd, (const struct sockaddr *)&address, sizeof address) ? errno : 0;
    close(fd);
    return r == EAGAIN ? 0 : r;
}

/* Reports one socket; nothing if there is none, because most instances do not run. */
static void check_socket(struct doctor *d, const char *list, const char *path)
{
    int r = try_socket(d, list, path);
    if (r == ECONNREFUSED)
        doctor_find(d, DOCTOR_WARN, "socket",
                    "a daemon that was killed left it; its segments stay for the next daemon there",
                    "start a daemon there, which takes them over, or remove the socket",
                    "nobody serves %s", path);
    else if (r == ENOTSOCK)
        doctor_find(d, DOCTOR_FAIL, "socket", "no daemon can listen there", "remove it",
                    "%s is not a socket", path);
    else if (r == EACCES)
        doctor_find(d, DOCTOR_WARN, "socket", "this user may not connect",
                    "check the mode of the socket and its directory", "%s is closed to this user",
                    path);
    else if (r == 0)
        doctor_find(d, DOCTOR_OK, "socket", "a daemon or systemd serves it", NULL, "%s", path);
}

/* Checks every path at which a client searches for a daemon: $SHMVIEW_SOCKET, the user's daemon,
 * the session's daemon, and the system's. */
static void check_sockets(struct doctor *d)
{
    char user[DOCTOR_PATH - 64], path[DOCTOR_PATH];
    CLEANUP_FREE char *list = malloc(N_LISTED_BYTES);
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *set = getenv("SHMVIEW_SOCKET");
    if (!list) {
        d->is_short = true;
        return;
    }
    if (!doctor_read(d, "/proc/net/unix", false, list, N_LISTED_BYTES))
        list[0] = '\0';
    if (runtime && runtime[0] == '/')
        snprintf(user, sizeof user, "%s", runtime);
    else
        snprintf(user, sizeof user, "/tmp/shmview-%u", (unsigned)d->uid);
    if (set && set[0] == '/')
        check_socket(d, list, set);
    snprintf(path, sizeof path, "%s/shmviewd/io.shmview", user);
    check_socket(d, list, path);
    snprintf(path, sizeof path, "%s/shmviewd/session/io.shmview", user);
    check_socket(d, list, path);
    check_socket(d, list, "/run/shmviewd/io.shmview");
}

/* --- Objects ------------------------------------------------------------- */

/* The contents of one instance's directory. */
struct instance {
    unsigned n;
    double bytes;
    bool is_served;
};

/* Whether a process holds a lock on the file of st. locks is the text of /proc/locks, which has
 * device and inode of each locked file. */
static bool is_locked(const char *locks, const struct stat *st)
{
    char id[64];
    snprintf(id, sizeof id, " %02x:%02x:%ju ", major(st->st_dev), minor(st->st_dev),
             (uintmax_t)st->st_ino);
    return strstr(locks, id);
}

static void add_object(struct instance *instance, int dir, const char *name, const char *locks)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
        return;
    if (strcmp(name, DAEMON_OBJECT) == 0) {
        instance->is_served = is_locked(locks, &st);
    } else {
        instance->n++;
        instance->bytes += (double)st.st_blocks * 512;
    }
}

/* Whether a daemon can have given this name to its directory. Any user can make others, with bytes
 * that must not reach a terminal. */
static bool is_of_a_daemon(const char *name)
{
    static const char used[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_";
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && name[strspn(name, used)] == '\0';
}

/* Counts the objects of an instance. Returns false if this user may not read the directory, as that
 * of another user. */
static bool look_at_instance(struct instance *instance, int shm, const char *name,
                             const char *locks)
{
    *instance = (struct instance){.n = 0};
    int fd = openat(shm, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (struct dirent *e; (e = readdir(dir));)
        add_object(instance, dirfd(dir), e->d_name, locks);
    closedir(dir);
    return true;
}

static void check_objects(struct doctor *d)
{
    struct instance i;
    char path[DOCTOR_PATH], size[HUMAN_BYTES];
    CLEANUP_FREE char *locks = malloc(N_LISTED_BYTES);
    size_t n_served = 0, n_left = 0, n_closed = 0;
    if (!locks) {
        d->is_short = true;
        return;
    }
    if (!doctor_read(d, "/proc/locks", false, locks, N_LISTED_BYTES))
        locks[0] = '\0';
    DIR *dir = opendir(doctor_path(d, SHM, path));
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (!is_of_a_daemon(e->d_name))
            continue;
        bool seen = look_at_instance(&i, dirfd(dir), e->d_name, locks);
        n_closed += !seen;
        n_served += i.is_served;
        if (i.is_served || i.n == 0)
            continue;
        n_left++;
        doctor_find(d, DOCTOR_WARN, "objects",
                    "a daemon that ended left its segments for the next one on its socket; no "
                    "daemon that is visible from here manages them",
                    "start one on that socket and end it with SIGINT, or, if nobody needs them, "
                    "remove " SHM "/" PREFIX "INSTANCE",
                    "%u objects, %s, of instance %s", i.n, human_bytes(size, (int64_t)i.bytes),
                    e->d_name + strlen(PREFIX));
    }
    if (dir)
        closedir(dir);
    if (n_left == 0)
        doctor_find(d, DOCTOR_OK, "objects", "every object in " SHM " has a daemon", NULL,
                    "nothing is left over; %zu instances are served, %zu are other users'",
                    n_served, n_closed);
}

void doctor_check_places(struct doctor *d)
{
    check_daemon(d);
    check_sockets(d);
    check_objects(d);
}
