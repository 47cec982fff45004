/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <shmview/many.h>

static int run_create(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct named_segment *place = new_segment(driver, request);
    struct shmview_create_options options = {
        .struct_bytes = sizeof options,
        .flags = truth_of(request, "lock", true) ? 0 : SHMVIEW_NO_LOCK};
    (void)ret_value;
    return shmview_create(driver->connection, text_of(request, "name"),
                          (uint64_t)number_of(request, "size", 0), &options, &place->segment);
}

static int run_attach(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct named_segment *place = new_segment(driver, request);
    const char *text = text_of(request, "access");
    int access = !text || strcmp(text, "write") == 0 ? SHMVIEW_WRITE
                 : strcmp(text, "read") == 0         ? SHMVIEW_READ
                                                     : SHMVIEW_PEEK;
    (void)ret_value;
    return shmview_attach(driver->connection, text_of(request, "name"), access, 0, &place->segment);
}

/* Closes a segment, and forgets its views. */
static int run_close(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_segment *segment = segment_of(driver, request);
    int r = shmview_detach(segment);
    (void)ret_value;
    for (size_t i = 0; r == 0 && i < MAX_NAMED; i++) {
        if (driver->segments[i].segment == segment)
            driver->segments[i].segment = NULL;
        if (driver->views[i].view.segment == segment)
            driver->views[i] = (struct named_view){0};
    }
    return r;
}

static int run_remove(struct driver *driver, const json_t *request, json_t **ret_value)
{
    (void)ret_value;
    return shmview_remove(driver->connection, text_of(request, "name"));
}

static int run_put(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_segment *segment = segment_of(driver, request);
    size_t offset = (size_t)number_of(request, "offset", 0);
    unsigned char *at = shmview_data(segment);
    (void)ret_value;
    bytes_of(text_of(request, "hex"), at + offset, shmview_size(segment) - offset);
    return 0;
}

static int run_dump(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_segment *segment = segment_of(driver, request);
    *ret_value = hex_of(shmview_data(segment), shmview_size(segment));
    return 0;
}

/* --- The process ------------------------------------------------------------ */

static int run_hello(struct driver *driver, const json_t *request, json_t **ret_value)
{
    (void)driver, (void)request;
    *ret_value = json_pack("{s:s, s:i, s:b}", "language", "C", "pid", (int)getpid(), "streams", 1);
    return 0;
}

static int run_die(struct driver *driver, const json_t *request, json_t **ret_value)
{
    (void)driver, (void)request, (void)ret_value;
    raise(SIGKILL);
    return 0;
}

static int count_sockets(void)
{
    char target[64];
    int sockets = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        refuse("no descriptors", "/proc/self/fd");
    for (struct dirent *e; (e = readdir(folder));)
        sockets += readlinkat(dirfd(folder), e->d_name, target, sizeof target) > 0 &&
                   strncmp(target, "socket:", strlen("socket:")) == 0;
    closedir(folder);
    return sockets;
}

/* Answers how many sockets are open, and how many mappings of segments there are. */
static int run_held(struct driver *driver, const json_t *request, json_t **ret_value)
{
    char line[512];
    int mappings = 0;
    shmview_trim();
    FILE *maps = fopen("/proc/self/maps", "r");
    (void)driver, (void)request;
    if (!maps)
        refuse("no maps", "/proc/self/maps");
    while (fgets(line, sizeof line, maps))
        mappings += strstr(line, "/shmview.") != NULL;
    fclose(maps);
    *ret_value = json_pack("{s:i, s:i}", "sockets", count_sockets(), "mappings", mappings);
    return 0;
}

const struct operation_row segment_operations[] = {
    {"create", run_create}, {"attach", run_attach}, {"close", run_close}, {"remove", run_remove},
    {"put", run_put},       {"dump", run_dump},     {"hello", run_hello}, {"errors", run_errors},
    {"die", run_die},       {"held", run_held},     {NULL, NULL},
};
