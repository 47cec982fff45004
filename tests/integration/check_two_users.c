/* SPDX-License-Identifier: Apache-2.0 */
/* Another user of the machine interferes with a daemon: takes its names in /dev/shm, opens objects
 * without having the right, and truncates objects. Needs root, to become that user. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/place.h"
#include "support/raw.h"
#include "support/suite.h"

#define STRANGER 65533

static struct daemon d;
static struct shmview_connection *conn;

static void become_stranger(void)
{
    if (setresgid(STRANGER, STRANGER, STRANGER) || setresuid(STRANGER, STRANGER, STRANGER))
        _exit(9);
}

/* The stranger, as well as we, finds the socket. */
static void begin(void)
{
    daemon_start(&d);
    ck_assert_int_eq(chmod(place_directory(), 0711), 0);
    ck_assert_int_eq(chmod(d.socket, 0666), 0);
    conn = client_connect(&d);
}

static void end(void)
{
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static void path_of(char path[300], const char *part)
{
    snprintf(path, 300, "/dev/shm/shmview.%s/%s", d.instance, part);
}

/* --- Names --------------------------------------------------------------- */

enum kind {
    FILE_OF_HIS,
    LOCKED_FILE,
    LINK,
    FIFO,
    DIRECTORY,
    N_KINDS
};

struct place {
    char path[300];
    enum kind kind;
};

/* Takes the name, and stays. */
static void squat(struct child *me, void *arg)
{
    const struct place *place = arg;
    int fd = -1;
    become_stranger();
    if (place->kind == LINK)
        ck_assert_int_eq(symlink("/etc/passwd", place->path), 0);
    else if (place->kind == FIFO)
        ck_assert_int_eq(mkfifo(place->path, 0666), 0);
    else if (place->kind == DIRECTORY)
        ck_assert_int_eq(mkdir(place->path, 0777), 0);
    else
        ck_assert_int_ge(fd = open(place->path, O_CREAT | O_EXCL | O_RDWR, 0666), 0);
    if (place->kind == LOCKED_FILE)
        ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    child_tell(me, 1);
    child_pause(me);
}

static void take_name(struct child *child, struct place *place)
{
    child_start(child, squat, place);
    child_hear(child, 1);
}

/* The file still exists and belongs to the other user. Then removes it. */
static void give_name_back(struct child *child, const struct place *place)
{
    struct stat st;
    ck_assert_int_eq(lstat(place->path, &st), 0);
    ck_assert_uint_eq(st.st_uid, STRANGER);
    ck_assert(!S_ISREG(st.st_mode) || st.st_size == 0);
    ck_assert_int_eq(remove(place->path), 0);
    child_kill(child);
}

/* Another user has the name of the directory: the objects lie in one with a random name, which
 * later daemons find, also after the name is free again. */
START_TEST(the_name_of_the_directory_is_taken)
{
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct place place = {.kind = (enum kind)kind};
        struct child child;
        char arguments[200], text[1000], plain[sizeof d.instance];
        daemon_start(&d);
        strcpy(plain, d.instance);
        path_of(place.path, "");
        place.path[strlen(place.path) - 1] = '\0';
        daemon_stop(&d);
        take_name(&child, &place);
        daemon_restart(&d);
        ck_assert(daemon_said(&d, "belongs to another user: the objects of this instance are in"));
        /* one at a time all the same */
        snprintf(arguments, sizeof arguments, "--socket %s", d.socket);
        ck_assert_int_eq(daemon_run(arguments, text, sizeof text), 1);
        ck_assert_msg(strstr(text, "another shmviewd serves it"), "%s", text);
        conn = client_connect(&d);
        struct shmview_segment *s = client_create(conn, "s", 100);
        strcpy(shmview_data(s), "bytes");
        OK(shmview_lock(s));
        for (int i = 0; i < 2; i++) {
            daemon_kill(&d);
            if (i == 1)
                give_name_back(&child, &place);
            daemon_restart(&d);
            struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
            ck_assert_str_eq(shmview_data(other), "bytes");
            REFUSED(shmview_trylock(other), TIMED_OUT, "");
            OK(shmview_detach(other));
        }
        OK(shmview_unlock(s));
        OK(shmview_detach(s));
        OK(shmview_disconnect(conn));
        daemon_stop(&d);
        ck_assert_uint_eq(place_objects(plain, NULL, 0), 0);
    }
}
END_TEST

/* Others see the directory, and nothing of what is in it. */
static void look_in(struct child *me, void *arg)
{
    const char *path = arg;
    struct stat st;
    become_stranger();
    ck_assert_ptr_null(opendir(path));
    ck_assert_int_eq(errno, EACCES);
    ck_assert_int_eq(lstat(path, &st), 0);
    char path_in[300];
    path_of(path_in, "s");
    ck_assert_int_eq(lstat(path_in, &st), -1);
    ck_assert_int_eq(errno, EACCES);
    child_tell(me, 1);
}

START_TEST(names_and_sizes_are_not_shown)
{
    struct stat st;
    char path[300];
    struct child child;
    umask(0);
    begin();
    struct shmview_segment *s = client_create(conn, "s", 100);
    path_of(path, "");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    child_start(&child, look_in, path);
    child_hear(&child, 1);
    child_wait(&child);
    OK(shmview_detach(s));
    end();
}
END_TEST

/* --- The way to the socket ----------------------------------------------- */

/* What the stranger puts below the directory that all may write to. */
enum trap {
    TRAP_DIRECTORY, /* of the other user, in place of the parent of the instance's directory */
    TRAP_LINK,      /* to a directory of ours */
    TRAP_REGISTRY,
    TRAP_REGISTRY_LINK,
    TRAP_LOCK,
    N_TRAPS
};

static void set_trap(struct child *me, void *arg)
{
    char path[300];
    const char *below = place_directory();
    become_stranger();
    umask(0);
    switch (*(enum trap *)arg) {
    case TRAP_DIRECTORY:
        snprintf(path, sizeof path, "%s/run", below);
        ck_assert_int_eq(mkdir(path, 0777), 0);
        break;
    case TRAP_LINK:
        snprintf(path, sizeof path, "%s/run", below);
        ck_assert_int_eq(symlink("ours", path), 0);
        break;
    case TRAP_REGISTRY:
    case TRAP_LOCK:
        snprintf(path, sizeof path, "%s/socket.%s", below,
                 *(enum trap *)arg == TRAP_LOCK ? "lock" : "registry");
        close(open(path, O_CREAT | O_EXCL | O_WRONLY, 0666));
        break;
    default:
        snprintf(path, sizeof path, "%s/socket.registry", below);
        ck_assert_int_eq(symlink("ours/file", path), 0);
    }
    child_tell(me, 1);
}

/* The daemon touches nothing of that: it serves nothing there, or sets the file aside, which only
 * root can. */
START_TEST(traps_on_the_way)
{
    static const char *const sockets[] = {"run/socket", "run/socket", "socket", "socket", "socket"};
    static const char *const causes[] = {"it belongs to another user", "or a symbolic link",
                                         "socket.registry.bad, its", "socket.registry.bad, its",
                                         "socket.lock: "};
    char ours[300], file[320], arguments[400], text[2000];
    struct stat st;
    ck_assert_int_eq(chmod(place_directory(), 01777), 0);
    snprintf(ours, sizeof ours, "%s/ours", place_directory());
    snprintf(file, sizeof file, "%s/file", ours);
    for (enum trap trap = 0; trap < N_TRAPS; trap++) {
        struct child child;
        ck_assert_int_eq(mkdir(ours, 0700), 0);
        close(open(file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
        child_start(&child, set_trap, &trap);
        child_hear(&child, 1);
        child_wait(&child);
        snprintf(arguments, sizeof arguments, "--idle-exit 1 --socket %s/%s", place_directory(),
                 sockets[trap]);
        bool is_served = trap == TRAP_REGISTRY || trap == TRAP_REGISTRY_LINK;
        ck_assert_int_eq(daemon_run(arguments, text, sizeof text), !is_served);
        ck_assert_msg(strstr(text, causes[trap]), "%s", text);
        ck_assert_int_eq(stat(file, &st), 0);
        ck_assert_int_eq(st.st_size, 0);
        ck_assert_int_eq(remove(file), 0);
        ck_assert_int_eq(remove(ours), 0); /* nothing was made in it */
        static const char *const names[] = {"run", "socket.registry", "socket.lock",
                                            "socket.registry.bad"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            snprintf(text, sizeof text, "%s/%s", place_directory(), names[i]);
            remove(text);
        }
    }
}
END_TEST

/* A directory that others may write to, and that is not sticky, above the socket or further up. */
START_TEST(open_directories)
{
    static const mode_t modes[] = {0777, 0775, 0722, 01777, 0755};
    char inner[300], arguments[400], text[1000];
    snprintf(inner, sizeof inner, "%s/inner", place_directory());
    for (int further = 0; further < 2; further++)
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
            ck_assert_int_eq(chmod(place_directory(), modes[i]), 0);
            snprintf(arguments, sizeof arguments, "--idle-exit 1 --socket %s/%ssocket",
                     place_directory(), further ? "inner/" : "");
            bool is_refused = i < 3;
            ck_assert_int_eq(daemon_run(arguments, text, sizeof text), is_refused);
            ck_assert_int_eq(strstr(text, "others may write to it") != NULL, is_refused);
            ck_assert_int_eq(access(inner, F_OK) == 0, further && !is_refused);
            rmdir(inner);
        }
}
END_TEST

/* --- Objects without a right --------------------------------------------- */

static void look_around(struct child *me, void *arg)
{
    struct raw raw;
    int inherited = *(int *)arg;
    char path[300];
    become_stranger();
    snprintf(path, sizeof path, "/proc/self/fd/%d", inherited);
    ck_assert_int_eq(open(path, O_RDWR), -1); /* read-only stays read-only */
    path_of(path, "s");
    ck_assert_int_eq(open(path, O_RDONLY), -1);
    ck_assert_int_eq(truncate(path, 0), -1);
    ck_assert_int_eq(unlink(path), -1);
    snprintf(path, sizeof path, "%s.registry", d.socket);
    ck_assert_int_eq(open(path, O_RDONLY), -1);
    snprintf(path, sizeof path, "%s.lock", d.socket);
    ck_assert_int_eq(open(path, O_RDONLY), -1);
    ck_assert_int_eq(unlink(path), -1);
    raw_connect(&raw, d.socket);
    raw_refused(&raw, "Attach", "{'name':'s','access':'peek'}", "SegmentNotFound", "");
    raw_refused(&raw, "Attach", "{'name':'none','access':'peek'}", "SegmentNotFound", "");
    raw_refused(&raw, "Remove", "{'name':'s'}", "SegmentNotFound", "");
    json_t *list = raw_call(&raw, "List", "{}");
    ck_assert_uint_eq(json_array_size(json_object_get(list, "segments")), 0);
    json_decref(list);
    /* somebody else's attachments are not to be had by claiming them */
    list = raw_call(&raw, "Claim", "{'client':1,'held':[4294967297]}");
    ck_assert_uint_eq(json_array_size(json_object_get(list, "held")), 0);
    json_decref(list);
    raw_close(&raw);
    child_tell(me, 1);
}

START_TEST(nothing_is_to_be_had)
{
    char path[300];
    struct child child;
    begin();
    struct shmview_segment *s = client_create(conn, "s", 100);
    path_of(path, "s");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    child_start(&child, look_around, &fd);
    child_hear(&child, 1);
    child_wait(&child);
    close(fd);
    OK(shmview_detach(s));
    end();
}
END_TEST

/* --- Truncation ---------------------------------------------------------- */

/* Cuts every object of "cut" to nothing and beyond, as one who may write can. */
static void cut(const char *id)
{
    static const char *const parts[] = {"control", "data"};
    for (int i = 0; i < 2; i++) {
        char part[64], path[300];
        snprintf(part, sizeof part, "+%s.control", id);
        path_of(path, i ? "cut" : part);
        ck_assert_msg(truncate(path, 0) == 0, "%s", parts[i]);
    }
}

static void use_again(struct raw *raw)
{
    for (int i = 0; i < 5; i++) {
        raw_send_call(raw, "Attach", "{'name':'cut','access':'write'}");
        json_decref(raw_receive_success(raw));
        raw_close_fds(raw);
    }
}

START_TEST(truncated_under_a_running_daemon_and_before_the_next)
{
    struct raw raw;
    char id[32];
    begin();
    struct shmview_segment *good = client_create(conn, "good", 100), *s;
    strcpy(shmview_data(good), "good");
    OK(shmview_lock(good));
    OK(shmview_detach(client_create_with(conn, "cut", 10000, SHMVIEW_MANUAL, 0)));
    raw_connect(&raw, d.socket);
    json_t *told = raw_call(&raw, "Describe", "{'name':'cut'}");
    snprintf(id, sizeof id, "%jd", (intmax_t)raw_int(told, "segment.id"));
    json_decref(told);
    for (int i = 0; i < 2; i++) {
        if (i == 1)
            daemon_kill(&d);
        cut(id);
        if (i == 1) {
            raw_close(&raw);
            daemon_restart(&d);
            raw_connect(&raw, d.socket);
        }
        use_again(&raw);
        s = client_attach(conn, "cut", SHMVIEW_WRITE);
        ck_assert_int_eq(((char *)shmview_data(s))[9999], 0);
        ck_assert_int_eq(shmview_lock(s), 1);
        OK(shmview_unlock(s));
        OK(shmview_detach(s));
    }
    raw_close(&raw);
    ck_assert(daemon_said(&d, "took over 2 segments; 0 were lost"));
    OK(shmview_trylock(good));
    OK(shmview_unlock(good));
    OK(shmview_unlock(good));
    OK(shmview_detach(good));
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(the_name_of_the_directory_is_taken),
        SUITE_TEST(names_and_sizes_are_not_shown),
        SUITE_TEST(traps_on_the_way),
        SUITE_TEST(open_directories),
        SUITE_TEST(nothing_is_to_be_had),
        SUITE_TEST(truncated_under_a_running_daemon_and_before_the_next),
        SUITE_END,
    };
    if (geteuid() != 0) {
        puts("needs root, to become another user");
        return 77;
    }
    return suite_main("two_users", tests);
}
