/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the checks of MPI on machines with various installations. */
#include "cli/doctor/doctor.h"

#include "unit/machine.h"

START_TEST(mpi_that_is_not_installed)
{
    begin();
    put("/usr/lib/x86_64-linux-gnu/libmpi.so", ""); /* a link for the compiler alone */
    put("/usr/lib/x86_64-linux-gnu/libmpi_cxx.so.40", "");
    probes[PROBE_VM_READ] = EPERM;
    space.f_bavail = 0;
    look(doctor_check_mpi);
    finds("mpi", DOCTOR_OK, "not installed");
    ck_assert_uint_eq(d.n, 1);
    end();
}
END_TEST

START_TEST(implementations_of_mpi)
{
    begin();
    put("/usr/lib/x86_64-linux-gnu/libmpi.so.40", "");
    put("/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4", "");
    put("/usr/lib/x86_64-linux-gnu/libshmview-mpi-openmpi.so.0", "");
    put("/usr/lib64/mpich/lib/libmpi.so.12", "");
    look(doctor_check_mpi);
    finds("mpi", DOCTOR_OK,
          "Open MPI: libmpi.so.40.30.4 in /usr/lib/x86_64-linux-gnu; libshmview-mpi-openmpi is "
          "installed");
    finds("mpi", DOCTOR_OK,
          "MPICH: libmpi.so.12 in /usr/lib64/mpich/lib; libshmview-mpi-mpich is not installed");
    put("/sw/mpich/libmpich.so.12.2.2", "");
    put("/sw/mpich/libshmview-mpi.so.0.1.0", "");
    setenv("LD_LIBRARY_PATH", "relative::/sw/none:/sw/mpich", 1);
    look(doctor_check_mpi);
    finds("mpi", DOCTOR_OK, "libmpich.so.12.2.2 in /sw/mpich; libshmview-mpi-mpich is installed");
    end();
}
END_TEST

START_TEST(shared_memory_of_mpi)
{
    begin();
    put("/usr/lib/libmpich.so.12", "");
    look(doctor_check_mpi);
    finds("mpi-shm", DOCTOR_OK, "2G free in /dev/shm: room for 512 ranks on 1 processors");
    finds_nothing("mpi-session"); /* of Open MPI alone */
    finds_nothing("mpi-reads");
    put("/sys/devices/system/cpu/online", "0-15,17\n");
    space.f_blocks = space.f_bavail = (64 << 20) / 4096;
    look(doctor_check_mpi);
    const struct doctor_finding *f =
        finds("mpi-shm", DOCTOR_WARN, "64M free in /dev/shm: room for 16 ranks on 17 processors");
    ck_assert_ptr_nonnull(strstr(f->advice, "--shm-size"));
    put("/sys/devices/system/cpu/online", "0-3,5-7,x\n");
    look(doctor_check_mpi);
    finds("mpi-shm", DOCTOR_OK, "on 7 processors");
    space = (struct statvfs){.f_bsize = 4096}; /* a tmpfs without limits */
    look(doctor_check_mpi);
    finds_nothing("mpi-shm");
    end();
}
END_TEST

START_TEST(session_and_reads_of_open_mpi)
{
    begin();
    put("/usr/local/lib/libmpi.so.20", "");
    look(doctor_check_mpi);
    finds("mpi-session", DOCTOR_OK, "2G free in /scratch");
    finds("mpi-reads", DOCTOR_OK, "Yama is not there");
    put("/proc/sys/kernel/yama/ptrace_scope", "1\n");
    space.f_bavail = 4095;
    look(doctor_check_mpi);
    finds("mpi-session", DOCTOR_WARN, "free in /scratch");
    finds("mpi-reads", DOCTOR_OK, "ptrace_scope is 1");
    put("/proc/sys/kernel/yama/ptrace_scope", "2\n");
    space.f_bsize = 0;
    look(doctor_check_mpi);
    finds("mpi-session", DOCTOR_WARN, "/scratch cannot be examined");
    finds("mpi-reads", DOCTOR_WARN, "ptrace_scope is 2");
    probes[PROBE_VM_READ] = EPERM;
    look(doctor_check_mpi);
    finds("mpi-reads", DOCTOR_WARN, "process_vm_readv: Operation not permitted");
    end();
}
END_TEST

START_TEST(limits_of_mpi)
{
    begin();
    put("/usr/lib/libmpi.so.40", "");
    limits[RLIMIT_MEMLOCK].rlim_cur = 8 << 20;
    limits[RLIMIT_NOFILE].rlim_cur = 256;
    look(doctor_check_mpi);
    finds("mpi-nofile", DOCTOR_OK, "256 descriptors");
    finds_nothing("mpi-memlock"); /* there is no device */
    put("/sys/class/infiniband/mlx5_0", "");
    limits[RLIMIT_NOFILE].rlim_cur = 255;
    look(doctor_check_mpi);
    finds("mpi-nofile", DOCTOR_WARN, "255 descriptors");
    finds("mpi-memlock", DOCTOR_WARN, "8M");
    limits[RLIMIT_MEMLOCK].rlim_cur = RLIM_INFINITY;
    look(doctor_check_mpi);
    finds("mpi-memlock", DOCTOR_OK, "unlimited");
    end();
}
END_TEST

UNIT_MAIN("cli_doctor_mpi", UNIT_TEST(mpi_that_is_not_installed), UNIT_TEST(implementations_of_mpi),
          UNIT_TEST(shared_memory_of_mpi), UNIT_TEST(session_and_reads_of_open_mpi),
          UNIT_TEST(limits_of_mpi))
