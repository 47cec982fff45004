/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the check of huge pages and nodes of `shmviewctl doctor` on machines that are files below a
 * directory. */
#include "cli/doctor/doctor.h"

#include "unit/machine.h"

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define THP  "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

START_TEST(nothing_to_find)
{
    begin();
    look(doctor_check_huge);
    ck_assert_uint_eq(d.n, 0);
    end();
}
END_TEST

START_TEST(pool)
{
    begin();
    put(POOL "nr_hugepages", "512\n");
    put(POOL "free_hugepages", "256\n");
    look(doctor_check_huge);
    const struct doctor_finding *f = finds("huge-pool", DOCTOR_OK, "512M free of 1G");
    ck_assert_ptr_nonnull(strstr(f->means, "vm.nr_hugepages"));
    end();
}
END_TEST

START_TEST(transparent)
{
    begin();
    put(THP, "always within_size advise [never] deny force\n");
    look(doctor_check_huge);
    const struct doctor_finding *f = finds("huge-sealed", DOCTOR_OK, "shmem_enabled is never");
    ck_assert_ptr_nonnull(strstr(f->means, "from the pool only; 'echo advise"));
    finds_nothing("huge-pool");
    put(THP, "always within_size [advise] never deny force\n");
    look(doctor_check_huge);
    f = finds("huge-sealed", DOCTOR_OK, "shmem_enabled is advise");
    ck_assert_ptr_nonnull(strstr(f->means, "can get"));
    end();
}
END_TEST

START_TEST(mounts)
{
    begin();
    put("/proc/self/mountinfo", "1 0 0:2 / / rw - ext4 /dev/vda rw\n"
                                "2 1 0:3 / /dev/shm rw - tmpfs tmpfs rw,size=4k\n");
    look(doctor_check_huge);
    finds("huge-files", DOCTOR_OK, "huge=never");
    put("/proc/self/mountinfo", "2 1 0:3 / /dev/shm rw - tmpfs tmpfs rw,huge=within_size,inode64\n"
                                "3 1 0:4 / /tmp rw - tmpfs tmpfs rw,huge=always\n");
    look(doctor_check_huge);
    const struct doctor_finding *f = finds("huge-files", DOCTOR_OK, "huge=within_size");
    ck_assert_str_eq(f->found, "/dev/shm is mounted with huge=within_size");
    ck_assert_ptr_nonnull(strstr(f->means, "can get"));
    end();
}
END_TEST

/* These two settings of the kernel override the option of the mount. */
START_TEST(overridden_mounts)
{
    begin();
    put("/proc/self/mountinfo", "2 1 0:3 / /dev/shm rw - tmpfs tmpfs rw,huge=always\n");
    put(THP, "always within_size advise never [deny] force\n");
    look(doctor_check_huge);
    const struct doctor_finding *f = finds("huge-files", DOCTOR_OK, "huge=always");
    ck_assert_ptr_nonnull(strstr(f->means, "no huge pages while shmem_enabled is deny"));
    put("/proc/self/mountinfo", "2 1 0:3 / /dev/shm rw - tmpfs tmpfs rw\n");
    put(THP, "always within_size advise never deny [force]\n");
    look(doctor_check_huge);
    f = finds("huge-files", DOCTOR_OK, "huge=never");
    ck_assert_ptr_nonnull(strstr(f->means, "can get"));
    finds("huge-sealed", DOCTOR_OK, "shmem_enabled is force");
    end();
}
END_TEST

/* As on a host with many containers. */
START_TEST(many_mounts)
{
    char text[40000];
    size_t n = 0;
    begin();
    while (n < sizeof text - 200)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "9 1 0:9 / /var/lib/containers/%zu rw - overlay overlay rw\n", n);
    snprintf(text + n, sizeof text - n, "2 1 0:3 / /dev/shm rw - tmpfs tmpfs rw,huge=advise\n");
    put("/proc/self/mountinfo", text);
    look(doctor_check_huge);
    finds("huge-files", DOCTOR_OK, "huge=advise");
    end();
}
END_TEST

START_TEST(nodes)
{
    begin();
    put("/sys/devices/system/node/has_memory", "0\n");
    look(doctor_check_huge);
    finds("numa", DOCTOR_OK, "one node, 0");
    put("/sys/devices/system/node/has_memory", "0-1,3\n");
    look(doctor_check_huge);
    finds("numa", DOCTOR_OK, "nodes 0-1,3");
    end();
}
END_TEST

UNIT_MAIN("cli_doctor_huge", UNIT_TEST(nothing_to_find), UNIT_TEST(pool), UNIT_TEST(transparent),
          UNIT_TEST(mounts), UNIT_TEST(overridden_mounts), UNIT_TEST(many_mounts), UNIT_TEST(nodes))
