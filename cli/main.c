/* SPDX-License-Identifier: Apache-2.0 */
/* shmviewctl: the program. Reads the options before the verb, finds the verb, and runs it.
 *
 * The list of verbs is in verbs.h, which is included twice: once to declare them, and once to fill
 * the table below. A new verb is therefore one line there and one file. No verb is a program of its
 * own, because all of them share options, errors and the connection (cli/shell). */
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "cli/complete.h"
#include "cli/shell/cli.h"
#include "cli/shell/suggest.h"

#define VERB_GROUP(title)
#define VERB(name) extern const struct verb verb_##name;
#include "cli/verbs.h"
#undef VERB
#undef VERB_GROUP

/* The lines of the overview: a title, or a verb that belongs to the title before it. */
static const struct {
    const char *title;
    const struct verb *verb;
} verbs[] = {
#define VERB_GROUP(title) {title, NULL},
#define VERB(name)        {NULL, &verb_##name},
#include "cli/verbs.h"
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (verbs[i].verb && strcmp(verbs[i].verb->name, name) == 0)
            return verbs[i].verb;
    return NULL;
}

/* Prints that there is no such verb, and those with similar names. Returns EXIT_USAGE. */
static int fail_verb(struct context *c, const char *typed)
{
    struct suggest s = {.typed = typed};
    int status = fail_usage(c, "there is no verb '%s'", typed);
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (verbs[i].verb)
            suggest_offer(&s, verbs[i].verb->name);
    suggest_print(&s);
    return status;
}

static void print_overview(void)
{
    puts("Usage: shmviewctl [--socket PATH] VERB [ARGUMENT]...\n"
         "See and manage the segments of a shmviewd.");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (verbs[i].verb)
            printf("  %-10s %s\n", verbs[i].verb->name, verbs[i].verb->summary);
        else
            printf("\n%s:\n", verbs[i].title);
    puts("\n'shmviewctl VERB --help' describes a verb; --version prints the version.");
}

/* Prints each name on a line of its own, for shells: the result of --list-verbs. */
static void print_verbs(void)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (verbs[i].verb)
            puts(verbs[i].verb->name);
}

/* Reads the options before the verb. --list-verbs and --complete are for the scripts of shells;
 * the help does not mention them. Returns GO_ON if a verb follows, otherwise the exit status. */
static int read_options(struct context *c, int argc, char **argv)
{
    bool help = false, version = false, list = false, completes = false;
    const struct verb_option options[] = {
        OPT_FLAG("help", 'h', &help),
        OPT_FLAG("version", '\0', &version),
        OPT_FLAG("list-verbs", '\0', &list),
        OPT_FLAG("complete", '\0', &completes),
        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 0, argc))
        return c->status;
    if (help)
        print_overview();
    else if (version)
        printf("shmviewctl %s\n", shmview_version());
    else if (list || (completes && !complete(c, argc - optind, argv + optind, find_verb)))
        print_verbs();
    else if (!completes)
        return optind < argc ? GO_ON : fail_usage(c, "the verb is missing");
    return EXIT_OK;
}

/* Returns the exit status. */
static int run(struct context *c, int argc, char **argv)
{
    int status = read_options(c, argc, argv);
    if (status != GO_ON)
        return status;
    const struct verb *verb = find_verb(argv[optind]);
    if (!verb)
        return fail_verb(c, argv[optind]);
    c->verb = verb;
    argc -= optind;
    argv += optind;
    optind = 0; /* getopt starts again, with the arguments of the verb */
    return verb->run(c, argc, argv);
}

int main(int argc, char **argv)
{
    struct context c = {0};
    /* for the width of characters. Not LC_ALL: numbers must have the form that programs read */
    setlocale(LC_CTYPE, "");
    int status = run(&c, argc, argv);
    /* an earlier write may have failed, and then errno does not give the reason */
    errno = 0;
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "shmviewctl: standard output cannot be written%s%s: write elsewhere\n",
                errno ? ": " : "", errno ? strerror(errno) : "");
        status = status ? status : EXIT_FAILED;
    }
    /* a segment that is still attached is detached when the process ends */
    shmview_disconnect(c.connection);
    return status;
}
