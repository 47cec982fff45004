/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and replies: struct <-> JSON, for both ends. With fields.h the only
 * place that knows JSON. Decoding is strict: unknown members, wrong types, numbers out of range,
 * missing members, and in requests duplicate keys, are refused by name.
 *
 * Strings in a decoded struct are borrowed from the message it came from. */
#ifndef COMMON_WIRE_H
#define COMMON_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <shmview/describe.h>
#include <shmview/error.h>
#include <shmview/shmview.h>

#include "common/json/fields.h"
#include "common/json/json_text.h"
#include "common/views/view.h"

#define WIRE_ABSENT FIELDS_ABSENT /* an optional integer that is not there */

/* --- What is sent -------------------------------------------------------- */

/* A view of a layout. view_resolve() completes desc: until then it has no item, no strides unless
 * they were declared, and is indirect if suboffsets were. */
struct wire_view {
    const char *name;
    const char *format;
    bool has_strides;
    struct view_desc desc;
};

struct wire_layout {
    const char *name;
    struct wire_view *views; /* new when decoded: wire_layouts_free() */
    size_t n_views;
};

/* data, control and liveness are indices into the descriptors of the message. */
struct wire_attachment {
    int64_t id;
    int64_t descriptors;
    int64_t data;
    int64_t control, liveness, slot, generation; /* WIRE_ABSENT without a lock */
    struct wire_layout *layouts;                 /* new when decoded */
    size_t n_layouts;
    int64_t access;
};

/* Who may use a segment: what a request wants. */
#define WIRE_RIGHT_NONE  1
#define WIRE_RIGHT_READ  2
#define WIRE_RIGHT_WRITE 3

struct wire_acl_entry {
    int64_t user, group;
    bool is_user, is_group; /* which of them is meant: one */
    int64_t right;
};

struct wire_grant {
    int64_t mode, owner, group; /* WIRE_ABSENT: as it is */
    struct wire_acl_entry *acl; /* NULL: as it is. New when decoded: free() */
    size_t n_acl;
};

struct wire_create {
    const char *name;
    int64_t size;
    int64_t access;   /* 0: do not attach */
    int64_t lifetime; /* 0: default */
    bool lock;
    struct wire_grant grant;
};

struct wire_set_access {
    const char *name;
    int64_t id; /* as in wire_attach */
    struct wire_grant grant;
};

struct wire_attach {
    const char *name;
    int64_t access;
    int64_t id; /* WIRE_ABSENT, or: this very segment, even if its name is gone */
};

struct wire_describe {
    const char *name;
    int64_t id; /* as in wire_attach */
};

struct wire_entrust {
    const char *name;
    int64_t pid;
};

struct wire_held {
    int64_t attachment;
};

/* Sorts the list by attachment. */
void wire_held_sort(struct wire_held *held, size_t n);
/* Whether the attachment is in the list, which is sorted. */
bool wire_held_has(const struct wire_held *held, size_t n, int64_t attachment);

#define WIRE_PRESENCE_WANTED 1
#define WIRE_PRESENCE_KEPT   2

struct wire_claim {
    int64_t client;
    struct wire_held *held; /* new when decoded: free() */
    size_t n_held;
    int64_t presence; /* 0: none, or one of the above */
    bool bell;
};

/* presence and bell are indices into the descriptors of the message. */
struct wire_claimed {
    struct wire_held *held; /* new when decoded: free() */
    size_t n_held;
    int64_t descriptors, presence, bell; /* WIRE_ABSENT */
};

struct wire_define {
    const char *name;
    struct wire_layout layout;
    int64_t id; /* as in wire_attach */
};

/* Of a configuration, strict as a request is. What a fault leaves is in *ret. */
int wire_read_layout(const json_t *json, struct wire_layout *ret, struct wire_fault *fault);
void wire_layouts_free(struct wire_layout *layouts, size_t n);

/* --- Requests ------------------------------------------------------------ */

struct wire_call {
    json_t *root;       /* owned */
    const char *method; /* borrowed from root */
    json_t *parameters; /* borrowed, an object; NULL means none */
    bool oneway;
    bool more;
    bool upgrade;
};

/* Reads one message of n bytes, without its NUL. Returns 0 and owes
 * wire_call_deinit(), or -1 with *fault: what came is no Varlink call. */
int wire_call_parse(struct wire_call *call, const char *text, size_t n, struct wire_fault *fault);
void wire_call_deinit(struct wire_call *call);

/* Decoders of parameters; NULL reads as an empty object. 0 or -1 with *fault. */
int wire_read_none(const json_t *parameters, struct wire_fault *fault);
int wire_read_create(const json_t *parameters, struct wire_create *ret, struct wire_fault *fault);
int wire_read_set_access(const json_t *parameters, struct wire_set_access *ret,
                         struct wire_fault *fault);
int wire_read_attach(const json_t *parameters, struct wire_attach *ret, struct wire_fault *fault);
int wire_read_describe(const json_t *parameters, struct wire_describe *ret,
                       struct wire_fault *fault);
int wire_read_entrust(const json_t *parameters, struct wire_entrust *ret, struct wire_fault *fault);
int wire_read_define(const json_t *parameters, struct wire_define *ret, struct wire_fault *fault);
int wire_read_claim(const json_t *parameters, struct wire_claim *ret, struct wire_fault *fault);
int wire_read_name(const json_t *parameters, const char *member, const char **ret,
                   struct wire_fault *fault);
int wire_read_int(const json_t *parameters, const char *member, int64_t *ret,
                  struct wire_fault *fault);

/* Encoders return a whole call as a new text, or NULL when memory is short. Detach is oneway. */
char *wire_ping_text(void);
char *wire_create_text(const struct wire_create *create);
char *wire_remove_text(const char *name);
char *wire_attach_text(const struct wire_attach *attach);
char *wire_detach_text(int64_t attachment);
char *wire_define_text(const struct wire_define *define);
char *wire_describe_text(const struct wire_describe *describe);
char *wire_set_access_text(const struct wire_set_access *set);
char *wire_entrust_text(const struct wire_entrust *entrust);
char *wire_claim_text(const struct wire_claim *claim);
/* Of a method whose only parameter is the id of an attachment. */
char *wire_attachment_text(const char *method, int64_t attachment);

/* --- Replies ------------------------------------------------------------- */

struct wire_reply {
    json_t *root;       /* NULL where parameters are none */
    const char *error;  /* NULL: success */
    json_t *parameters; /* borrowed; NULL means none */
};

int wire_reply_parse(struct wire_reply *reply, const char *text, size_t n,
                     struct wire_fault *fault);
void wire_reply_deinit(struct wire_reply *reply);

/* A whole reply as text with its NUL; error NULL for success. Steals parameters (NULL: none).
 * Returns a new string of *ret_bytes with the NUL, or NULL when memory is short. */
char *wire_reply_text(const char *error, json_t *parameters, size_t *ret_bytes);

/* Text that was made before: of layouts, with commas between them. */
struct wire_text {
    const char *bytes;
    size_t n;
};

/* The reply to Attach, and to Create with an access. acl: n entries, or NULL. The layouts of
 * attachment do not count. */
char *wire_attached_text(const struct shmview_description *segment,
                         const struct wire_acl_entry *acl, size_t n,
                         const struct wire_attachment *attachment, const struct wire_text *layouts,
                         size_t *ret_bytes);

/* The reply to SetAccess, and to Create without an access. */
char *wire_segment_text(const struct shmview_description *segment, const struct wire_acl_entry *acl,
                        size_t n, size_t *ret_bytes);

/* The reply to Claim. */
char *wire_claimed_text(const struct wire_claimed *claimed, size_t *ret_bytes);

/* The reply to Describe. */
char *wire_described_text(const struct shmview_description *segment,
                          const struct wire_acl_entry *acl, size_t n,
                          const struct wire_text *layouts, size_t *ret_bytes);

/* Adds a segment, as replies have it. Its entries and layouts do not count, here and above. */
void wire_add_segment(struct json_text *text, const struct shmview_description *segment,
                      const struct wire_acl_entry *acl, size_t n);

/* One layout. New, with a NUL that *ret_bytes counts; NULL if memory is short. */
char *wire_layout_text(const struct wire_layout *layout, size_t *ret_bytes);

/* member is where in parameters it is. Decoders of
 * replies pass over members they do not know: a newer daemon may add some. */
int wire_read_attachment(const json_t *parameters, const char *member, struct wire_attachment *ret,
                         struct wire_fault *fault);
/* Entries and layouts are none. */
int wire_read_segment(const json_t *parameters, const char *member, struct shmview_description *ret,
                      struct wire_fault *fault);
/* Its list of users and groups; none from a daemon that has no such lists. *ret is new: free(). */
int wire_read_acl(const json_t *parameters, const char *member, struct wire_acl_entry **ret,
                  size_t *ret_n, struct wire_fault *fault);
/* Both from the text of a reply, which ends with a NUL, as wire_attached_text() writes it for a
 * segment without layouts and further rights; strings are copied to room. Returns whether it is
 * such a one; of any other nothing is said. */
bool wire_attached_scan(const char *text, char *room, size_t room_bytes,
                        struct shmview_description *ret_segment,
                        struct wire_attachment *ret_attachment);
int wire_read_layouts(const json_t *parameters, const char *member, struct wire_layout **ret,
                      size_t *ret_n, struct wire_fault *fault);
/* The reply to Claim. Returns 0 and owes free(ret->held), or -1. */
int wire_read_claimed(const json_t *parameters, struct wire_claimed *ret, struct wire_fault *fault);

/* The error text that goes with a Varlink error: the daemon's "reason", else the
 * fixed text. Returns the SHMVIEW_ERR_* of the name, PROTOCOL for an unknown one. */
int wire_error_code(const struct wire_reply *reply, const char **ret_reason);

/* The SHMVIEW_ERR_* of a name on the wire, and its fixed text unless ret_text is NULL; PROTOCOL for
 * an unknown name, which has no text. */
int wire_error_number(const char *name, const char **ret_text);

/* The name on the wire of SHMVIEW_ERR_*; never NULL. */
const char *wire_error_name(int error);

/* "write" for SHMVIEW_WRITE and so on; NULL for a value that is none. */
const char *wire_access_name(int64_t access);
const char *wire_lifetime_name(int64_t lifetime);
extern const char *const wire_access_names[], *const wire_lifetime_names[];

#endif
