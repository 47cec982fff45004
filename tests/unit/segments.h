/* SPDX-License-Identifier: Apache-2.0 */
/* Segments without a registry, for the tests of segment.c. */
#ifndef UNIT_SEGMENTS_H
#define UNIT_SEGMENTS_H

#include "unit.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/segment.h"

#define ID 0x1234567890

static const char *instance(void)
{
    return unit_prefix() + strlen("shmview.");
}

/* As registry_reserve() makes it. */
static inline struct segment *fresh(uint64_t size, bool lock)
{
    struct segment *s = calloc(1, sizeof *s);
    s->id = ID;
    s->size = size;
    s->lock = lock;
    s->named = true;
    snprintf(s->name, sizeof s->name, "seg");
    snprintf(s->data.name, sizeof s->data.name, "/%s.seg", unit_prefix());
    segment_object_name(s, instance(), "control", s->control.name);
    segment_object_name(s, instance(), "liveness", s->liveness.name);
    return s;
}

static inline struct segment *make(uint64_t size, bool lock)
{
    struct segment *s = fresh(size, lock);
    struct object_space space;
    ck_assert_int_eq(segment_allocate(s, NULL, &space), 0);
    return s;
}

/* The bytes of an object, mapped to look at. */
static inline void *look(const struct object *o, size_t bytes)
{
    int fd = object_open(o, O_RDWR);
    ck_assert_int_ge(fd, 0);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    close(fd);
    return p;
}

static inline uint64_t size_of(const struct object *o)
{
    struct stat st;
    int fd = object_open(o, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    close(fd);
    return (uint64_t)st.st_size;
}

static inline struct wire_attachment attach(struct segment *s, int64_t access)
{
    struct wire_attachment a;
    struct frame_descriptors fds;
    ck_assert_int_eq(segment_attach(s, access, &a, &fds), 0);
    return a;
}

#endif
