/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/complete.h"

#include <ctype.h>
#include <string.h>

#include <shmview/describe.h>
#include <shmview/monitor.h>

#include "cli/shell/suggest.h"
#include "cli/text/stream.h"
#include "cli/top/top.h"

#define KIND_BYTES 128 /* of a word in a help text or a usage line */

/* The command line up to the word to complete, as far as completion must understand it. */
struct line {
    struct context *c;
    const struct verb *verb; /* NULL: no verb yet */
    const char *first;       /* first argument of the verb; NULL: none yet */
    size_t n_arguments;
    const char *now;           /* the beginning of the word to complete */
    char expected[KIND_BYTES]; /* kind of the value that the last option needs, "LAYOUT"; or "" */
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/,+@%=-"

/* Prints a candidate if it begins with what the user has typed, and a shell gives no meaning to the
 * rest: bash inserts it unquoted, and Enter would run a command that a daemon wrote. */
static void offer(const struct line *l, const char *candidate)
{
    if (begins(candidate, l->now) &&
        !candidate[strlen(l->now) + strspn(candidate + strlen(l->now), PLAIN)])
        puts(candidate);
}

/* --- Help ---------------------------------------------------------------- */

/* Calls visit for each line "  -x, --name VALUE ..." of text. letter is 0 and value is "" if the
 * line has none. A word of lower case after the name begins the description: it is no value. */
static void each_option(const char *text, void *arg,
                        void (*visit)(void *arg, char letter, const char *name, const char *value))
{
    while (*text) {
        char letter = '\0', name[KIND_BYTES] = "", value[KIND_BYTES] = "";
        const char *p = text + strspn(text, " ");
        if (p > text && p[0] == '-' && p[1] != '-' && p[2] == ',') {
            letter = p[1];
            p += 3 + strspn(p + 3, " ");
        }
        if (p > text && begins(p, "--") && sscanf(p, "%127[a-z-] %127[^ \n]", name, value) >= 1)
            visit(arg, letter, name, isupper((unsigned char)value[0]) ? value : "");
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
}

/* Like each_option(), for the help of a verb (NULL: no verb) and the common options. */
static void each_option_of(const struct verb *verb, void *arg,
                           void (*visit)(void *arg, char letter, const char *name,
                                         const char *value))
{
    if (verb)
        each_option(verb->help, arg, visit);
    each_option(COMMON_HELP, arg, visit);
}

static void offer_option(void *arg, char letter, const char *name, const char *value)
{
    (void)letter;
    (void)value;
    offer(arg, name);
}

/* An option that is looked up in the help. */
struct search {
    const char *word; /* as typed: "-t" or "--timeout" */
    char *ret;        /* receives the kind of its value; KIND_BYTES */
};

/* Visits the options for one that was typed with its letter or its name. */
static void find_option(void *arg, char letter, const char *name, const char *value)
{
    struct search *s = arg;
    if (strcmp(s->word, name) == 0 || (s->word[1] == letter && letter && !s->word[2]))
        snprintf(s->ret, KIND_BYTES, "%s", value);
}

/* --- Names from the daemon ----------------------------------------------- */

static void offer_name(void *arg, const char *name)
{
    offer(arg, name);
}

/* Offers the names of the segments that the user may see. */
static void offer_names(struct line *l)
{
    if (shmview_connect(l->c->socket, SHMVIEW_CONNECT_NO_START, &l->c->connection) == 0)
        each_segment_name(l->c, l, offer_name);
}

/* Connects and describes a segment. The caller owes shmview_description_free(). Returns NULL on any
 * error. */
static const struct shmview_description *describe(struct line *l, const char *name)
{
    const struct shmview_description *d;
    if (shmview_connect(l->c->socket, SHMVIEW_CONNECT_NO_START, &l->c->connection) ||
        shmview_describe(l->c->connection, name, &d))
        return NULL;
    return d;
}

/* Offers the layouts of the segment that the line names. */
static void offer_layouts(struct line *l)
{
    const struct shmview_description *d = l->first ? describe(l, l->first) : NULL;
    for (size_t i = 0; d && i < d->n_layouts; i++)
        offer(l, d->layouts[i]->name);
    shmview_description_free(d);
}

/* Offers NAME/VIEW and NAME/LAYOUT:VIEW for the segment before the slash. */
static void offer_views(struct line *l)
{
    char name[KIND_BYTES + 1], candidate[4 * KIND_BYTES];
    int n = (int)strcspn(l->now, "/");
    snprintf(name, sizeof name, "%.*s", n, l->now);
    const struct shmview_description *d = describe(l, name);
    for (size_t i = 0; d && i < d->n_layouts; i++) {
        const struct shmview_layout_description *layout = d->layouts[i];
        for (size_t k = 0; k < layout->n_views; k++) {
            const char *view = layout->views[k]->name;
            snprintf(candidate, sizeof candidate, "%s/%s", name, view);
            offer(l, candidate);
            snprintf(candidate, sizeof candidate, "%s/%s:%s", name, layout->name, view);
            offer(l, candidate);
        }
    }
    shmview_description_free(d);
}

/* --- Columns of tables --------------------------------------------------- */

/* Runs the verb with "--output help", with standard output going to memory, because only the verb
 * knows its columns. Returns the text, which the caller frees, or NULL. */
static char *columns_of(struct context *c, const struct verb *verb)
{
    char name[KIND_BYTES];
    char views[] = "--views", option[] = "--output", help[] = "help";
    char *with[] = {name, option, help, strstr(verb->help, views) ? views : NULL, NULL};
    char *text = NULL;
    size_t bytes;
    FILE *out = stdout, *memory = open_memstream(&text, &bytes);
    if (!memory)
        return NULL;
    snprintf(name, sizeof name, "%s", verb->name);
    c->verb = verb;
    optind = 0; /* getopt starts again */
    stdout = memory;
    verb->run(c, with[3] ? 4 : 3, with);
    stdout = out;
    fclose(memory);
    return text;
}

/* Offers one more entry of a list such as "NAME,SIZE" or "+MODE". The candidate repeats the entries
 * before it, because the shell replaces the whole word. */
static void offer_next(const struct line *l, const char *name, int bytes)
{
    char candidate[4 * KIND_BYTES];
    const char *comma = strrchr(l->now, ',');
    int before = comma ? (int)(comma + 1 - l->now) : l->now[0] == '+';
    snprintf(candidate, sizeof candidate, "%.*s%.*s", before, l->now, bytes, name);
    offer(l, candidate);
}

/* Offers the columns of the verb: the first word of each line of their list. */
static void offer_columns(struct line *l)
{
    CLEANUP_FREE char *text = columns_of(l->c, l->verb);
    char *rest = text, *line;
    while (text && (line = strsep(&rest, "\n"))) {
        int n = (int)strcspn(line, " ");
        if (n)
            offer_next(l, line, n);
    }
}

static void offer_event_kinds(const struct line *l)
{
    const char *name;
    for (int kind = 1; (name = shmview_event_kind_name(kind)); kind++)
        offer_next(l, name, (int)strlen(name));
}

/* --- Kinds of words ------------------------------------------------------ */

/* Offers candidates for a value or an argument of a kind, which is a word of a help text or a usage
 * line: NAME, FILE, LAYOUT ... */
static void offer_kind(struct line *l, const char *kind)
{
    static const char *const shells[][2] = {
        {"FILE", ":files"},  {"PATH", ":files"}, {"ARGUMENT", ":files"}, {"COMMAND", ":commands"},
        {"OWNER", ":users"}, {"USER", ":users"}, {"GROUP", ":groups"},
    };
    static const struct {
        const char *kind;
        const char *const *words;
    } lists[] = {{"WHEN", lifetime_names},       {"BACKING", backing_names},
                 {"HUGE", huge_names},           {"NODES", numa_names},
                 {"KEY", top_key_names},         {"WHAT", owner_died_names},
                 {"DELIVERY", stream_mode_names}};
    if (islower((unsigned char)kind[0]))
        offer(l, kind); /* a word that stands for itself */
    if (begins(kind, "NAME") || begins(kind, "PATTERN") || begins(kind, "FILTER")) {
        if (strchr(kind, '/') && strchr(l->now, '/'))
            offer_views(l);
        else
            offer_names(l);
        return;
    }
    if (strcmp(kind, "LAYOUT") == 0)
        offer_layouts(l);
    if (strcmp(kind, "COLUMNS") == 0 && l->verb)
        offer_columns(l);
    if (begins(kind, "KIND"))
        offer_event_kinds(l);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (size_t k = 0; strcmp(kind, lists[i].kind) == 0 && lists[i].words[k]; k++)
            offer(l, lists[i].words[k]);
    for (size_t i = 0; i < ARRAY_LEN(shells); i++)
        if (begins(kind, shells[i][0]))
            puts(shells[i][1]);
}

/* Finds the word of the usage line for the next argument. A word with "..." stands for all
 * arguments from there on. If the verb has several forms, separated by "|", only the first one
 * counts. ret has KIND_BYTES. Returns false if no further argument is possible. */
static bool next_kind(const struct line *l, char *ret)
{
    const char *p = l->verb->arguments;
    size_t left = l->n_arguments;
    while (*p && *p != '|') {
        size_t n = strcspn(p, " ");
        bool repeats = n > 3 && strncmp(p + n - 3, "...", 3) == 0;
        bool is_mark = strncmp(p, "[--]", n) == 0;
        if (!is_mark && (left == 0 || repeats)) {
            const char *word = p + (*p == '[');
            snprintf(ret, KIND_BYTES, "%.*s", (int)(n - (size_t)(word - p)), word);
            return true;
        }
        left -= is_mark ? 0 : 1;
        p += n + strspn(p + n, " ");
    }
    return false;
}

/* Reads one complete word of the line. Obeys --socket, so that names come from the daemon that the
 * line names. */
static void read_word(struct line *l, char *word, find_verb_fn *find_verb)
{
    struct search search = {.word = word, .ret = l->expected};
    if (l->expected[0]) {
        l->c->socket = strcmp(l->expected, "PATH") == 0 ? word : l->c->socket;
        l->expected[0] = '\0';
    } else if (begins(word, "--socket=")) {
        l->c->socket = word + strlen("--socket=");
    } else if (word[0] == '-' && word[1] && strcmp(word, "--") != 0) {
        each_option_of(l->verb, &search, find_option);
    } else if (!l->verb) {
        l->verb = find_verb(word);
    } else if (strcmp(word, "--") != 0) {
        l->first = l->n_arguments++ ? l->first : word;
    }
}

bool complete(struct context *c, int n, char **words, find_verb_fn *find_verb)
{
    char kind[KIND_BYTES];
    struct line l = {.c = c, .now = n ? words[n - 1] : ""};
    for (int i = 0; i + 1 < n; i++)
        read_word(&l, words[i], find_verb);
    if (l.expected[0])
        offer_kind(&l, l.expected);
    else if (l.now[0] == '-')
        each_option_of(l.verb, &l, offer_option);
    else if (!l.verb)
        return false;
    /* a LAYOUT of create or define is a new one, which no list has */
    else if (next_kind(&l, kind) &&
             (strcmp(kind, "LAYOUT") != 0 || strcmp(l.verb->name, "switch") == 0))
        offer_kind(&l, kind);
    return true;
}
