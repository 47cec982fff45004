/* SPDX-License-Identifier: Apache-2.0 */
/* The argument NAME[:STAGE][/[LAYOUT:]VIEW][SLICE] of the verbs for data: parses it, attaches the
 * segment, takes its lock, and opens the view.
 *
 *   target_parse -> target_open -> target_view or target_open_view -> ... -> target_close
 *
 * The lock is held from target_open() on, so that the phase, the view and the elements belong
 * together. A verb gives it back early with target_unlock(), if what follows may take long; for
 * elements that it still needs it calls target_copy() first.
 *
 * Of a stream, the views are those of its newest frame, which is held in the place of the lock.
 *
 * Each function that fails has printed the reason. */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include <shmview/describe.h>

#include "cli/data/slice.h"
#include "cli/text/stream.h"

#define TARGET_NAME_BYTES 129 /* of a segment, NUL included */
#define TARGET_VIEW_BYTES 65  /* of a layout or a view */

/* Options that all verbs for data have. */
struct target_options {
    const char *as;   /* --as, or NULL */
    bool any_phase;   /* --any-phase */
    bool no_lock;     /* --no-lock */
    bool has_timeout; /* --timeout */
    int64_t timeout_ns;
};

/* Rows of struct verb_option, which write to the struct target_options *o. */
#define TARGET_OPTIONS(o)                                                                          \
    OPT_TEXT("as", 'a', &(o)->as), OPT_FLAG("any-phase", '\0', &(o)->any_phase),                   \
        OPT_FLAG("no-lock", '\0', &(o)->no_lock),                                                  \
        OPT_TIME("timeout", 't', &(o)->timeout_ns, 0, &(o)->has_timeout)
#define TARGET_HELP                                                                                \
    "  -a, --as FORMAT[LENGTHS]@BYTE  take the bytes as 'f4[10,10]@64', 'u2', '>i4@8'\n"           \
    "      --any-phase           accept a view of any phase\n"                                     \
    "      --no-lock             do not take the lock, although others may write\n"                \
    "  -t, --timeout TIME        wait at most that long for the lock\n"

/* A target, from target_parse() to target_close(). A struct of zeroes is closed. */
struct target {
    struct context *c;
    const struct target_options *how;
    char name[TARGET_NAME_BYTES];
    char stage[3];                  /* ":1" of a stream; "" if the user named none */
    char layout[TARGET_VIEW_BYTES]; /* "" if the user named none */
    char view[TARGET_VIEW_BYTES]; /* "" if the user named none: the bytes, in the form of how->as */
    char found[TARGET_VIEW_BYTES]; /* the layout of the view; valid after target_view() */
    struct slice slice;
    struct shmview_segment *segment;
    struct shmview_phase phase; /* when the lock was taken; generation 0: there is none */
    bool is_locked;
    struct shmview_stream *stream; /* owned; NULL: the segment is no stream */
    struct shmview_frame frame;    /* the newest one; of stream */
    /* The last owner died inside, or this verb is writing and has not finished. target_unlock()
     * then passes the report on to the next owner. */
    bool owner_died;
    struct shmview_segment **copies; /* wrapped memory of target_copy(); owned */
    size_t n_copies;
    const struct shmview_description *description; /* owned; NULL until it is needed */
};

/* Parses text without asking the daemon. c, how and text are borrowed until target_close(). Returns
 * 0 or the exit status. */
int target_parse(struct context *c, const struct target_options *how, const char *text,
                 struct target *ret);

/* Attaches the segment with access SHMVIEW_READ or _WRITE, and takes its lock, shared or
 * exclusively, if it has one and --no-lock was not given. Of a stream, takes the newest frame
 * instead, and refuses _WRITE. Blocks until --timeout. Prints the
 * holders if it has to wait, and the owner that died inside. Returns 0 or the exit status; the
 * caller owes target_close() in any case. */
int target_open(struct target *t, int access);

/* Opens the view that the user named, or the bytes, and applies --as and the slice. Arrays within
 * elements become dimensions, as in numpy, while there are not too many of these. A view of another
 * phase is refused, unless --any-phase was given. The target must be open. Returns 0 or the exit
 * status. */
int target_view(struct target *t, struct shmview_view *ret_view);

/* Finds the layout whose views may be used: that of the phase, or the only one if there was never a
 * phase. *ret is NULL if there is none; otherwise it is valid until target_close(). Returns 0 or
 * the exit status. */
int target_layout(struct target *t, const struct shmview_layout_description **ret);

/* Opens a declared view, without --as and slice. Refuses a view of another phase like
 * target_view(). Returns 0 or the exit status. */
int target_open_view(struct target *t, const char *layout, const char *view,
                     struct shmview_view *ret_view);

/* Turns arrays within elements into dimensions, as numpy does. The canonical format of such an
 * element begins with the lengths in parentheses. Stops when the view would have too many
 * dimensions. target_view() does it. */
void target_flatten(struct shmview_view *view);

/* Copies the elements to private memory, so that the lock need not be held while they are printed.
 * Replaces *view by a view of the copy, which is valid until target_close(). Returns 0 or the exit
 * status. */
int target_copy(struct target *t, struct shmview_view *view);

/* Whether the lock or a frame is held, so that other programs may wait. */
bool target_holds(const struct target *t);

/* Gives the lock back, if it is held; as not repaired, if t->owner_died. Releases the frame. */
void target_unlock(struct target *t);

/* Gives the lock back, frees the copies, and detaches. May be called again. */
void target_close(struct target *t);
#define CLEANUP_TARGET CLEANUP(target_close)

/* Returns the target as the user typed it, for messages: "demo/A[1:3]", "demo". The text is static,
 * and valid until the next call. */
const char *target_text(const struct target *t);

#endif
