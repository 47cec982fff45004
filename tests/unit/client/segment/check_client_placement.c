/* SPDX-License-Identifier: Apache-2.0 */
/* Checks placement.c of the library: a mapping that the kernel refuses touches no other mapping. */
#include "client/segment/segment.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "unit/faults.h"
#include "unit/unit.h"

#define HUGE  ((size_t)2 << 20)
#define BYTES (5 * HUGE) /* the room has more than 6 huge pages, and at most 7 */
#define PAGE  ((size_t)sysconf(_SC_PAGESIZE))

static const struct shmview_placed thp = {.huge_by = SHMVIEW_HUGE_BY_THP};

/* Another thread's mapping, in the place of the room. */
static char *foreign;

/* Finds the room, which has no access: "START-END ---p 00000000 00:00 0". Returns NULL if it is not
 * there. */
static char *find_room(void)
{
    char line[512], access[5];
    unsigned long start, end, found = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx %4s", &start, &end, access) == 3 && !strcmp(access, "---p") &&
            start % HUGE == 0 && end - start > BYTES + HUGE && end - start <= BYTES + 2 * HUGE)
            found = start;
    fclose(f);
    return (char *)found;
}

/* What the kernel and another thread do at the second mmap(). syscall(), because the call is no
 * part of the code under test. */
static void replace_room(void)
{
    char *room = find_room();
    ck_assert_ptr_nonnull(room);
    foreign = (char *)syscall(SYS_mmap, room, PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ck_assert_ptr_eq(foreign, room);
    strcpy(foreign, "foreign");
}

static void wait_for_second(void)
{
    faults_hook("mmap", replace_room);
}

START_TEST(a_refused_mapping_leaves_others_alone)
{
    size_t bytes = 0;
    int fd = memfd_create("shmview:unit", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, BYTES), 0);
    faults_hook("mmap", wait_for_second);
    faults_begin_call("mmap", 2, EPERM, false);
    void *p = placement_map(&thp, fd, BYTES, PROT_READ, 0, &bytes);
    ck_assert_int_eq(errno, EPERM);
    ck_assert(faults_end());
    ck_assert_ptr_eq(p, MAP_FAILED);
    ck_assert_str_eq(foreign, "foreign");
    munmap(foreign, BYTES + PAGE);
    ck_assert_ptr_null(find_room());
    p = placement_map(&thp, fd, BYTES, PROT_READ, 0, &bytes);
    ck_assert_ptr_ne(p, MAP_FAILED);
    ck_assert_uint_eq((uintptr_t)p % HUGE, 0);
    ck_assert_uint_eq(bytes, BYTES + PAGE);
    munmap(p, bytes);
    close(fd);
}
END_TEST

UNIT_MAIN("client_placement", UNIT_TEST(a_refused_mapping_leaves_others_alone))
