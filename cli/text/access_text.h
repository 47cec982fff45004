/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use a segment, as people write it. */
#ifndef CLI_ACCESS_TEXT_H
#define CLI_ACCESS_TEXT_H

#include "cli/shell/cli.h"

#define ENTRIES_MOST 32 /* as the library has it */

/* Zeroed changes nothing. */
struct access_text {
    struct shmview_access_change change;
    struct shmview_access_entry entries[ENTRIES_MOST];
    char *names; /* what entries borrow from */
};

static inline void access_text_deinit(struct access_text *a)
{
    free(a->names);
}

/* All return 0 or the exit status, and note what they read in a->change. */

/* "0660" or "660". */
int access_mode(struct context *c, const char *text, struct access_text *a);
/* Whether text is letters, like "g+rw,o=": then it changes a mode that is there. */
bool access_is_symbolic(const char *text);
int access_symbolic(struct context *c, const char *text, uint32_t now, struct access_text *a);
/* "alice", "alice:lab", ":lab", "1000:100". */
int access_owner(struct context *c, const char *text, struct access_text *a);
int access_group(struct context *c, const char *text, struct access_text *a);
/* "user:alice:rw,group:lab:r,user:bob:none"; "" is nobody. */
int access_entries(struct context *c, const char *text, struct access_text *a);

#endif
