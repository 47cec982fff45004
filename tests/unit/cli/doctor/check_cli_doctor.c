/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the checks of `shmviewctl doctor` on faulty machines, which are files below a directory. The
 * last test runs them on the machine itself. */
#include "cli/doctor/doctor.h"

#include <sys/file.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "unit/machine.h"

/* --- Memory -------------------------------------------------------------- */

START_TEST(shm)
{
    char path[DOCTOR_PATH];
    begin();
    look(doctor_check_memory);
    const struct doctor_finding *f = finds("shm-size", DOCTOR_OK, "2G free of 4G");
    ck_assert(f->used * 2 == f->limit);
    finds("shm-inodes", DOCTOR_OK, "room for 174762 segments");
    finds_nothing("shm-mode"); /* there is no file to check */
    ck_assert_str_eq(doctor_closest(&d)->check, "shm-size");
    put("/dev/shm/x", "");
    ck_assert_int_eq(chmod(doctor_path(&d, "/dev/shm", path), 0755), 0);
    space.f_bavail = space.f_blocks / 10;
    space.f_favail = 2999;
    look(doctor_check_memory);
    finds("shm-size", DOCTOR_WARN, "410M free of 4G");
    finds("shm-inodes", DOCTOR_WARN, "room for 999 segments");
    finds("shm-mode", DOCTOR_WARN, "0755");
    ck_assert_str_eq(doctor_closest(&d)->check, "shm-inodes");
    ck_assert_int_eq(chmod(path, 01777), 0);
    space.f_bavail = 0;
    look(doctor_check_memory);
    finds("shm-size", DOCTOR_FAIL, "0B free of 4G");
    finds("shm-mode", DOCTOR_OK, "1777");
    ck_assert_int_eq(doctor_worst(&d), DOCTOR_FAIL);
    space = (struct statvfs){.f_bsize = 4096}; /* a tmpfs without limits */
    look(doctor_check_memory);
    finds("shm-size", DOCTOR_OK, "no limit");
    finds_nothing("shm-inodes");
    space.f_bsize = 0;
    look(doctor_check_memory);
    finds("shm-size", DOCTOR_FAIL, "cannot be examined");
    end();
}
END_TEST

START_TEST(shm_of_a_container)
{
    begin();
    space.f_blocks = (64 << 20) / 4096;
    space.f_bavail = space.f_blocks;
    look(doctor_check_memory);
    const struct doctor_finding *f = finds("shm-size", DOCTOR_WARN, "64M free of 64M");
    ck_assert_ptr_nonnull(strstr(f->advice, "--shm-size"));
    end();
}
END_TEST

START_TEST(control_groups)
{
    begin();
    look(doctor_check_memory);
    finds("cgroup-memory", DOCTOR_OK, "no limit");
    put("/proc/self/cgroup", "5:cpu:/x\n0::/a.slice/b.service\n");
    put("/sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
    look(doctor_check_memory);
    finds("cgroup-memory", DOCTOR_OK, "no limit");
    put("/sys/fs/cgroup/a.slice/memory.max", "1073741824\n");
    put("/sys/fs/cgroup/a.slice/memory.current", "966367642\n");
    put("/sys/fs/cgroup/memory.max", "2147483648\n");
    look(doctor_check_memory);
    finds("cgroup-memory", DOCTOR_WARN, "922M used of 1G");
    put("/proc/self/cgroup", "0::/\n"); /* as a container sees its own group */
    put("/sys/fs/cgroup/memory.current", "2147483648\n");
    look(doctor_check_memory);
    finds("cgroup-memory", DOCTOR_FAIL, "2G used of 2G");
    end();
}
END_TEST

START_TEST(overcommit)
{
    begin();
    put("/proc/meminfo", "MemTotal: 9 kB\nCommitLimit:  2097152 kB\nCommitted_AS: 1048576 kB\n");
    look(doctor_check_memory);
    finds_nothing("overcommit");
    put("/proc/sys/vm/overcommit_memory", "1\n");
    look(doctor_check_memory);
    finds("overcommit", DOCTOR_OK, "is 1");
    put("/proc/sys/vm/overcommit_memory", "2\n");
    look(doctor_check_memory);
    finds("overcommit", DOCTOR_WARN, "1G promised of 2G");
    put("/proc/meminfo", "CommitLimit:  1048576 kB\nCommitted_AS: 1048576 kB\n");
    look(doctor_check_memory);
    finds("overcommit", DOCTOR_FAIL, "1G promised of 1G");
    end();
}
END_TEST

START_TEST(what_the_daemon_can_allocate)
{
    struct shmview_stats stats = {.memory_free = 1 << 30, .memory_limit = INT64_C(4) << 30};
    begin();
    d.stats = &stats;
    look(doctor_check_memory);
    finds("memory-free", DOCTOR_OK, "can allocate 1G: memory ends before /dev/shm");
    ck_assert_str_eq(doctor_closest(&d)->check, "memory-free");
    stats.memory_free = INT64_C(2) << 30;
    look(doctor_check_memory);
    ck_assert_str_eq(finds("memory-free", DOCTOR_OK, "2G")->found, "the daemon can allocate 2G");
    stats.memory_free = 4096;
    look(doctor_check_memory);
    finds("memory-free", DOCTOR_FAIL, "4K");
    end();
}
END_TEST

/* --- Limits -------------------------------------------------------------- */

START_TEST(own_limits)
{
    begin();
    look(doctor_check_limits);
    finds("nofile", DOCTOR_OK, "unlimited");
    finds("address-space", DOCTOR_OK, "unlimited");
    finds("memlock", DOCTOR_OK, "unlimited");
    finds_nothing("mappings");
    limits[RLIMIT_NOFILE].rlim_cur = 20;
    limits[RLIMIT_AS].rlim_cur = 1 << 30;
    limits[RLIMIT_MEMLOCK].rlim_cur = 65536;
    put("/proc/sys/vm/max_map_count", "30000\n");
    look(doctor_check_limits);
    finds("nofile", DOCTOR_WARN, "20 descriptors");
    finds("address-space", DOCTOR_WARN, "1G");
    finds("memlock", DOCTOR_OK, "64K");
    finds("mappings", DOCTOR_WARN, "some 10000 segments");
    end();
}
END_TEST

START_TEST(of_the_daemon)
{
    static const struct shmview_quota_stats bytes = {"bytes", 900, 1000, -1, -1},
                                            segments = {"segments", 5, 5, 7, 10};
    static const struct shmview_quota_stats *const quotas[] = {&bytes, &segments};
    struct shmview_stats stats = {
        .pid = 42, .connections = 10, .max_connections = 100, .memory_limit = -1};
    begin();
    d.stats = &stats;
    look(doctor_check_limits);
    finds("connections", DOCTOR_OK, "10 of 100");
    finds("quotas", DOCTOR_OK, "none");
    finds_nothing("daemon-fsize"); /* process 42 may be any program */
    stats.quotas = quotas;
    stats.n_quotas = 2;
    put("/proc/42/comm", "shmviewd\n");
    put("/proc/42/limits", "Limit      Soft Limit   Hard Limit   Units\n"
                           "Max file size             unlimited            unlimited   bytes\n");
    look(doctor_check_limits);
    finds("quota-bytes", DOCTOR_WARN, "this user: 900B of 1000B");
    finds("quota-segments", DOCTOR_FAIL, "this user: 5 of 5");
    finds("quota-segments", DOCTOR_OK, "all users: 7 of 10");
    finds("daemon-fsize", DOCTOR_OK, "unlimited");
    finds_nothing("quotas");
    ck_assert_str_eq(doctor_closest(&d)->check, "quota-segments");
    put("/proc/42/limits", "Max file size             1048576            unlimited   bytes\n");
    stats.connections = 100;
    look(doctor_check_limits);
    finds("daemon-fsize", DOCTOR_WARN, "at most 1M");
    finds("connections", DOCTOR_FAIL, "100 of 100");
    put("/proc/42/comm", "nginx\n");
    look(doctor_check_limits);
    finds_nothing("daemon-fsize");
    end();
}
END_TEST

START_TEST(kernel)
{
    begin();
    put("/proc/sys/kernel/osrelease", "5.8.18-generic\n");
    put("/proc/sys/fs/protected_regular", "2\n");
    probes[PROBE_FUTEX_WAITV] = ENOSYS;
    probes[PROBE_PEER_PIDFD] = ENOPROTOOPT;
    look(doctor_check_kernel);
    finds("kernel", DOCTOR_FAIL, "Linux 5.8.18-generic");
    finds("futex_waitv", DOCTOR_WARN, "missing");
    finds("pidfd_open", DOCTOR_OK, "there");
    finds("so_peerpidfd", DOCTOR_OK, "missing");
    finds("protected-regular", DOCTOR_OK, "is 2");
    put("/proc/sys/kernel/osrelease", "6.1.0\n");
    probes[PROBE_FUTEX_WAITV] = EPERM;
    probes[PROBE_PIDFD_OPEN] = EPERM;
    look(doctor_check_kernel);
    finds("kernel", DOCTOR_OK, "Linux 6.1.0");
    finds("futex_waitv", DOCTOR_WARN, "forbidden");
    finds("pidfd_open", DOCTOR_FAIL, "forbidden");
    end();
}
END_TEST

/* --- Places -------------------------------------------------------------- */

static int bind_at(const char *path, bool listens)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    put(path, "");
    doctor_path(&d, path, address.sun_path);
    unlink(address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    if (listens)
        ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

START_TEST(sockets)
{
    begin();
    look(doctor_check_places);
    finds("daemon", DOCTOR_WARN, "nowhere");
    finds_nothing("socket");
    int served = bind_at("/run/user/1000/shmviewd/io.shmview", true);
    int stale = bind_at("/run/shmviewd/io.shmview", false);
    put("/run/user/1000/shmviewd/session/io.shmview", "no socket");
    look(doctor_check_places);
    finds("socket", DOCTOR_OK, "/run/user/1000/shmviewd/io.shmview");
    finds("socket", DOCTOR_WARN, "nobody serves /run/shmviewd/io.shmview");
    finds("socket", DOCTOR_FAIL, "session/io.shmview is not a socket");
    /* the check must not start a daemon whose socket systemd listens on */
    close(served);
    put("/proc/net/unix",
        "Num RefCount Protocol Flags Type St Inode Path\n"
        "000000004fb: 00000002 00000000 00010000 0001 01 95 /run/user/1000/shmviewd/io.shmview\n"
        "000000004fc: 00000002 00000000 00000000 0001 01 96 /run/shmviewd/io.shmview\n");
    look(doctor_check_places);
    finds("socket", DOCTOR_OK, "/run/user/1000/shmviewd/io.shmview");
    finds("socket", DOCTOR_WARN, "nobody serves /run/shmviewd/io.shmview");
    close(stale);
    struct shmview_stats stats = {.version = "9.9", .uptime_us = 5000000};
    d.stats = &stats;
    look(doctor_check_places);
    finds("daemon", DOCTOR_OK, "version 9.9 at nowhere, up 5s");
    end();
}
END_TEST

START_TEST(objects)
{
    char path[DOCTOR_PATH], lock[128];
    struct stat st;
    begin();
    put("/dev/shm/other", "");
    put("/dev/shm/shmview.\033]0;x\a/camera", ""); /* anybody may put it there */
    put("/dev/shm/shmview.0-aa/+daemon", "");
    look(doctor_check_places);
    finds("objects", DOCTOR_OK, "0 instances are served");
    put("/dev/shm/shmview.0-aa/camera", "text");
    put("/dev/shm/shmview.0-aa/+1.control", "");
    put("/dev/shm/shmview.system/+daemon", "");
    put("/dev/shm/shmview.system/x", "");
    ck_assert_int_eq(stat(doctor_path(&d, "/dev/shm/shmview.system/+daemon", path), &st), 0);
    snprintf(lock, sizeof lock, "1: FLOCK  ADVISORY  WRITE 17 %02x:%02x:%ju 0 EOF\n",
             major(st.st_dev), minor(st.st_dev), (uintmax_t)st.st_ino);
    put("/proc/locks", lock);
    look(doctor_check_places);
    finds("objects", DOCTOR_WARN, "2 objects, ");
    finds("objects", DOCTOR_WARN, "of instance 0-aa");
    put("/proc/locks", "");
    look(doctor_check_places);
    finds("objects", DOCTOR_WARN, "of instance 0-aa");
    finds("objects", DOCTOR_WARN, "1 objects, 0B, of instance system");
    end();
}
END_TEST

/* --- systemd ------------------------------------------------------------- */

START_TEST(what_logind_removes)
{
    begin();
    look(doctor_check_systemd);
    finds("systemd", DOCTOR_OK, "does not run here");
    put("/run/systemd/system/x", "");
    d.systemctl = "false";
    look(doctor_check_systemd);
    finds("remove-ipc", DOCTOR_WARN, "RemoveIPC= is on");
    finds("unit-socket", DOCTOR_OK, "nothing is known");
    put("/etc/systemd/logind.conf", "[Login]\n#RemoveIPC=yes\nRemoveIPC=no\n");
    look(doctor_check_systemd);
    finds("remove-ipc", DOCTOR_OK, "off");
    put("/etc/systemd/logind.conf.d/90.conf", "[Login]\n RemoveIPC=yes \n");
    look(doctor_check_systemd);
    finds("remove-ipc", DOCTOR_WARN, "is on");
    put("/var/lib/systemd/linger/alice", "");
    look(doctor_check_systemd);
    finds("remove-ipc", DOCTOR_OK, "lingers");
    d.user = "bob";
    d.uid = 0;
    look(doctor_check_systemd);
    finds("remove-ipc", DOCTOR_OK, "not for system users");
    end();
}
END_TEST

START_TEST(units)
{
    begin();
    put("/run/systemd/system/x", "");
    d.systemctl = "echo 'LoadState=loaded\nActiveState=failed\nSubState=failed\n"
                  "UnitFileState=enabled'; :";
    look(doctor_check_systemd);
    finds("unit-service", DOCTOR_FAIL, "shmviewd.service is failed (failed), enabled");
    d.systemctl = "echo 'LoadState=loaded\nActiveState=active\nSubState=listening'; :";
    look(doctor_check_systemd);
    finds("unit-socket", DOCTOR_OK, "shmviewd.socket is active (listening), of unknown state");
    d.systemctl = "echo LoadState=not-found; :";
    look(doctor_check_systemd);
    finds("unit-socket", DOCTOR_OK, "shmviewd.socket is not-found");
    end();
}
END_TEST

/* The real machine: where the tests pass, no check may report an error. */
START_TEST(this_kernel)
{
    doctor_init(&d, "");
    ck_assert_int_eq(d.probe(PROBE_PIDFD_OPEN), 0);
    int r = d.probe(PROBE_FUTEX_WAITV);
    ck_assert(r == 0 || r == ENOSYS || r == EPERM);
    r = d.probe(PROBE_PEER_PIDFD);
    ck_assert(r == 0 || r == ENOPROTOOPT);
    r = d.probe(PROBE_VM_READ);
    ck_assert(r == 0 || r == ENOSYS || r == EPERM);
    doctor_deinit(&d);
}
END_TEST

UNIT_MAIN("cli_doctor", UNIT_TEST(shm), UNIT_TEST(shm_of_a_container), UNIT_TEST(control_groups),
          UNIT_TEST(overcommit), UNIT_TEST(what_the_daemon_can_allocate), UNIT_TEST(own_limits),
          UNIT_TEST(of_the_daemon), UNIT_TEST(kernel), UNIT_TEST(sockets), UNIT_TEST(objects),
          UNIT_TEST(what_logind_removes), UNIT_TEST(units), UNIT_TEST(this_kernel))
