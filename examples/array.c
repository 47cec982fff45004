/* SPDX-License-Identifier: Apache-2.0 */
/* array - two processes, ten bytes, three ways to see them.
 *
 * The first process creates a segment and sums it as int16. It starts a second program, which knows
 * only the name of the segment and fills it with 0, 1, 2, 3, 4. Then the first process looks at the
 * same bytes as int32 and int8.
 *
 * No daemon needs to run: the library starts one, which ends when it is idle.
 *
 * Build with: cc array.c $(pkg-config --cflags --libs shmview) */
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

/* Ends the program with the library's error text if a call failed. Nothing has to be released
 * first: the attachments of a process end with it. */
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

/* If an owner dies while it has the lock, the next owner gets SHMVIEW_OWNER_DIED, because the bytes
 * may be half written. This program cannot repair them. */
static void take_lock(struct shmview_segment *segment)
{
    int result = shmview_lock(segment);
    must(result, "lock");
    if (result == SHMVIEW_OWNER_DIED)
        errx(1, "another process died while it was writing");
}

/* The library fills a view, which needs no release. A view is no copy: its data pointer leads into
 * the shared memory. */
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

/* Ten is not a multiple of four, so this view has the first eight bytes. */
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

/* A cast that does not fit is refused, and the error text has the reason. */
static void check_refusal(struct shmview_segment *segment)
{
    struct shmview_view view;
    int result = shmview_view_cast(segment, "int32", 0, SHMVIEW_REST, &view);
    expect("a cast of all ten bytes to int32", result, -SHMVIEW_ERR_ILL_SIZED);
    printf("as int32: all %d bytes? refused: %s\n", SEGMENT_BYTES, shmview_error_text());
}

/* The second program: attaches the segment by its name and fills it. */
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

/* Starts this program again, with the name of the segment as its argument. */
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

/* The first program: creates the segment and looks at it three times. */
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
    must(shmview_detach(segment), "detach"); /* the last attachment: the segment ends too */
}

int main(int argc, char **argv)
{
    struct shmview_connection *connection;
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that the lines of both processes appear in order */
    must(shmview_connect(NULL, 0, &connection), "connect");
    if (argc > 1)
        fill(connection, argv[1]);
    else
        create_and_look(connection);
    must(shmview_disconnect(connection), "disconnect");
    return 0;
}
