/* SPDX-License-Identifier: Apache-2.0 */
/* Reads owner, group, mode and entries of a segment, as people write them. create, chmod and chown
 * share it. The result is a struct shmview_access_change: options that are not given set no bit in
 * `set`, and the daemon leaves the corresponding facts as they are. */
#ifndef CLI_ACCESS_TEXT_H
#define CLI_ACCESS_TEXT_H

#include "cli/shell/cli.h"

#define ENTRIES_MOST 32 /* the limit of one segment */

/* What the command line has set so far. A struct of zeroes changes nothing, but its owner must set
 * change.struct_bytes, and owes access_text_deinit(). */
struct access_text {
    struct shmview_access_change change;
    struct shmview_access_entry entries[ENTRIES_MOST];
    char *names; /* the text of --access, cut into the names of the entries; NULL: not given */
};

static inline void access_text_deinit(struct access_text *a)
{
    free(a->names);
}

/* Each of these reads text into a->change. Returns 0, or the exit status after printing an error
 * that shows the right form. */

/* Reads an octal mode, "0660" or "660". */
int access_mode(struct context *c, const char *text, struct access_text *a);
/* Whether text is a mode of letters, like "g+rw,o=". Such a mode is a change of another mode. */
bool access_is_symbolic(const char *text);
/* Applies a mode of letters to the mode `now`. */
int access_symbolic(struct context *c, const char *text, uint32_t now, struct access_text *a);
/* Reads an owner, a group or both: "alice", "alice:lab", ":lab", "1000:100". */
int access_owner(struct context *c, const char *text, struct access_text *a);
/* Reads a group alone: "lab" or "100". */
int access_group(struct context *c, const char *text, struct access_text *a);
/* Reads a whole list of entries, "user:alice:rw,group:lab:r,user:bob:none", which replaces an
 * earlier one; "" is an empty list. The library looks up the names later. */
int access_entries(struct context *c, const char *text, struct access_text *a);

#endif
