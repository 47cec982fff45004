/* SPDX-License-Identifier: Apache-2.0 */
#include "client/segment/mapper.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "client/segment/mappings.h"
#include "common/base/name.h"

/* The mapping that is looked for. */
struct wanted {
    dev_t device;
    ino_t inode;
    uintptr_t except, except_end; /* the addresses at which it does not count; 0: none */
};

/* Whether the line of a file maps is a writable shared mapping of the file. */
static bool is_wanted(const char *line, const struct wanted *want)
{
    char rights[5];
    unsigned major_number, minor_number;
    unsigned long long number;
    uintptr_t from;
    return sscanf(line, "%" SCNxPTR "-%*x %4s %*x %x:%x %llu", &from, rights, &major_number,
                  &minor_number, &number) == 5 &&
           rights[1] == 'w' && rights[3] == 's' && number == want->inode &&
           makedev(major_number, minor_number) == want->device &&
           (from < want->except || from >= want->except_end);
}

static bool maps_it(const char *pid, const struct wanted *want)
{
    char path[64], line[512];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%.20s/maps", pid);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f))
        found = is_wanted(line, want);
    if (f)
        fclose(f);
    return found;
}

static void read_command(const char *pid, char ret_command[16])
{
    char path[64], text[16] = "";
    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    FILE *f = fopen(path, "re");
    if (f && !fgets(text, sizeof text, f))
        text[0] = '\0';
    if (f)
        fclose(f);
    text[strcspn(text, "\n")] = '\0';
    command_copy(ret_command, text);
}

bool mapper_find(const struct mapping *mapping, struct mapper *ret)
{
    bool found = false, found_other = false;
    DIR *dir = opendir("/proc");
    if (!dir)
        return false;
    for (struct dirent *e; !found_other && (e = readdir(dir));) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        bool is_this = pid == getpid();
        const uintptr_t except = is_this ? (uintptr_t)mapping->data : 0;
        const struct wanted want = {mapping->device, mapping->inode, except,
                                    except ? except + mapping->data_bytes : 0};
        if (!isdigit((unsigned char)e->d_name[0]) || !maps_it(e->d_name, &want))
            continue;
        ret->pid = pid;
        read_command(e->d_name, ret->command);
        found = true;
        found_other = !is_this;
    }
    closedir(dir);
    return found;
}
