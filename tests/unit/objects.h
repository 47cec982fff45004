/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a segment as a daemon makes them, and the reply that hands them out. For a stub
 * (stub.h), or for a test that changes the objects as the daemon and other clients do. */
#ifndef UNIT_OBJECTS_H
#define UNIT_OBJECTS_H

#include <sys/mman.h>

#include <shmview/layout.h>

#include "unit/stub.h"

#define SIZE 5000
#define ID   77

/* Objects as a daemon makes them, for slot 0. The test damages them as it needs. */
static struct objects {
    int data, control, live;
    struct shmview_control head;
    struct shmview_liveness liveness;
} objects;

static inline int make_object(const void *bytes, size_t n, size_t size)
{
    int fd = memfd_create("shmview-unit", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    ck_assert_int_eq(pwrite(fd, bytes, n, 0), (ssize_t)n);
    return fd;
}

static inline void objects_make(void)
{
    objects.head = (struct shmview_control){
        .header = {SHMVIEW_CONTROL_MAGIC, SHMVIEW_LAYOUT_VERSION, sizeof objects.head, 0, ID, 0},
        .slots_offset = sizeof objects.head,
        .slot_bytes = 128};
    objects.liveness = (struct shmview_liveness){
        .header = {SHMVIEW_LIVENESS_MAGIC, SHMVIEW_LAYOUT_VERSION, 96, 0, ID, 0},
        .high = 1,
        .generation = {5}};
    objects.data = make_object("hello", 5, SIZE);
    objects.control = make_object(&objects.head, sizeof objects.head, 4096);
    objects.live = make_object(&objects.liveness, sizeof objects.liveness, 4096);
}

static inline void objects_close(void)
{
    close(objects.data);
    close(objects.control);
    close(objects.live);
}

/* Returns how many such objects this process has mapped. */
static inline unsigned n_mapped(void)
{
    char line[512];
    unsigned n = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    while (fgets(line, sizeof line, f))
        n += strstr(line, "memfd:shmview-unit") != NULL;
    fclose(f);
    return n;
}

#define SEGMENT                                                                                    \
    "'segment':{'name':'seg','id':77,'size':5000,'lock':true,'lifetime':'attached','owner':0,"     \
    "'attachments':1}"
#define ATTACHMENT                                                                                 \
    "'attachment':{'id':9,'access':'write','descriptors':3,'data':0,'control':1,'liveness':2,"     \
    "'slot':0,'generation':5,'layouts':[]}"
#define REPLY(segment, attachment) "{'parameters':{" segment "," attachment "}}"

static inline struct stub_step attach_step(const char *reply)
{
    return (struct stub_step){.method = "io.shmview.Attach",
                              .reply = reply,
                              .n_fds = 3,
                              .fds = {objects.data, objects.control, objects.live}};
}

static const struct stub_step detach_step = {.method = "io.shmview.Detach", .is_oneway = true};

#endif
