/* SPDX-License-Identifier: Apache-2.0 */
/* Segments without a registry, for the tests of segment.c. */
#ifndef UNIT_SEGMENTS_H
#define UNIT_SEGMENTS_H

#include "unit/unit.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/segments/segment.h"
#include "daemon/segments/use.h"
#include "unit/whole.h"

#define ID 0x1234567890

/* Returns a segment as registry_reserve() makes it. */
static inline struct segment *fresh(uint64_t size, bool lock)
{
    static struct segment_home home;
    if (!home.max_watches)
        home_init(&home);
    struct segment *s = segment_new(&home, ID, "seg");
    s->size = size;
    s->lock = lock;
    s->named = true;
    return s;
}

static inline struct segment *make(uint64_t size, bool lock)
{
    struct segment *s = fresh(size, lock);
    struct object_space space;
    ck_assert_int_eq(whole_segment(s, NULL, &space), 0);
    return s;
}

static inline struct object object_of(const struct segment *s, enum segment_part part)
{
    struct object o;
    segment_object(s, part, &o);
    return o;
}

/* Maps the bytes of an object for inspection. */
static inline void *look(const struct segment *s, enum segment_part part, size_t bytes)
{
    struct object o = object_of(s, part);
    int fd = object_open(&o, O_RDWR);
    ck_assert_int_ge(fd, 0);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    close(fd);
    return p;
}

static inline uint64_t size_of(const struct segment *s, enum segment_part part)
{
    struct stat st;
    struct object o = object_of(s, part);
    int fd = object_open(&o, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    close(fd);
    return (uint64_t)st.st_size;
}

static inline struct segment_grip attach(struct segment *s, int64_t access)
{
    struct segment_grip a;
    ck_assert_int_eq(segment_attach(s, access, &a), 0);
    return a;
}

#endif
