/* SPDX-License-Identifier: Apache-2.0 */
/* A client for the tests under systemd. It reads one command a line from standard input, and
 * writes one line of result for each. It connects as any program does: to the user's daemon or
 * the system's.
 *
 *    create NAME SIZE | seal NAME SIZE | own NAME SIZE
 *                        the second makes a sealed segment, the third one of its own memory
 *    attach NAME r|w | detach | remove NAME | ping
 *    share NAME GROUP    access for that group, to read and write
 *    lock | trylock | unlock
 *    fill BYTE           sets each byte of the segment
 *    all BYTE            checks each byte; prints the first that differs
 *    rubbish             sends what is not a request, on another connection */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <shmview/shmview.h>

#define SYSTEM_SOCKET "/run/shmviewd/io.shmview"
#define TOLD          100 /* the result was printed in words */

static struct shmview_connection *connection;
static struct shmview_segment *segment;

static int create(const char *name, const char *size, uint32_t backing, uint32_t flags)
{
    struct shmview_create_options options = {.struct_bytes = sizeof options,
                                             .lifetime = SHMVIEW_MANUAL,
                                             .backing = backing,
                                             .flags = flags};
    return shmview_create(connection, name, strtoull(size, NULL, 10), &options, &segment);
}

static int share(const char *name, const char *group)
{
    const struct group *g = getgrnam(group);
    struct shmview_access_change change = {
        .struct_bytes = sizeof change,
        .set = SHMVIEW_SET_GROUP | SHMVIEW_SET_MODE,
        .group = g ? g->gr_gid : 0,
        .mode = 0660,
    };
    return shmview_set_access(connection, name, &change);
}

static int all(int byte)
{
    const unsigned char *data = shmview_data(segment);
    uint64_t size = shmview_size(segment);
    for (uint64_t i = 0; i < size; i++)
        if (data[i] != byte) {
            printf("byte %llu is %d\n", (unsigned long long)i, data[i]);
            return TOLD;
        }
    return 0;
}

/* Sends rubbish, and waits until the daemon has hung up. */
static int rubbish(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SYSTEM_SOCKET};
    char byte;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) || write(fd, "rubbish", 8) != 8 ||
        read(fd, &byte, 1) != 0) {
        puts("not hung up on");
        close(fd);
        return TOLD;
    }
    close(fd);
    return 0;
}

static int detach(void)
{
    int r = shmview_detach(segment);
    if (r == 0)
        segment = NULL;
    return r;
}

/* Carries out a command. Returns the result of a call of the library, or TOLD. */
static int obey(const char *command, const char *a, const char *b)
{
    if (strcmp(command, "create") == 0)
        return create(a, b, SHMVIEW_BACKING_FILE, 0);
    if (strcmp(command, "seal") == 0)
        return create(a, b, SHMVIEW_BACKING_SEALED, 0);
    if (strcmp(command, "own") == 0)
        return create(a, b, SHMVIEW_BACKING_SEALED, SHMVIEW_OWN_MEMORY);
    if (strcmp(command, "attach") == 0)
        return shmview_attach(connection, a, *b == 'w' ? SHMVIEW_WRITE : SHMVIEW_READ, 0, &segment);
    if (strcmp(command, "share") == 0)
        return share(a, b);
    if (strcmp(command, "remove") == 0)
        return shmview_remove(connection, a);
    if (strcmp(command, "ping") == 0)
        return shmview_ping(connection);
    if (strcmp(command, "rubbish") == 0)
        return rubbish();
    if (!segment) {
        puts("no segment");
        return TOLD;
    }
    if (strcmp(command, "detach") == 0)
        return detach();
    if (strcmp(command, "lock") == 0)
        return shmview_lock(segment);
    if (strcmp(command, "trylock") == 0)
        return shmview_trylock(segment);
    if (strcmp(command, "unlock") == 0)
        return shmview_unlock(segment);
    if (strcmp(command, "fill") == 0) {
        memset(shmview_data(segment), atoi(a), shmview_size(segment));
        return 0;
    }
    if (strcmp(command, "all") == 0)
        return all(atoi(a));
    puts("what?");
    return TOLD;
}

int main(void)
{
    char line[256], command[16], a[160], b[32];
    setvbuf(stdout, NULL, _IOLBF, 0);
    int r = shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &connection);
    if (r) {
        printf("%s: %s\n", shmview_strerror(r), shmview_error_text());
        return 1;
    }
    puts("connected");
    while (fgets(line, sizeof line, stdin)) {
        command[0] = a[0] = b[0] = '\0';
        sscanf(line, "%15s %159s %31s", command, a, b);
        r = obey(command, a, b);
        if (r < 0)
            printf("%s: %s\n", shmview_strerror(r), shmview_error_text());
        else if (r != TOLD)
            puts(r == SHMVIEW_OWNER_DIED ? "owner died" : "ok");
    }
    return 0;
}
