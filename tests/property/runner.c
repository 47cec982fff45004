/* SPDX-License-Identifier: Apache-2.0 */
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_SEED  1 /* fixed, so that a build that passed passes again */
#define DEFAULT_COUNT 100000
#define CASE_BYTES    400
#define ENOUGH        20000 /* cases from which the summary must be convincing */
#define MAX_ATTEMPTS  4000  /* to make a case simpler */

/* Shared memory: the child writes the case here, so the parent can report it if the child dies. */
struct run {
    uint64_t seed, count;
    uint8_t bytes[CASE_BYTES];
    size_t n_bytes;
    char wrong[600];
};

struct runner {
    const struct property *property;
    struct run *run;
    void *state;
};

/* --- Random bytes -------------------------------------------------------- */

/* splitmix64, Steele et al. 2014: any two seeds give sequences far apart. */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void bytes_fill(struct run *run, uint64_t number)
{
    uint64_t seed = run->seed;
    uint64_t state = random_next(&seed) ^ (number + 1) * 0xd1342543de82ef95;
    run->n_bytes = CASE_BYTES;
    for (size_t i = 0; i < run->n_bytes; i++)
        run->bytes[i] = (uint8_t)(random_next(&state) >> 32);
}

/* --- Playing ------------------------------------------------------------- */

/* Plays the case in run->bytes. Returns false if it fails. */
static bool play_bytes(struct runner *r)
{
    struct choices from = {.bytes = r->run->bytes, .n = r->run->n_bytes};
    const char *wrong = r->property->play(r->state, &from);
    snprintf(r->run->wrong, sizeof r->run->wrong, "%s", wrong ? wrong : "");
    return !wrong;
}

static void play_all(struct runner *r)
{
    for (uint64_t i = 0; i < r->run->count; i++) {
        bytes_fill(r->run, i);
        if (!play_bytes(r))
            exit(EXIT_FAILURE);
    }
    const char *why = r->property->summary(r->state);
    if (why && r->run->count >= ENOUGH) {
        snprintf(r->run->wrong, sizeof r->run->wrong, "%s", why);
        exit(EXIT_FAILURE);
    }
    exit(EXIT_SUCCESS);
}

static void play_one(struct runner *r)
{
    exit(play_bytes(r) ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Runs play in a child process. Returns whether the child succeeds. */
static bool in_child(struct runner *r, void (*play)(struct runner *), bool is_quiet)
{
    snprintf(r->run->wrong, sizeof r->run->wrong, "it died");
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(EXIT_FAILURE);
    }
    if (pid == 0) {
        int null = is_quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
        if (null >= 0 && (dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0))
            _exit(EXIT_FAILURE);
        play(r);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* --- Making a failure simpler -------------------------------------------- */

/* Replaces the case by candidate if candidate fails as well. */
static bool simplify_to(struct runner *r, const uint8_t *candidate, size_t n)
{
    uint8_t was[CASE_BYTES];
    size_t n_was = r->run->n_bytes;
    memcpy(was, r->run->bytes, sizeof was);
    memcpy(r->run->bytes, candidate, n);
    r->run->n_bytes = n;
    if (!in_child(r, play_one, true))
        return true;
    memcpy(r->run->bytes, was, sizeof was);
    r->run->n_bytes = n_was;
    return false;
}

/* Removes each run of length bytes, or sets it to 0, wherever the case still fails afterwards. */
static bool simplify_runs(struct runner *r, size_t length, bool leave_out, unsigned *attempts)
{
    bool progress = false;
    for (size_t at = r->run->n_bytes; at-- > 0 && *attempts < MAX_ATTEMPTS;) {
        uint8_t candidate[CASE_BYTES];
        size_t n = r->run->n_bytes;
        if (at + length > n)
            continue;
        memcpy(candidate, r->run->bytes, n);
        if (leave_out) {
            memmove(candidate + at, candidate + at + length, n - at - length);
            n -= length;
        } else {
            memset(candidate + at, 0, length);
            if (memcmp(candidate, r->run->bytes, n) == 0)
                continue;
        }
        ++*attempts;
        progress = simplify_to(r, candidate, n) || progress;
    }
    return progress;
}

static void simplify(struct runner *r)
{
    unsigned attempts = 0;
    bool progress;
    for (size_t n = r->run->n_bytes / 2; n > 0; n /= 2) /* first what was never read */
        while (r->run->n_bytes >= n && simplify_to(r, r->run->bytes, r->run->n_bytes - n))
            ;
    do {
        progress = false;
        for (size_t length = 32; length > 0; length /= 2) {
            progress = simplify_runs(r, length, true, &attempts) || progress;
            progress = simplify_runs(r, length, false, &attempts) || progress;
        }
    } while (progress && attempts < MAX_ATTEMPTS);
}

/* --- The program --------------------------------------------------------- */

static void report(struct runner *r)
{
    in_child(r, play_one, false);
    printf("FAILED: %s |%s | again: %s --case ", r->run->wrong, r->property->story(r->state),
           r->property->name);
    for (size_t i = 0; i < r->run->n_bytes; i++)
        printf("%02x", r->run->bytes[i]);
    printf("\n");
}

static int run_many(struct runner *r)
{
    printf("%s: seed %" PRIu64 ", %" PRIu64 " cases\n", r->property->name, r->run->seed,
           r->run->count);
    if (in_child(r, play_all, false))
        return EXIT_SUCCESS;
    char wrong[sizeof r->run->wrong];
    memcpy(wrong, r->run->wrong, sizeof wrong);
    if (in_child(r, play_one, true)) {
        printf("FAILED, but no case alone: %s\n", wrong);
        return EXIT_FAILURE;
    }
    simplify(r);
    report(r);
    return EXIT_FAILURE;
}

static int run_case(struct runner *r, const char *hex)
{
    unsigned byte;
    r->run->n_bytes = 0;
    for (; r->run->n_bytes < CASE_BYTES && sscanf(hex, "%2x", &byte) == 1; hex += 2) {
        r->run->bytes[r->run->n_bytes++] = (uint8_t)byte;
        if (!hex[1])
            break;
    }
    bool ok = in_child(r, play_one, false);
    printf("%s: %s |%s\n", ok ? "passed" : "FAILED", r->run->wrong, r->property->story(r->state));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static uint64_t parse_number(const char *text)
{
    char *end;
    uint64_t n = 0;
    if (strcmp(text, "random") == 0 && getrandom(&n, sizeof n, 0) == sizeof n)
        return n;
    errno = 0;
    n = strtoull(text, &end, 0);
    if (errno || end == text || *end) {
        fprintf(stderr, "not a number: %s\n", text);
        exit(EXIT_FAILURE);
    }
    return n;
}

int property_main(const struct property *property, int argc, char **argv)
{
    const char *seed = getenv("SHMVIEW_SEED"), *count = getenv("SHMVIEW_COUNT"), *hex = NULL;
    for (int i = 1; i < argc; i += 2) {
        const char **option = strcmp(argv[i], "--seed") == 0    ? &seed
                              : strcmp(argv[i], "--count") == 0 ? &count
                              : strcmp(argv[i], "--case") == 0  ? &hex
                                                                : NULL;
        if (!option || i + 1 == argc) {
            fprintf(stderr, "usage: %s [--seed N|random] [--count N] [--case HEX]\n", argv[0]);
            return EXIT_FAILURE;
        }
        *option = argv[i + 1];
    }
    size_t state_at = (sizeof(struct run) + 63) / 64 * 64, bytes = state_at + property->state_bytes;
    char *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("mmap");
        return EXIT_FAILURE;
    }
    struct runner r = {property, (struct run *)(void *)shared, shared + state_at};
    r.run->seed = seed ? parse_number(seed) : DEFAULT_SEED;
    r.run->count = count ? parse_number(count) : DEFAULT_COUNT;
    int status = hex ? run_case(&r, hex) : run_many(&r);
    munmap(shared, bytes);
    return status;
}
