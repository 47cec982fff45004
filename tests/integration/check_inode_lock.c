/* SPDX-License-Identifier: Apache-2.0 */
/* A client that holds the locks of the inodes of a sealed segment, by a write() whose memory never
 * comes, delays nobody: the daemon does all its work on that segment without these locks. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <shmview/describe.h>
#include <shmview/layout.h>

#include "support/await.h"
#include "support/backing.h"
#include "support/child.h"
#include "support/client.h"
#include "support/collapse.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

/* Slots of the first page of a control object; each attachment takes one. */
#define SLOTS_A_PAGE ((4096 - sizeof(struct shmview_control)) / sizeof(struct shmview_slot))
#define MANY         (SLOTS_A_PAGE + 2)
#define BYTES        1500000 /* a huge page has less than 1 MiB beyond them */

static struct daemon d;
static struct shmview_connection *conn;

/* --- The client that holds the locks -------------------------------------- */

/* Returns a descriptor that serves faults of this process in the kernel, too; or -1. */
static int fault_descriptor(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool locks_can_be_held(void)
{
    int fd = fault_descriptor();
    if (fd < 0)
        puts("skipped: only root can handle faults in system calls (userfaultfd)");
    else
        close(fd);
    return fd >= 0;
}

struct holder {
    pthread_t thread;
    int fd;     /* of the object */
    void *page; /* which never comes */
};

static void *hold(void *arg)
{
    const struct holder *h = arg;
    (void)!pwrite(h->fd, h->page, 8, 0);
    return NULL;
}

/* Lets a thread begin a write() to the object. Returns when it holds the lock of the inode. */
static void hold_lock(struct holder *h, int faults, int fd)
{
    struct uffd_msg message;
    h->fd = fd;
    h->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(h->page, MAP_FAILED);
    struct uffdio_register range = {.range = {(uintptr_t)h->page, 4096},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    ck_assert_int_eq(ioctl(faults, UFFDIO_REGISTER, &range), 0);
    ck_assert_int_eq(pthread_create(&h->thread, NULL, hold, h), 0);
    await_readable(faults);
    ck_assert_int_eq(read(faults, &message, sizeof message), sizeof message);
    ck_assert_int_eq(message.event, UFFD_EVENT_PAGEFAULT);
    ck_assert_uint_eq(message.arg.pagefault.address, (uintptr_t)h->page);
}

/* Attaches "s" and holds the locks of its data and of its control object until it is killed. */
static void holder(struct child *me, void *arg)
{
    struct raw raw;
    struct holder holders[2];
    (void)arg;
    int faults = fault_descriptor();
    ck_assert_int_ge(faults, 0);
    raw_connect(&raw, d.socket);
    json_t *a = raw_call(&raw, "Attach", "{'name':'s','access':'write'}");
    hold_lock(&holders[0], faults, raw.fds[raw_int(a, "attachment.data")]);
    hold_lock(&holders[1], faults, raw.fds[raw_int(a, "attachment.control")]);
    child_tell(me, 1);
    child_pause(me);
}

/* --- The others ----------------------------------------------------------- */

/* Starts a daemon, and a child that holds the locks of the segment "s". */
static struct shmview_segment *begin(struct child *child)
{
    const struct shmview_create_options sealed = {
        .struct_bytes = sizeof sealed,
        .lifetime = SHMVIEW_MANUAL,
        .backing = SHMVIEW_BACKING_SEALED,
    };
    struct shmview_segment *s;
    daemon_start(&d);
    conn = client_connect(&d);
    OK(shmview_create(conn, "s", BYTES, &sealed, &s));
    child_start(child, holder, NULL);
    child_hear(child, 1);
    return s;
}

/* Removes the segment while its locks are held, and ends all. */
static void end(struct child *child, struct shmview_segment *s)
{
    OK(shmview_remove(conn, "s"));
    OK(shmview_detach(s));
    OK(shmview_detach(client_create(conn, "s", 10))); /* the name is free, and the daemon serves */
    child_kill(child);
    AWAIT(backing_objects(d.pid) == 0);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* Defines a layout, whose index the daemon writes to the control object, and finds it there. */
static void use_layout(struct shmview_segment *s, const char *name)
{
    OK(shmview_define(s, name, NULL, 0));
    OK(shmview_lock(s));
    OK(shmview_switch(s, name));
    OK(shmview_unlock(s));
}

START_TEST(defined_and_grown)
{
    struct child child;
    struct shmview_segment *many[MANY];
    if (!locks_can_be_held())
        return;
    struct shmview_segment *s = begin(&child);
    use_layout(s, "layout");
    for (size_t i = 0; i < MANY; i++) /* the control object needs a second page */
        many[i] = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_lock(many[MANY - 1]));
    OK(shmview_unlock(many[MANY - 1]));
    for (size_t i = 0; i < MANY; i++)
        OK(shmview_detach(many[i]));
    end(&child, s);
}
END_TEST

START_TEST(repaired)
{
    struct child child;
    struct raw raw;
    if (!locks_can_be_held())
        return;
    struct shmview_segment *s = begin(&child);
    raw_connect(&raw, d.socket);
    json_t *a = raw_call(&raw, "Attach", "{'name':'s','access':'write'}");
    struct shmview_control *control =
        mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED,
             raw.fds[raw_int(a, "attachment.control")], 0);
    ck_assert_ptr_ne(control, MAP_FAILED);
    const struct shmview_control before = *control;
    memset(control, 0xff, offsetof(struct shmview_control, pad0));
    AWAIT(daemon_said(&d, "it is repaired"));
    AWAIT(memcmp(control, &before, offsetof(struct shmview_control, pad0)) == 0);
    munmap(control, sizeof *control);
    json_decref(a);
    raw_close_fds(&raw);
    raw_close(&raw);
    ck_assert_int_eq(shmview_lock(s), SHMVIEW_OWNER_DIED); /* bytes may have been lost */
    OK(shmview_unlock(s));
    use_layout(s, "layout");
    end(&child, s);
}
END_TEST

/* A client with access peek makes the data larger, which a check of the segment finds. */
START_TEST(a_huge_page_across_the_end)
{
    struct child child;
    struct raw raw;
    if (!locks_can_be_held())
        return;
    struct shmview_segment *s = begin(&child);
    raw_connect(&raw, d.socket);
    json_decref(raw_call(&raw, "Attach", "{'name':'s','access':'peek'}"));
    if (collapse(raw.fds[0])) {
        struct pollfd reply = {.fd = raw.socket, .events = POLLIN};
        ck_assert(raw_send_call(&raw, "Attach", "{'name':'s','access':'peek'}"));
        ck_assert_int_eq(poll(&reply, 1, 1000), 1);
        json_decref(raw_receive_success(&raw));
    }
    raw_close_fds(&raw);
    raw_close(&raw);
    ck_assert(!daemon_said(&d, "it is repaired"));
    end(&child, s);
}
END_TEST

START_TEST(known_to_the_next_daemon)
{
    struct child child;
    if (!locks_can_be_held())
        return;
    struct shmview_segment *s = begin(&child);
    use_layout(s, "first");
    daemon_kill(&d);
    daemon_restart(&d);
    use_layout(s, "second");
    OK(shmview_detach(client_attach(conn, "s", SHMVIEW_WRITE)));
    end(&child, s);
}
END_TEST

/* --- Only such segments ---------------------------------------------------- */

START_TEST(only_sealed_segments)
{
    struct shmview_create_options file = {.struct_bytes = sizeof file,
                                          .backing = SHMVIEW_BACKING_FILE};
    struct shmview_segment *s;
    const struct shmview_description *found;
    daemon_start_configured(&d, "/dev/null");
    conn = client_connect(&d);
    struct shmview_segment *old = client_create(conn, "old", 10);
    daemon_kill(&d);
    daemon_configure("{'only_sealed':true,'segments':[{'name':'declared','size':100}]}");
    snprintf(d.config, sizeof d.config, "%s", daemon_config_path());
    daemon_restart(&d);
    REFUSED(shmview_create(conn, "s", 10, &file, &s), INVALID, "allows only sealed segments");
    OK(shmview_create(conn, "s", 10, NULL, &s));
    static const struct {
        const char *name;
        uint32_t backing;
    } segments[] = {{"s", SHMVIEW_BACKING_SEALED},
                    {"declared", SHMVIEW_BACKING_SEALED},
                    {"old", SHMVIEW_BACKING_FILE}}; /* an earlier one stays as it is */
    for (size_t i = 0; i < 3; i++) {
        OK(shmview_describe(conn, segments[i].name, &found));
        ck_assert_uint_eq(found->backing, segments[i].backing);
        shmview_description_free(found);
    }
    OK(shmview_remove(conn, "declared"));
    OK(shmview_detach(s));
    OK(shmview_detach(old));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    unlink(daemon_config_path());
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(defined_and_grown),          SUITE_TEST(repaired),
        SUITE_TEST(a_huge_page_across_the_end), SUITE_TEST(known_to_the_next_daemon),
        SUITE_TEST(only_sealed_segments),       SUITE_END,
    };
    return suite_main("inode lock", tests);
}
