/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/access_text.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>

#define MODE_ALL 0666 /* segments have no execute bits */

/* --- Modes --------------------------------------------------------------- */

static void note_mode(struct access_text *a, uint32_t mode)
{
    a->change.set |= SHMVIEW_SET_MODE;
    a->change.mode = mode;
}

int access_mode(struct context *c, const char *text, struct access_text *a)
{
    char *end;
    unsigned long mode = strtoul(text, &end, 8);
    if (text[0] < '0' || text[0] > '7' || *end || mode > 07777)
        return fail_usage(c, "mode '%s' is not valid: write it like 0660", text);
    if (mode & ~(unsigned long)MODE_ALL)
        return fail_usage(c, "mode '%s': only rights to read (4) and write (2) exist, at most 0666",
                          text);
    note_mode(a, (uint32_t)mode);
    return 0;
}

bool access_is_symbolic(const char *text)
{
    return text[0] < '0' || text[0] > '9';
}

/* Applies one clause, such as "ug+rw", to *mode. Without u, g, o or a it applies to all three, as
 * with chmod(1), but regardless of the umask. Returns the text after the clause, or NULL if it is
 * none. */
static const char *apply_clause(const char *text, uint32_t *mode)
{
    uint32_t who = 0, rights = 0;
    for (; *text && strchr("ugoa", *text); text++)
        who |= *text == 'u' ? 0600 : *text == 'g' ? 0060 : *text == 'o' ? 0006 : MODE_ALL;
    who = who ? who : MODE_ALL;
    char op = *text;
    if (!op || !strchr("+-=", op))
        return NULL;
    for (text++; *text == 'r' || *text == 'w'; text++)
        rights |= *text == 'r' ? 0444 : 0222;
    if (op == '+')
        *mode |= who & rights;
    else if (op == '-')
        *mode &= ~(who & rights);
    else
        *mode = (*mode & ~who) | (who & rights);
    return text;
}

int access_symbolic(struct context *c, const char *text, uint32_t now, struct access_text *a)
{
    const char *at = text;
    for (;;) {
        at = apply_clause(at, &now);
        if (!at || (*at && *at != ','))
            return fail_usage(c,
                              "mode '%s' is not valid: write it like 0660, g+rw or u=rw,o=", text);
        if (!*at++)
            break;
    }
    note_mode(a, now);
    return 0;
}

/* --- Owners -------------------------------------------------------------- */

/* Reads a uid or gid. A text of digits is a number and is never looked up as a name. UINT32_MAX is
 * excluded, because to the kernel it means "no id". */
static bool read_id(const char *text, uint32_t *ret)
{
    char *end;
    unsigned long id = strtoul(text, &end, 10);
    *ret = (uint32_t)id;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && id < UINT32_MAX;
}

int access_group(struct context *c, const char *text, struct access_text *a)
{
    uint32_t id;
    if (!read_id(text, &id)) {
        const struct group *g = getgrnam(text);
        if (!g)
            return fail_usage(c, "there is no group '%s': 'getent group' lists them", text);
        id = g->gr_gid;
    }
    a->change.set |= SHMVIEW_SET_GROUP;
    a->change.group = id;
    return 0;
}

/* Like access_group(), for the owner. */
static int read_user(struct context *c, const char *text, struct access_text *a)
{
    uint32_t id;
    if (!read_id(text, &id)) {
        const struct passwd *p = getpwnam(text);
        if (!p)
            return fail_usage(c, "there is no user '%s': 'getent passwd' lists them", text);
        id = p->pw_uid;
    }
    a->change.set |= SHMVIEW_SET_OWNER;
    a->change.owner = id;
    return 0;
}

int access_owner(struct context *c, const char *text, struct access_text *a)
{
    CLEANUP_FREE char *user = strdup(text);
    if (!user)
        return fail_memory(c);
    char *group = strchr(user, ':');
    if (group)
        *group++ = '\0';
    if (!user[0] && !(group && group[0]))
        return fail_usage(c, "owner '%s' is not valid: write it like alice, alice:lab or :lab",
                          text);
    int status = user[0] ? read_user(c, user, a) : 0;
    if (status == 0 && group && group[0])
        status = access_group(c, group, a);
    return status;
}

/* --- Entries ------------------------------------------------------------- */

/* Reads one entry, "user:alice:rw" or "u:alice:rw". text is cut at its colons, and *ret borrows the
 * name from it. Puts the colons back before it prints an error. */
static int read_entry(struct context *c, char *text, struct shmview_access_entry *ret)
{
    static const struct {
        const char *word;
        uint32_t right;
    } rights[] = {
        {"none", 0},           {"-", 0},
        {"r", SHMVIEW_READ},   {"read", SHMVIEW_READ},
        {"rw", SHMVIEW_WRITE}, {"write", SHMVIEW_WRITE},
    };
    char *name = strchr(text, ':'), *right = name ? strchr(name + 1, ':') : NULL;
    if (right && name + 1 < right) {
        *name++ = *right++ = '\0';
        bool user = strcmp(text, "user") == 0 || strcmp(text, "u") == 0;
        bool group = strcmp(text, "group") == 0 || strcmp(text, "g") == 0;
        for (size_t i = 0; (user || group) && i < ARRAY_LEN(rights); i++)
            if (strcmp(right, rights[i].word) == 0) {
                *ret = (struct shmview_access_entry){
                    .kind = user ? SHMVIEW_USER : SHMVIEW_GROUP,
                    .right = rights[i].right,
                    .name = name,
                };
                return 0;
            }
        name[-1] = right[-1] = ':';
    }
    return fail_usage(c,
                      "access '%s' is not valid: write it like user:alice:rw, group:lab:r or "
                      "user:bob:none",
                      text);
}

int access_entries(struct context *c, const char *text, struct access_text *a)
{
    free(a->names);
    a->names = strdup(text);
    if (!a->names)
        return fail_memory(c);
    a->change.set |= SHMVIEW_SET_ENTRIES;
    a->change.entries = a->entries;
    a->change.n_entries = 0;
    char *rest = a->names, *entry;
    while (*a->names && (entry = strsep(&rest, ","))) {
        if (a->change.n_entries == ENTRIES_MOST)
            return fail_usage(c, "a segment has at most %d entries of users and groups",
                              ENTRIES_MOST);
        int status = read_entry(c, entry, &a->entries[a->change.n_entries]);
        if (status)
            return status;
        a->change.n_entries++;
    }
    return 0;
}
