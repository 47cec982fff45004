/* SPDX-License-Identifier: Apache-2.0 */
/* Reads options by a table: converts the table for getopt_long(), and stores each value in the
 * variable that its row names. */
#include <string.h>

#include "cli/shell/cli.h"
#include "cli/shell/suggest.h"

#define OPTIONS_MOST 24
#define VALUE_FIRST  256 /* what getopt_long() returns for row 0, above any letter */

/* The options of a verb, and --socket and --help, in the form of getopt_long(). */
struct rows {
    const struct verb_option *own; /* n rows of the verb */
    int n;
    struct option list[OPTIONS_MOST];
    char letters[2 * OPTIONS_MOST + 3];
};

static void add_row(struct rows *r, size_t i, const char *name, bool has_value, int value,
                    char letter)
{
    size_t n = strlen(r->letters);
    r->list[i] = (struct option){name, has_value ? required_argument : no_argument, NULL, value};
    if (letter)
        snprintf(r->letters + n, sizeof r->letters - n, "%c%s", letter, has_value ? ":" : "");
}

/* Fills the table. ':' at the beginning lets getopt_long() report a missing value as ':', and '+'
 * lets it stop at the first argument. */
static void make_rows(struct rows *r, const struct verb_option *own, const struct verb *verb)
{
    *r = (struct rows){.own = own};
    strcpy(r->letters, !verb || verb->stops_at_argument ? "+:" : ":");
    for (; own[r->n].name && r->n < OPTIONS_MOST - 3; r->n++)
        add_row(r, (size_t)r->n, own[r->n].name, own[r->n].kind != OPTION_FLAG, VALUE_FIRST + r->n,
                own[r->n].letter);
    add_row(r, (size_t)r->n, "socket", true, VALUE_FIRST + r->n, '\0');
    if (verb)
        add_row(r, (size_t)r->n + 1, "help", false, 'h', 'h');
}

/* Reports an unknown option, with the options that resemble it. */
static int fail_unknown(struct context *c, const struct rows *r, const char *typed)
{
    char word[SUGGEST_BYTES], name[SUGGEST_BYTES];
    struct suggest s = {.typed = word};
    int status = fail_usage(c, "there is no option %s", typed);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(typed, "="), typed);
    for (size_t i = 0; r->list[i].name && word[1] == '-'; i++) {
        snprintf(name, sizeof name, "--%s", r->list[i].name);
        suggest_offer(&s, name);
    }
    suggest_print(&s);
    return status;
}

/* Reports an option for which getopt_long() returned o, '?' or ':'. Returns the exit status. */
static int fail_option(struct context *c, char **argv, const struct rows *r, int o)
{
    char letter[] = {'-', (char)optopt, '\0'};
    bool is_long = optopt == 0 || optopt >= VALUE_FIRST;
    if (o == ':')
        return fail_usage(c, "option %s needs a value", is_long ? argv[optind - 1] : letter);
    /* 'h' is refused in --help=x only: where there is a verb, -h is an option */
    if (optopt && (is_long || (optopt == 'h' && r->list[r->n + 1].name)))
        return fail_usage(c, "option %s takes no value", argv[optind - 1]);
    return fail_unknown(c, r, is_long ? argv[optind - 1] : letter);
}

static int read_time(struct context *c, const struct verb_option *o, const char *name)
{
    char least[HUMAN_BYTES];
    int64_t ns;
    int status = parse_duration(c, name, optarg, &ns);
    if (status)
        return status;
    if (ns < o->least)
        return fail_usage(c, "%s '%s' is less than %s", name, optarg,
                          human_duration(least, o->least / 1000));
    *o->to.number = o->kind == OPTION_DEADLINE ? shmview_deadline(ns) : ns;
    if (o->given)
        *o->given = true;
    return 0;
}

/* Stores the value of one option, which is in optarg. Returns 0, or the exit status. */
static int take_option(struct context *c, const struct verb_option *o)
{
    char name[64];
    snprintf(name, sizeof name, "--%s", o->name);
    switch (o->kind) {
    case OPTION_FLAG:
        *o->to.flag = !o->is_off;
        return 0;
    case OPTION_TEXT:
        *o->to.text = optarg;
        return 0;
    case OPTION_NUMBER:
        return parse_number(c, name, optarg, o->least, o->most, o->to.number);
    case OPTION_WORD:
        return parse_word(c, name, optarg, o->words, o->to.word);
    case OPTION_CALL:
        return o->read(c, optarg, o->to.any);
    default:
        return read_time(c, o, name);
    }
}

static int print_help(const struct verb *verb)
{
    printf("Usage: shmviewctl %s [OPTION]...%s%s\n%s.\n\n%s" COMMON_HELP, verb->name,
           verb->arguments[0] ? " " : "", verb->arguments, verb->summary, verb->help);
    return EXIT_OK;
}

int fail_missing(struct context *c)
{
    return fail_usage(c, "an argument is missing: %s %s", c->verb->name, c->verb->arguments);
}

/* Whether there are `least` to `most` arguments. If not, prints the error. */
static bool has_arguments(struct context *c, int argc, char **argv, int least, int most)
{
    int n = argc - optind;
    if (n < least)
        fail_missing(c);
    else if (n > most)
        fail_usage(c, "'%s' is one argument too many: %s %s", argv[optind + most], c->verb->name,
                   c->verb->arguments);
    return n >= least && n <= most;
}

bool options_read(struct context *c, int argc, char **argv, const struct verb_option *options,
                  int least, int most)
{
    struct rows rows;
    make_rows(&rows, options, c->verb);
    opterr = 0;
    for (int o; (o = getopt_long(argc, argv, rows.letters, rows.list, NULL)) != -1;) {
        int i = o - VALUE_FIRST;
        for (int k = 0; i < 0 && k < rows.n; k++)
            if (rows.own[k].letter == o)
                i = k;
        if (i == rows.n) {
            c->socket = optarg;
            continue;
        }
        if (i < 0 && o == 'h')
            c->status = print_help(c->verb);
        else
            c->status = i < 0 ? fail_option(c, argv, &rows, o) : take_option(c, &options[i]);
        if (i < 0 || c->status)
            return false;
    }
    c->status = EXIT_USAGE;
    return has_arguments(c, argc, argv, least, most);
}
