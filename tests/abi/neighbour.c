/* SPDX-License-Identifier: Apache-2.0 */
/* What the program of one version does with the daemon, and with the program, of another: `make`
 * creates a segment, waits until `use` has counted in it, and looks. Both print nothing but errors.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <shmview/shmview.h>

#define TIMES 1000

static int complain(const char *what)
{
    fprintf(stderr, "%s, version %s: %s\n", what, shmview_version(), shmview_error_text());
    return 1;
}

static int count(struct shmview_segment *segment, struct shmview_view *view)
{
    for (int i = 0; i < TIMES; i++) {
        if (shmview_lock(segment) < 0)
            return complain("lock");
        ++*(int *)shmview_at(view, (const ptrdiff_t[]){0});
        if (shmview_unlock(segment))
            return complain("unlock");
    }
    return shmview_notify(segment) ? complain("notify") : 0;
}

int main(int argc, char **argv)
{
    const int64_t shape[] = {100};
    const struct shmview_view_spec spec = {.name = "A", .format = "i", .ndim = 1, .shape = shape};
    struct shmview_connection *connection;
    struct shmview_segment *segment;
    struct shmview_view view;
    bool makes = argc == 2 && strcmp(argv[1], "make") == 0;
    if (shmview_connect(NULL, 0, &connection))
        return complain("connect");
    if (makes) {
        if (shmview_create(connection, "neighbour", 400, NULL, &segment) ||
            shmview_define(segment, "ints", &spec, 1) || shmview_lock(segment) < 0 ||
            shmview_switch(segment, "ints") || shmview_unlock(segment))
            return complain("create");
    } else if (shmview_attach(connection, "neighbour", SHMVIEW_WRITE, 0, &segment)) {
        return complain("attach");
    }
    if (shmview_view_open(segment, "ints", "A", &view))
        return complain("view");
    if (makes) {
        puts("made");
        fflush(stdout);
    }
    if (count(segment, &view))
        return 1;
    if (makes && getchar() != 'u')
        return complain("nobody used it");
    if (makes && *(int *)shmview_at(&view, (const ptrdiff_t[]){0}) != 2 * TIMES) {
        fprintf(stderr, "counted to %d\n", *(int *)shmview_at(&view, (const ptrdiff_t[]){0}));
        return 1;
    }
    return shmview_detach(segment) || shmview_disconnect(connection) ? complain("detach") : 0;
}
