/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and prints numbers, sizes, times and names. */
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <math.h>
#include <pwd.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "cli/shell/cli.h"

struct unit {
    const char *name;
    double value;
};

/* Reads a decimal number that is not negative, and a unit after it. Returns 0, or -1 if text is
 * something else. */
static int read_quantity(const char *text, const struct unit *units, size_t n, double *ret)
{
    char *end;
    double value = strtod(text, &end);
    /* strtod() also reads signs, exponents and hexadecimal numbers: refuse these */
    if (end == text || (size_t)(end - text) != strspn(text, "0123456789.") || !isfinite(value))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(end, units[i].name) == 0) {
            *ret = value * units[i].value;
            return 0;
        }
    return -1;
}

#define KIB 1024.0
static const struct unit byte_units[] = {
    {"", 1},
    {"b", 1},
    {"k", KIB},
    {"kib", KIB},
    {"kb", 1e3},
    {"m", KIB *KIB},
    {"mib", KIB *KIB},
    {"mb", 1e6},
    {"g", KIB *KIB *KIB},
    {"gib", KIB *KIB *KIB},
    {"gb", 1e9},
    {"t", KIB *KIB *KIB *KIB},
    {"tib", KIB *KIB *KIB *KIB},
    {"tb", 1e12},
};

bool read_bytes(const char *text, uint64_t *ret)
{
    double value;
    char *end;
    /* Plain digits are read as an integer, because a double is not exact above 2^53. */
    errno = 0;
    unsigned long long whole = strtoull(text, &end, 10);
    if (isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0) {
        *ret = whole;
        return true;
    }
    if (read_quantity(text, byte_units, ARRAY_LEN(byte_units), &value) || value != floor(value) ||
        value >= 0x1p63)
        return false;
    *ret = (uint64_t)value;
    return true;
}

int parse_bytes(struct context *c, const char *what, const char *text, uint64_t *ret)
{
    if (read_bytes(text, ret))
        return 0;
    return fail_usage(c, "%s '%s' is not a number of bytes: write it like 4096, 64K, 1.5M or 2G",
                      what, text);
}

int parse_duration(struct context *c, const char *what, const char *text, int64_t *ret)
{
    static const struct unit units[] = {
        {"", 1e9},   {"s", 1e9},    {"ms", 1e6},   {"us", 1e3},
        {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9},
    };
    double value;
    if (read_quantity(text, units, ARRAY_LEN(units), &value) || value >= 0x1p62)
        return fail_usage(c, "%s '%s' is not a time: write it like 10, 0.5, 500ms, 2min or 1h",
                          what, text);
    *ret = (int64_t)value;
    return 0;
}

int parse_number(struct context *c, const char *what, const char *text, int64_t least, int64_t most,
                 int64_t *ret)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || isspace((unsigned char)text[0]) || *end || errno || value < least ||
        value > most)
        return fail_usage(c, "%s '%s' is not a number from %" PRId64 " to %" PRId64, what, text,
                          least, most);
    *ret = value;
    return 0;
}

int parse_word(struct context *c, const char *what, const char *text, const char *const *names,
               size_t *ret)
{
    char all[256] = "";
    for (size_t i = 0, n = 0; names[i]; i++) {
        if (strcmp(names[i], text) == 0) {
            *ret = i;
            return 0;
        }
        int more = snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", names[i]);
        n += n + (size_t)more < sizeof all ? (size_t)more : 0;
    }
    return fail_usage(c, "%s '%s' is none of %s", what, text, all);
}

/* --- For people ---------------------------------------------------------- */

const char *human_bytes(char *buffer, int64_t bytes)
{
    static const char units[] = "BKMGTPE";
    double value = (double)bytes;
    size_t u = 0;
    /* 1023.5K would be printed as 1024K, which is 1M */
    while (value >= 1023.5 && units[u + 1]) {
        value /= KIB;
        u++;
    }
    bool whole = value == floor(value) || value >= 99.95 || u == 0;
    snprintf(buffer, HUMAN_BYTES, "%.*f%c", whole ? 0 : 1, value, units[u]);
    return buffer;
}

const char *human_duration(char *buffer, int64_t us)
{
    static const struct {
        int64_t least, unit;
        const char *name;
    } units[] = {
        {INT64_C(2) * 86400000000, INT64_C(86400000000), "d"},
        {INT64_C(2) * 3600000000, INT64_C(3600000000), "h"},
        {INT64_C(2) * 60000000, INT64_C(60000000), "min"},
        {INT64_C(1000000), INT64_C(1000000), "s"},
        {0, 1000, "ms"},
    };
    size_t i = 0;
    us = us < 0 ? 0 : us; /* a clock that was set back makes a duration negative */
    while (us < units[i].least)
        i++;
    snprintf(buffer, HUMAN_BYTES, "%" PRId64 "%s", us / units[i].unit, units[i].name);
    return buffer;
}

const char *iso_time(char *buffer, int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || !strftime(buffer, HUMAN_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm))
        snprintf(buffer, HUMAN_BYTES, "%" PRId64, us / 1000000);
    return buffer;
}

int64_t realtime_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The last result of a lookup. Most rows of a list have one owner, and the user database may be a
 * server on the network. */
struct known_name {
    bool is_known;
    int64_t id;
    char name[64];
};

/* Stores the name, or the number if name is NULL, and returns it. */
static const char *keep_name(struct known_name *known, int64_t id, const char *name)
{
    *known = (struct known_name){.is_known = true, .id = id};
    if (name)
        snprintf(known->name, sizeof known->name, "%s", name);
    else
        snprintf(known->name, sizeof known->name, "%" PRId64, id);
    return known->name;
}

const char *user_name(int64_t uid)
{
    static struct known_name known;
    if (known.is_known && known.id == uid)
        return known.name;
    const struct passwd *p = getpwuid((uid_t)uid);
    return keep_name(&known, uid, p ? p->pw_name : NULL);
}

const char *group_name(int64_t gid)
{
    static struct known_name known;
    if (known.is_known && known.id == gid)
        return known.name;
    const struct group *g = getgrgid((gid_t)gid);
    return keep_name(&known, gid, g ? g->gr_name : NULL);
}

/* --- Words --------------------------------------------------------------- */

const char *const access_names[] = {"peek", "read", "write", NULL};
const char *const lifetime_names[] = {"attached", "manual", "creator", NULL};
const char *const backing_names[] = {"file", "sealed", NULL};

const char *const huge_names[] = {"wanted", "required", NULL};
const char *const numa_names[] = {"local", "interleaved", NULL};

const char *access_name(uint32_t access)
{
    return access >= SHMVIEW_PEEK && access <= SHMVIEW_WRITE ? access_names[access - 1] : NULL;
}

const char *lifetime_name(uint32_t lifetime)
{
    return lifetime >= SHMVIEW_ATTACHED && lifetime <= SHMVIEW_CREATOR
               ? lifetime_names[lifetime - 1]
               : NULL;
}

const char *backing_name(uint32_t backing)
{
    return backing >= SHMVIEW_BACKING_FILE && backing <= SHMVIEW_BACKING_SEALED
               ? backing_names[backing - 1]
               : NULL;
}

const char *frozen_name(uint32_t frozen)
{
    return frozen == SHMVIEW_FROZEN_ALL ? "all" : frozen == SHMVIEW_FROZEN_FUTURE ? "future" : NULL;
}

const char *hold_name(uint32_t hold)
{
    return hold == SHMVIEW_EXCLUSIVE ? "exclusive" : hold == SHMVIEW_SHARED ? "shared" : NULL;
}
