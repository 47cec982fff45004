/* SPDX-License-Identifier: Apache-2.0 */
/* Converts requests and replies between structs and JSON text. The daemon and the library use the
 * same tables, so that a member is added in one place.
 *
 *   client   struct wire_attach -> wire_attach_text() -> socket -> wire_call_parse()
 *                                                               -> wire_read_attach()    daemon
 *   daemon   struct wire_attachment -> wire_attached_text() -> socket -> wire_attached_scan(), or
 *                                       wire_reply_parse() -> wire_read_attachment()     client
 *
 * Decoding trusts no message. It refuses wrong types, missing members and numbers out of range, and
 * in requests also unknown members and duplicate keys. An error names the member, or the byte at
 * which the text is not JSON. Replies may have unknown members, because a newer daemon may add
 * some.
 *
 * Memory. Strings in a decoded struct are borrowed from the message from which it was decoded.
 * Arrays in it are new if their declaration has "new when decoded". After an error a decoder has
 * freed what it made, unless its comment states otherwise.
 *
 * Nothing here has state, and nothing blocks: any thread may call. wire_layouts.h has layouts and
 * the messages of Describe, wire_events.h and wire_stats.h those of Monitor and Stats. */
#ifndef COMMON_WIRE_H
#define COMMON_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <shmview/describe.h>
#include <shmview/error.h>
#include <shmview/placement.h>
#include <shmview/shmview.h>

#include "common/json/fields.h"
#include "common/json/json_text.h"
#include "common/wire/wire_layouts.h"

#define WIRE_ABSENT FIELDS_ABSENT /* an optional integer that is not there */

/* --- Contents of messages ------------------------------------------------ */

/* An attachment, in the reply that gives it. data, control and liveness are indices into the
 * descriptors of the message. An index can be out of range, because only the receiver knows how
 * many descriptors came; segment_check_attachment() compares them. */
struct wire_attachment {
    int64_t id;
    int64_t descriptors; /* how many belong to the message */
    int64_t data;
    int64_t control, liveness, slot, generation; /* WIRE_ABSENT without a lock */
    int64_t access;
};

/* The values of wire_acl_entry.right. */
#define WIRE_RIGHT_NONE  1
#define WIRE_RIGHT_READ  2
#define WIRE_RIGHT_WRITE 3

/* The right of one user or one group. */
struct wire_acl_entry {
    int64_t user, group;
    bool is_user, is_group; /* which of the two is present; the daemon refuses both and none */
    int64_t right;
};

/* The access that Create or SetAccess requests. A member that is absent keeps its value, or for a
 * new segment its default. */
struct wire_grant {
    int64_t mode, owner, group; /* WIRE_ABSENT: keep */
    struct wire_acl_entry *acl; /* NULL: keep. New when decoded: free() */
    size_t n_acl;
};

/* The parameters of Create. The structs below have those of the method in their names. */
struct wire_create {
    const char *name;
    int64_t size;     /* in bytes */
    int64_t access;   /* 0: do not attach */
    int64_t lifetime; /* 0: default */
    bool lock;
    struct wire_grant grant;
    const char *label; /* NULL or "": none */
    int64_t backing;   /* 0: default */
    int64_t memory;    /* WIRE_MEMORY_*: the maker of the data object; 0: default */
    int64_t huge;      /* 0: not wanted */
    int64_t numa;      /* 0: not wanted */
    int64_t node;      /* WIRE_ABSENT: none */
    bool populate;
};

/* The values of wire_create.memory. */
#define WIRE_MEMORY_DAEMON 1
#define WIRE_MEMORY_CLIENT 2

struct wire_set_access {
    const char *name;
    int64_t id; /* as in wire_attach */
    struct wire_grant grant;
};

/* The parameters of List: segments with ids above `after`. */
struct wire_list {
    int64_t after;
};

struct wire_attach {
    const char *name;
    int64_t access;
    /* WIRE_ABSENT, or the id of the segment: then it is found even if it was removed, and another
     * segment with that name is not */
    int64_t id;
};

struct wire_entrust {
    const char *name;
    int64_t pid;
};

/* Sorts the ids of attachments, for wire_held_has(). */
void wire_held_sort(int64_t *held, size_t n);
/* Whether the attachment is in the list, which must be sorted. A search in an unsorted list would
 * be quadratic, because a claim may have LIMIT_ATTACHMENTS of them. */
bool wire_held_has(const int64_t *held, size_t n, int64_t attachment);

#define WIRE_PRESENCE_WANTED 1 /* the client has no presence */
#define WIRE_PRESENCE_KEPT   2 /* the client has mapped one */

struct wire_claim {
    int64_t client;
    int64_t *held; /* the attachments that the client still has; new when decoded: free() */
    size_t n_held;
    int64_t presence; /* 0: none, or one of the above */
    bool bell;
};

/* The reply to Claim. presence and bell are indices into the descriptors of the message. */
struct wire_claimed {
    int64_t *held; /* new when decoded: free() */
    size_t n_held;
    int64_t descriptors, presence, bell; /* WIRE_ABSENT */
};

struct wire_define {
    const char *name;
    struct wire_layout layout;
    int64_t id; /* as in wire_attach */
};

/* --- Requests ------------------------------------------------------------ */

/* A call, whatever its method. */
struct wire_call {
    json_t *root;       /* owned; NULL if the call was scanned */
    const char *method; /* borrowed from root, or constant */
    json_t *parameters; /* borrowed, an object; NULL means none */
    bool oneway;
    bool more;
    bool upgrade;
    /* A scanned call has no JSON values, but its decoded parameters. It must not be copied, because
     * the name is in room. */
    enum {
        WIRE_NOT_SCANNED,
        WIRE_SCANNED_ATTACH,
        WIRE_SCANNED_DETACH
    } scanned;
    struct wire_attach attach; /* of WIRE_SCANNED_ATTACH */
    int64_t attachment;        /* of WIRE_SCANNED_DETACH */
    char room[LIMIT_NAME_BYTES + 1];
};

/* Reads a call of Attach or Detach without making JSON values, if it has exactly the form that
 * wire_attach_text() and wire_detach_text() write. Returns whether it was one; *ret is undefined
 * otherwise, and the caller uses wire_call_parse(). It accepts no call that wire_call_parse() and
 * the decoders below would refuse or understand in another way. text ends with a NUL. */
bool wire_call_scan(struct wire_call *ret, const char *text);

/* Reads one message of n bytes, without its NUL. Returns 0, and the caller owes wire_call_deinit().
 * Returns -1 with *fault if the message is not a Varlink call. */
int wire_call_parse(struct wire_call *call, const char *text, size_t n, struct wire_fault *fault);
/* Like wire_call_parse(), but the call may be scanned. text ends with a NUL. */
int wire_call_read(struct wire_call *call, const char *text, size_t n, struct wire_fault *fault);
/* Frees the message, and with it all strings that were borrowed from it. */
void wire_call_deinit(struct wire_call *call);

/* Decode parameters; NULL counts as an empty object. wire_read_none() accepts no member. The last
 * two accept one, and borrow or copy its value. Return 0, or -1 with *fault. */
int wire_read_none(const json_t *parameters, struct wire_fault *fault);
int wire_read_create(const json_t *parameters, struct wire_create *ret, struct wire_fault *fault);
int wire_read_set_access(const json_t *parameters, struct wire_set_access *ret,
                         struct wire_fault *fault);
int wire_read_attach(const json_t *parameters, struct wire_attach *ret, struct wire_fault *fault);
int wire_read_list(const json_t *parameters, struct wire_list *ret, struct wire_fault *fault);
int wire_read_entrust(const json_t *parameters, struct wire_entrust *ret, struct wire_fault *fault);
int wire_read_define(const json_t *parameters, struct wire_define *ret, struct wire_fault *fault);
int wire_read_claim(const json_t *parameters, struct wire_claim *ret, struct wire_fault *fault);
int wire_read_name(const json_t *parameters, const char *member, const char **ret,
                   struct wire_fault *fault);
int wire_read_int(const json_t *parameters, const char *member, int64_t *ret,
                  struct wire_fault *fault);

/* Return the text of a whole call, which is new, or NULL if memory is short. Detach is a oneway
 * call: its reply would contain nothing for which a client had to wait. */
char *wire_ping_text(void);
char *wire_hand_over_text(void);
char *wire_create_text(const struct wire_create *create);
char *wire_remove_text(const char *name);
char *wire_attach_text(const struct wire_attach *attach);
char *wire_detach_text(int64_t attachment);
char *wire_define_text(const struct wire_define *define);
char *wire_set_access_text(const struct wire_set_access *set);
char *wire_entrust_text(const struct wire_entrust *entrust);
char *wire_claim_text(const struct wire_claim *claim);
/* Like the functions above, for a method whose only parameter is the id of an attachment. method is
 * its full name. */
char *wire_attachment_text(const char *method, int64_t attachment);

/* --- Replies ------------------------------------------------------------- */

/* A reply, whatever its method. */
struct wire_reply {
    json_t *root;       /* owned; NULL for the usual reply without parameters */
    const char *error;  /* borrowed from root; NULL: success */
    json_t *parameters; /* borrowed from root; NULL means none */
};

/* Reads one message of n bytes, without its NUL. Returns 0, and the caller owes
 * wire_reply_deinit(). Returns -1 with *fault if the message is not a Varlink reply. */
int wire_reply_parse(struct wire_reply *reply, const char *text, size_t n,
                     struct wire_fault *fault);
void wire_reply_deinit(struct wire_reply *reply);

/* Returns the text of a whole reply, which is new, or NULL if memory is short. *ret_bytes is its
 * length with the NUL. error is a name on the wire, or NULL for success. Steals parameters, which
 * may be NULL: none. */
char *wire_reply_text(const char *error, json_t *parameters, size_t *ret_bytes);

/* The functions wire_*_text() from here on return the text of a whole reply as wire_reply_text()
 * does.
 *
 * wire_attached_text(): the reply to Attach, and to Create with an access. acl has n entries, or is
 * NULL. layouts is the text of the layouts, which the reader of the reply gets as text too. */
char *wire_attached_text(const struct shmview_description *segment,
                         const struct wire_acl_entry *acl, size_t n,
                         const struct wire_attachment *attachment, const struct wire_text *layouts,
                         size_t *ret_bytes);

/* The reply to SetAccess, and to Create without an access. */
char *wire_segment_text(const struct shmview_description *segment, const struct wire_acl_entry *acl,
                        size_t n, size_t *ret_bytes);

/* The reply to Claim. */
char *wire_claimed_text(const struct wire_claimed *claimed, size_t *ret_bytes);

/* Adds a segment, as replies contain it. Here and above, only acl has the entries of the segment;
 * those in *segment are ignored. */
void wire_add_segment(struct json_text *text, const struct shmview_description *segment,
                      const struct wire_acl_entry *acl, size_t n);

/* Decode the object that is called `member` in the parameters of a reply. Return 0, or -1 with
 * *fault. An attachment is decoded without its layouts, for which the caller has
 * wire_attached_layouts(). */
int wire_read_attachment(const json_t *parameters, const char *member, struct wire_attachment *ret,
                         struct wire_fault *fault);
/* Decodes a segment without its entries and layouts. */
int wire_read_segment(const json_t *parameters, const char *member, struct shmview_description *ret,
                      struct wire_fault *fault);
/* Decodes the entries of a segment, which are none if its daemon is too old to have them. *ret is
 * new: free(). It may be NULL if *ret_n is 0. */
int wire_read_acl(const json_t *parameters, const char *member, struct wire_acl_entry **ret,
                  size_t *ret_n, struct wire_fault *fault);
/* Decodes the usual reply to Attach and Create without making values: text as wire_attached_text()
 * writes it for a segment without entries. It takes 0.5 us in place of 11. text ends with a NUL;
 * strings are copied to room. *ret_layouts is the text of the member "layouts" with its brackets,
 * borrowed from text. Returns false if the text has any other form: then use wire_reply_parse(),
 * and all results are undefined. */
bool wire_attached_scan(const char *text, char *room, size_t room_bytes,
                        struct shmview_description *ret_segment,
                        struct wire_attachment *ret_attachment, struct wire_text *ret_layouts);
/* Returns the text of the layouts in a reply to Attach or Create, which is new: an array. Returns
 * NULL if memory is short, or if there are none. */
char *wire_attached_layouts(const json_t *parameters);
/* Decodes the reply to Claim. Returns 0, and the caller owes free(ret->held); or -1 with *fault. */
int wire_read_claimed(const json_t *parameters, struct wire_claimed *ret, struct wire_fault *fault);

/* Returns the SHMVIEW_ERR_* of an error reply, or SHMVIEW_ERR_PROTOCOL if its name is unknown.
 * *ret_reason is the daemon's "reason"; without one the fixed text of that error; for an unknown
 * error its name. It is borrowed from the reply or static. */
int wire_error_code(const struct wire_reply *reply, const char **ret_reason);

/* Returns the SHMVIEW_ERR_* of a name on the wire, and its fixed text in *ret_text, unless ret_text
 * is NULL. Returns SHMVIEW_ERR_PROTOCOL for an unknown name, and leaves *ret_text as it was. */
int wire_error_number(const char *name, const char **ret_text);

/* Returns the name on the wire of an SHMVIEW_ERR_*; for one that has none, that of
 * SHMVIEW_ERR_SYSTEM. Never NULL. */
const char *wire_error_name(int error);

/* Return "write" for SHMVIEW_WRITE and so on, or NULL for any other value. The arrays have the same
 * names in the order of the values from 1 on, and then NULL. */
const char *wire_access_name(int64_t access);
const char *wire_lifetime_name(int64_t lifetime);
const char *wire_backing_name(int64_t backing);
const char *wire_huge_name(int64_t huge);
const char *wire_numa_name(int64_t numa);
extern const char *const wire_huge_names[],
    *const wire_huge_by_names[], *const wire_huge_missing_names[], *const wire_numa_names[];
extern const char *const wire_access_names[],
    *const wire_lifetime_names[], *const wire_backing_names[], *const wire_frozen_names[];

#endif
