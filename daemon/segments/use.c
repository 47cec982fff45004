/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/use.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/base/util.h"

int use_begin(struct segment *segment)
{
    if (segment->use)
        return 0;
    struct segment_use *u = calloc(1, sizeof *u);
    if (!u)
        return -ENOMEM;
    u->segment = segment;
    for (int i = 0; i < N_USE_DESCRIPTORS; i++)
        u->fds[i] = -1;
    LIST_INIT(&u->watchers);
    LIST_INIT(&u->attachments);
    segment->use = u;
    return 0;
}

void use_end(struct segment_use *use)
{
    if (use->cached || use->segment->n_attachments > 0)
        return;
    if (use->live)
        munmap(use->live, sizeof *use->live);
    use->segment->use = NULL;
    free(use);
}

void use_close(struct segment_use *use)
{
    for (int i = 0; i < N_USE_DESCRIPTORS; i++)
        close_fdp(&use->fds[i]);
}

void use_leave(struct segment_use *use)
{
    if (!use)
        return;
    if (use->cached) {
        TAILQ_REMOVE(&use->segment->home->recent, use, recent);
        use->segment->home->n_recent--;
    }
    use->cached = false;
    use_close(use);
    use_end(use);
}

/* The segment that was attached longest ago must go. */
void use_cache(struct segment_use *use)
{
    struct segment_home *home = use->segment->home;
    unsigned most = home->max_recent ? home->max_recent : 1;
    if (use->cached)
        TAILQ_REMOVE(&home->recent, use, recent);
    else
        home->n_recent++;
    use->cached = true;
    TAILQ_INSERT_HEAD(&home->recent, use, recent);
    while (home->n_recent > most)
        use_leave(TAILQ_LAST(&home->recent, uses_recent));
}

int use_open(struct segment_use *use, enum use_descriptor which)
{
    static const int flags[] = {O_RDWR, O_RDONLY, O_RDWR, O_RDONLY};
    static const enum segment_part parts[] = {DATA, DATA, CONTROL, LIVENESS};
    struct object object;
    if (use->fds[which] < 0) {
        segment_object(use->segment, parts[which], &object);
        int fd = object_open(&object, flags[which]);
        if (fd < 0)
            return fd;
        use->fds[which] = fd;
    }
    return use->fds[which];
}

int use_map(struct segment_use *use)
{
    struct object object;
    if (use->live)
        return 0;
    segment_object(use->segment, LIVENESS, &object);
    CLEANUP_FD int fd = object_open(&object, O_RDWR);
    return fd < 0 ? fd : use_map_object(use, fd);
}

int use_map_object(struct segment_use *use, int fd)
{
    void *p =
        mmap(NULL, sizeof *use->live, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    use->live = p;
    return 0;
}
