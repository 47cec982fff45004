/* SPDX-License-Identifier: Apache-2.0 */
/* Checks where a segment can get huge pages from, and how many nodes the machine has. Nothing here
 * is a fault, because every wish has a fallback: the findings are for users who want more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define THP  "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

/* The pool comes first for sealed segments. */
static void check_pool(struct doctor *d)
{
    char free_text[HUMAN_BYTES], all_text[HUMAN_BYTES];
    long long all = doctor_read_number(d, POOL "nr_hugepages");
    long long left = doctor_read_number(d, POOL "free_hugepages");
    if (all < 0 || left < 0)
        return; /* a kernel without hugetlb, or with pages of another size */
    doctor_find(d, DOCTOR_OK, "huge-pool",
                "sealed segments that want huge pages take them from here first; 'sysctl "
                "vm.nr_hugepages=512' reserves 1 GiB, best soon after the machine has started",
                NULL, "%s free of %s", human_bytes(free_text, left << 21),
                human_bytes(all_text, all << 21));
}

/* Reads the word in brackets of shmem_enabled; "" on a kernel without it. */
static void read_setting(struct doctor *d, char ret[16])
{
    char text[256], *word = NULL;
    if (doctor_read(d, THP, false, text, sizeof text))
        word = strchr(text, '[');
    if (!word || sscanf(word, "[%15[a-z_]]", ret) != 1)
        ret[0] = '\0';
}

/* Transparent huge pages of memfds. */
static void check_sealed(struct doctor *d, const char *setting)
{
    if (!setting[0])
        return;
    bool allows = strcmp(setting, "never") != 0 && strcmp(setting, "deny") != 0;
    doctor_find(d, DOCTOR_OK, "huge-sealed",
                allows ? "sealed segments can get transparent huge pages"
                       : "sealed segments get huge pages from the pool only; 'echo advise > " THP
                         "' allows transparent ones",
                NULL, "shmem_enabled is %s", setting);
}

/* Transparent huge pages of files. The settings deny and force override the option of a mount. */
static void check_files(struct doctor *d, const char *setting)
{
    char where[DOCTOR_PATH], found[64] = "never", *line = NULL;
    size_t room = 0;
    FILE *mounts = fopen(doctor_path(d, "/proc/self/mountinfo", where), "re");
    if (!mounts)
        return;
    while (getline(&line, &room, mounts) > 0) { /* the last mount there counts */
        const char *option = strstr(line, "huge=");
        if (strstr(line, " /dev/shm ") && strstr(line, " - tmpfs "))
            snprintf(found, sizeof found, "%.*s", option ? (int)strcspn(option + 5, ",\n") : 5,
                     option ? option + 5 : "never");
    }
    free(line);
    fclose(mounts);
    bool is_denied = strcmp(setting, "deny") == 0, is_forced = strcmp(setting, "force") == 0;
    doctor_find(d, DOCTOR_OK, "huge-files",
                is_denied ? "segments in /dev/shm get no huge pages while shmem_enabled is deny"
                : strcmp(found, "never") == 0 && !is_forced
                    ? "segments in /dev/shm get no huge pages; 'mount -o remount,huge=advise "
                      "/dev/shm' allows them, and run-shmhuge.mount for the service alone "
                      "(PLACEMENT.md)"
                    : "segments in /dev/shm can get huge pages",
                NULL, "/dev/shm is mounted with huge=%s", found);
}

static void check_nodes(struct doctor *d)
{
    char text[128];
    if (!doctor_read(d, "/sys/devices/system/node/has_memory", false, text, sizeof text))
        return;
    text[strcspn(text, "\n")] = '\0';
    doctor_find(d, DOCTOR_OK, "numa", "segments can choose among nodes with memory", NULL,
                strpbrk(text, "-,") ? "nodes %s" : "one node, %s", text);
}

void doctor_check_huge(struct doctor *d)
{
    char setting[16];
    read_setting(d, setting);
    check_pool(d);
    check_sealed(d, setting);
    check_files(d, setting);
    check_nodes(d);
}
