/* SPDX-License-Identifier: Apache-2.0 */
/* array - two processes, ten bytes, three ways to see them.
 *
 * The first process creates a segment and sums it as int16. It starts a second
 * program, which knows nothing but the name of the segment: that one fills it
 * with 0, 1, 2, 3, 4. Then the first looks at the same bytes as int32 and int8.
 *
 * Start no daemon for this: if none runs, the library starts one that leaves by
 * itself. Build with: cc array.c $(pkg-config --cflags --libs shmview) */
#include <err.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmview/shmview.h>

#define SEGMENT_BYTES 10

extern char **environ;

/* Ends the program, in the library's own words, if a call failed. Nothing has to
 * be cleaned up first: what a process attached is given back when it ends. */
static void must(int result, const char *what)
{
    if (result < 0)
        errx(1, "%s: %s", what, shmview_error_text());
}

static void expect(const char *what, int64_t found, int64_t wanted)
{
    if (found != wanted)
        errx(1, "%s is %" PRId64 ", not %" PRId64, what, found, wanted);
}

/* The lock outlives its holder: if that one died inside, the next is told. */
static void take_lock(struct shmview_segment *segment)
{
    int result = shmview_lock(segment);
    must(result, "lock");
    if (result == SHMVIEW_OWNER_DIED)
        errx(1, "another process died while it was writing");
}

/* A view is filled by the library and needs no release. It is no copy either:
 * its data pointer points into the shared memory. */
static int64_t sum_int16(struct shmview_segment *segment)
{
    struct shmview_view view;
    must(shmview_view_cast(segment, "int16", 0, SHMVIEW_REST, &view), "int16 view");

    const int16_t *element = SHMVIEW_DATA(int16_t, &view);
    int64_t sum = 0;
    take_lock(segment);
    for (ptrdiff_t i = 0; i < view.shape[0]; i++)
        sum += element[i];
    must(shmview_unlock(segment), "unlock");
    printf("as int16: %td elements, sum %" PRId64 "\n", view.shape[0], sum);
    return sum;
}

/* Four does not divide ten, so int32 sees the first eight bytes. */
static int64_t sum_int32(struct shmview_segment *segment)
{
    struct shmview_view view;
    must(shmview_view_cast(segment, "int32", 0, 8, &view), "int32 view");

    const int32_t *element = SHMVIEW_DATA(int32_t, &view);
    int64_t sum = 0;
    take_lock(segment);
    for (ptrdiff_t i = 0; i < view.shape[0]; i++)
        sum += element[i];
    must(shmview_unlock(segment), "unlock");
    printf("as int32: %td elements, sum %" PRId64 "\n", view.shape[0], sum);
    return sum;
}

static void check_bytes(struct shmview_segment *segment)
{
    static const int8_t wanted[SEGMENT_BYTES] = {0, 0, 1, 0, 2, 0, 3, 0, 4, 0};
    struct shmview_view view;
    must(shmview_view_cast(segment, "int8", 0, SHMVIEW_REST, &view), "int8 view");

    int8_t copy[SEGMENT_BYTES];
    take_lock(segment);
    memcpy(copy, view.data, sizeof copy);
    must(shmview_unlock(segment), "unlock");

    printf("as int8:  %td elements:", view.shape[0]);
    for (int i = 0; i < SEGMENT_BYTES; i++)
        printf(" %d", copy[i]);
    printf("\n");
    for (int i = 0; i < SEGMENT_BYTES; i++)
        expect("a byte", copy[i], wanted[i]);
}

/* A cast that does not fit is refused, and the text says why. */
static void check_refusal(struct shmview_segment *segment)
{
    struct shmview_view view;
    int result = shmview_view_cast(segment, "int32", 0, SHMVIEW_REST, &view);
    expect("a cast of all ten bytes to int32", result, -SHMVIEW_ERR_ILL_SIZED);
    printf("as int32: all %d bytes? refused: %s\n", SEGMENT_BYTES, shmview_error_text());
}

/* What the second program does. */
static void fill(struct shmview_connection *connection, const char *name)
{
    struct shmview_segment *segment;
    struct shmview_view view;
    must(shmview_attach(connection, name, SHMVIEW_WRITE, 0, &segment), "attach");
    must(shmview_view_cast(segment, "int16", 0, SHMVIEW_REST, &view), "int16 view");

    int16_t *element = SHMVIEW_DATA(int16_t, &view);
    take_lock(segment);
    for (ptrdiff_t i = 0; i < view.shape[0]; i++)
        element[i] = (int16_t)i;
    must(shmview_unlock(segment), "unlock");
    printf("process %d attached '%s' and wrote 0 1 2 3 4 as int16\n", getpid(), name);
    must(shmview_detach(segment), "detach");
}

/* Starts this program again, with the segment's name for an argument. */
static void run_second_program(const char *name)
{
    char *const argv[] = {"array", (char *)name, NULL};
    pid_t pid;
    int status;
    if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) != 0)
        errx(1, "cannot start a second process");
    if (waitpid(pid, &status, 0) != pid || status != 0)
        errx(1, "the second process failed");
}

/* What the first program does. */
static void create_and_look(struct shmview_connection *connection)
{
    struct shmview_segment *segment;
    char name[32];
    snprintf(name, sizeof name, "array-%d", getpid());
    must(shmview_create(connection, name, SEGMENT_BYTES, NULL, &segment), "create");
    printf("process %d created '%s', %" PRIu64 " bytes\n", getpid(), name, shmview_size(segment));

    expect("the sum before", sum_int16(segment), 0);
    run_second_program(name);
    expect("the sum after", sum_int32(segment), 262146); /* 0x00010000 + 0x00030002 */
    check_bytes(segment);
    check_refusal(segment);
    must(shmview_detach(segment), "detach"); /* the last one to leave: the segment goes */
}

int main(int argc, char **argv)
{
    struct shmview_connection *connection;
    setvbuf(stdout, NULL, _IOLBF, 0); /* lines of both processes in the order they are said */
    must(shmview_connect(NULL, 0, &connection), "connect");
    if (argc > 1)
        fill(connection, argv[1]);
    else
        create_and_look(connection);
    must(shmview_disconnect(connection), "disconnect");
    return 0;
}
