/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline - four processes and three stages, through which images go without a copy.
 *
 *     camera    draws images, or reads PPM files          publishes all in stage 0
 *     detector  compares each image with the one before   passes on to stage 1 what has changed
 *     framer    looks where the ball is                   passes on to stage 2 what is in the
 * middle encoder   writes PPM files
 *
 * All stages share the slots of one stream. An image stays in its slot from the camera to the
 * encoder: a stage passes a number on, and the slot is free when the last stage is done with it.
 * The stream is lossless, so that the camera waits for the slowest stage when the slots run out. */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmview/shmview.h>
#include <shmview/stream.h>

#include "image.h"

#define N_IMAGES    20 /* if the camera draws them */
#define HEIGHT      48
#define WIDTH       64
#define N_SLOTS     6
#define PATIENCE_NS INT64_C(10000000000)

enum {
    STAGE_ALL,
    STAGE_CHANGED,
    STAGE_CENTRED,
    N_STAGES
};

/* In the user bytes of each frame. It is the same in all stages. */
struct label {
    uint32_t image; /* from 0 */
};

/* A process that reads a stage. */
struct worker {
    const char *name;
    uint32_t stage;
    /* Decides what happens to an image. before is the image before, or NULL. Returns whether it is
     * passed on to the next stage, or, at the last one, was written. */
    int (*wants)(const struct worker *me, const struct shmview_view *image,
                 const struct shmview_view *before, unsigned number);
    const char *folder;
};

static int must(int result, const char *what)
{
    if (result < 0)
        errx(1, "%s: %s", what, shmview_error_text());
    return result;
}

/* --- What the stages do -------------------------------------------------- */

static int has_changed(const struct worker *me, const struct shmview_view *image,
                       const struct shmview_view *before, unsigned number)
{
    (void)me, (void)number;
    return before && image_difference(image, before) > 0;
}

static int is_centred(const struct worker *me, const struct shmview_view *image,
                      const struct shmview_view *before, unsigned number)
{
    (void)me, (void)before, (void)number;
    int64_t column = image_bright_column(image);
    return column >= image->shape[1] / 4 && column < image->shape[1] - image->shape[1] / 4;
}

static int encode(const struct worker *me, const struct shmview_view *image,
                  const struct shmview_view *before, unsigned number)
{
    char path[4096];
    (void)before;
    snprintf(path, sizeof path, "%s/image-%02u.ppm", me->folder, number);
    image_save(path, image);
    return 1;
}

/* --- Readers ------------------------------------------------------------- */

/* Takes the next frame. Returns 0 at the end of the stage. */
static int take(const struct worker *me, struct shmview_stream *stream, struct shmview_frame *frame,
                struct shmview_view *image)
{
    int result = must(shmview_stream_take(stream, shmview_deadline(PATIENCE_NS), frame), me->name);
    if (result == SHMVIEW_WRITER_DIED)
        errx(1, "%s: the camera has died", me->name);
    if (result == SHMVIEW_STREAM_ENDED)
        return 0;
    must(shmview_frame_view(frame, "image", image), me->name);
    return 1;
}

/* Reads the stage to its end. Holds the image before while it looks at an image. The numbers of the
 * images that are passed on go to the terminal. */
static void work(const struct worker *me, struct shmview_stream *stream)
{
    struct shmview_frame frame, before = {0};
    struct shmview_view image, image_before;
    unsigned n_taken = 0;
    char line[1024];
    int n = 0;
    for (; take(me, stream, &frame, &image); n_taken++) {
        unsigned number = ((const struct label *)frame.user)->image;
        if (me->wants(me, &image, before.stream ? &image_before : NULL, number)) {
            if (me->stage + 1 < N_STAGES)
                must(shmview_frame_pass(&frame, me->stage + 1, NULL), "pass");
            if (n < (int)sizeof line - 12)
                n += snprintf(line + n, sizeof line - (size_t)n, " %u", number);
        }
        shmview_frame_release(&before);
        before = frame;
        image_before = image;
    }
    shmview_frame_release(&before);
    printf("%-9s took %2u images, %s%s\n", me->name, n_taken,
           me->stage + 1 < N_STAGES ? "passed on" : "wrote", n ? line : " none");
    fflush(stdout); /* before the next stage ends */
}

/* Ends the stage after this one, so that its readers do not wait for more. */
static void end_next(const struct worker *me, struct shmview_connection *connection,
                     const char *name)
{
    struct shmview_stream *next;
    char of_stage[80];
    snprintf(of_stage, sizeof of_stage, "%s:%u", name, me->stage + 1);
    must(shmview_stream_open(connection, of_stage, SHMVIEW_WRITE, &next), "open");
    must(shmview_stream_end(next), "end");
    must(shmview_stream_close(next), "close");
}

/* Only a process that may write can pass a frame on. Tells through fd that it has joined. */
static void run(const struct worker *me, const char *name, int fd)
{
    int is_last = me->stage + 1 == N_STAGES;
    struct shmview_connection *connection;
    struct shmview_stream *stream;
    char of_stage[80];
    snprintf(of_stage, sizeof of_stage, "%s:%u", name, me->stage);
    must(shmview_connect(NULL, 0, &connection), "connect");
    must(shmview_stream_open(connection, of_stage, is_last ? SHMVIEW_READ : SHMVIEW_WRITE, &stream),
         "open");
    must(shmview_stream_join(stream), "join");
    if (write(fd, "", 1) != 1)
        err(1, "%s", me->name);
    work(me, stream);
    must(shmview_stream_close(stream), "close");
    if (!is_last)
        end_next(me, connection, name);
    must(shmview_disconnect(connection), "disconnect");
}

/* Starts the process, and waits until it has joined its stage: a lossless stream keeps frames only
 * for readers that have joined. */
static void start(const struct worker *worker, const char *name)
{
    int ends[2];
    char joined;
    if (pipe(ends) < 0)
        err(1, "pipe");
    pid_t pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it has nothing to do without its parent */
        close(ends[0]);
        run(worker, name, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], &joined, 1) != 1)
        errx(1, "the %s has failed", worker->name);
    close(ends[0]);
}

/* --- The camera ---------------------------------------------------------- */

static struct shmview_stream *create_stream(struct shmview_connection *connection, const char *name,
                                            struct image_size size)
{
    const int64_t shape[] = {size.height, size.width, 3};
    const struct shmview_view_spec image = {
        .name = "image", .format = "uint8", .ndim = 3, .shape = shape};
    const struct shmview_stream_spec spec = {
        .struct_bytes = sizeof spec,
        .mode = SHMVIEW_LOSSLESS,
        .n_slots = N_SLOTS,
        .n_stages = N_STAGES,
        .views = &image,
        .n_views = 1,
    };
    struct shmview_stream *stream;
    must(shmview_stream_create(connection, name, &spec, &stream), "create");
    return stream;
}

/* Publishes the images of the files, or draws some if there are none. */
static void film(struct shmview_stream *stream, char **files, unsigned n_files)
{
    unsigned n = n_files ? n_files : N_IMAGES;
    for (unsigned i = 0; i < n; i++) {
        struct shmview_frame frame;
        struct shmview_view image;
        must(shmview_stream_loan(stream, shmview_deadline(PATIENCE_NS), &frame), "loan");
        must(shmview_frame_view(&frame, "image", &image), "view");
        if (n_files)
            image_load(files[i], &image);
        else
            image_draw(&image, (int)i);
        *(struct label *)frame.user = (struct label){.image = i};
        frame.user_bytes = sizeof(struct label);
        must(shmview_frame_publish(&frame), "publish");
    }
    printf("%-9s published %u images in %u slots\n", "camera", n, N_SLOTS);
    fflush(stdout);
    must(shmview_stream_end(stream), "end");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        errx(2, "usage: pipeline FOLDER [IMAGE.ppm ...]");
    char **files = argv + 2;
    unsigned n_files = (unsigned)argc - 2;
    struct image_size size = n_files ? image_size_of(files[0]) : (struct image_size){HEIGHT, WIDTH};
    const struct worker workers[] = {
        {"detector", STAGE_ALL, has_changed, NULL},
        {"framer", STAGE_CHANGED, is_centred, NULL},
        {"encoder", STAGE_CENTRED, encode, argv[1]},
    };
    struct shmview_connection *connection;
    char name[32];
    snprintf(name, sizeof name, "pipeline-%d", getpid());
    must(shmview_connect(NULL, 0, &connection), "connect");
    struct shmview_stream *stream = create_stream(connection, name, size);
    for (int i = 0; i < N_STAGES; i++)
        start(&workers[i], name);

    film(stream, files, n_files);
    for (int i = 0; i < N_STAGES; i++) {
        int status;
        if (wait(&status) < 0 || status != 0)
            errx(1, "a stage has failed");
    }
    must(shmview_stream_close(stream), "close");
    must(shmview_disconnect(connection), "disconnect");
    return 0;
}
