/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of data work on: NAME[/[LAYOUT:]VIEW][SLICE], locked as long as they do. */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include <shmview/describe.h>

#include "cli/data/slice.h"
#include "cli/shell/cli.h"

#define TARGET_NAME_BYTES 129
#define TARGET_VIEW_BYTES 65

struct target_options {
    const char *as;   /* --as: NULL where it was not given */
    bool any_phase;   /* --any-phase */
    bool no_lock;     /* --no-lock */
    bool has_timeout; /* --timeout */
    int64_t timeout_ns;
};

/* Rows of struct verb_option; o is a struct target_options. */
#define TARGET_OPTIONS(o)                                                                          \
    OPT_TEXT("as", 'a', &(o)->as), OPT_FLAG("any-phase", '\0', &(o)->any_phase),                   \
        OPT_FLAG("no-lock", '\0', &(o)->no_lock),                                                  \
        OPT_TIME("timeout", 't', &(o)->timeout_ns, 0, &(o)->has_timeout)
#define TARGET_HELP                                                                                \
    "  -a, --as FORMAT[LENGTHS]@BYTE  see the bytes so: 'f4[10,10]@64', 'u2', '>i4@8'\n"           \
    "      --any-phase           also a view whose layout is not the current one\n"                \
    "      --no-lock             do not take the lock: others may write meanwhile\n"               \
    "  -t, --timeout TIME        wait no longer than that for the lock\n"

struct target {
    struct context *c;
    const struct target_options *how;
    char name[TARGET_NAME_BYTES];
    char layout[TARGET_VIEW_BYTES]; /* "" where none was named */
    char view[TARGET_VIEW_BYTES];   /* "" where none was named: all the bytes, or as how->as says */
    char found[TARGET_VIEW_BYTES];  /* the layout of the view, once target_view() has looked */
    struct slice slice;
    struct shmview_segment *segment;
    struct shmview_phase phase; /* generation 0: there is none */
    bool is_locked;
    bool owner_died; /* or this verb has left things half written: the next one is told */
    struct shmview_segment **copies; /* of target_copy() */
    size_t n_copies;
    const struct shmview_description *description; /* NULL before it is needed */
};

/* Reads text, which is borrowed, as are c and how. Returns 0 or the exit status. */
int target_parse(struct context *c, const struct target_options *how, const char *text,
                 struct target *ret);

/* Attaches the segment with access SHMVIEW_READ or _WRITE, and takes its lock, shared or
 * exclusively, if it has one and --no-lock was not given. Says on standard error whom it waits for,
 * and who died inside. Returns 0 or the exit status; in any case the target owes target_close(). */
int target_open(struct target *t, int access);

/* The view that was asked for, narrowed by its slice; arrays within its elements are dimensions, as
 * numpy has them, as far as there may be so many. The lock is held. A view that does not belong
 * to the phase is refused, unless --any-phase was given. Returns 0 or the exit status. */
int target_view(struct target *t, struct shmview_view *ret_view);

/* The layout whose views hold: that of the phase; or where there was never a phase, the only one.
 * *ret is NULL where there is none. Returns 0 or the exit status. */
int target_layout(struct target *t, const struct shmview_layout_description **ret);

/* The whole of a view that was declared; refused as target_view() does. */
int target_open_view(struct target *t, const char *layout, const char *view,
                     struct shmview_view *ret_view);

/* Copies the view to memory of our own, so that the lock need not be held while somebody reads what
 * is printed. Returns 0 or the exit status; *view is then the copy, valid until target_close(). */
int target_copy(struct target *t, struct shmview_view *view);

/* Gives the lock back, if it is held. */
void target_unlock(struct target *t);

/* The same, and detaches. A zeroed target is closed. */
void target_close(struct target *t);
#define CLEANUP_TARGET CLEANUP(target_close)

/* Returns the target as the user typed it, for messages: "demo/A[1:3]", "demo". The text is static,
 * and valid until the next call. */
const char *target_text(const struct target *t);

#endif
