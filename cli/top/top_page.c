/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the lines that top shows. An unknown figure, which is negative, becomes "-": it must not
 * be read as 0. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "cli/text/party.h"
#include "cli/text/waits.h"
#include "cli/top/top.h"

#define WAITS_MAX 200 /* lines of the tree of waits */

void top_put(struct top_line *line, enum top_style style, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(line->text, sizeof line->text, format, ap);
    va_end(ap);
    line->style = style;
}

const char *top_bytes(const struct top *t, char buffer[HUMAN_BYTES], int64_t n)
{
    if (n < 0)
        snprintf(buffer, HUMAN_BYTES, "-");
    else if (t->wants_bytes)
        snprintf(buffer, HUMAN_BYTES, "%" PRId64, n);
    else
        human_bytes(buffer, n);
    return buffer;
}

static const char *duration(char *buffer, int64_t us)
{
    if (us < 0)
        snprintf(buffer, HUMAN_BYTES, "-");
    else
        human_duration(buffer, us);
    return buffer;
}

static const char *number(char *buffer, int64_t n)
{
    if (n < 0)
        snprintf(buffer, HUMAN_BYTES, "-");
    else
        snprintf(buffer, HUMAN_BYTES, "%" PRId64, n);
    return buffer;
}

/* Returns the columns of a size. */
static int size_width(const struct top *t)
{
    return t->wants_bytes ? 14 : 6;
}

/* --- Above the rows ------------------------------------------------------ */

/* Writes the line with clients, requests and deaths. It is marked if an owner died inside a lock
 * since the last update. */
static void put_rates(const struct top *t, struct top_line *line)
{
    const struct shmview_stats *s = t->now, *b = t->before;
    char connections[HUMAN_BYTES], lost[HUMAN_BYTES], requests[HUMAN_BYTES] = "-";
    double seconds = (double)(t->now_us - t->before_us) / 1e6;
    if (b && s->total_requests >= b->total_requests && b->total_requests >= 0 && seconds > 0)
        snprintf(requests, sizeof requests, "%.0f",
                 (double)(s->total_requests - b->total_requests) / seconds);
    top_put(line, TOP_PLAIN,
            "clients %s, requests %s/s, deaths %" PRId64 ", inside a lock %" PRId64
            ", events lost %s",
            number(connections, s->connections), requests, s->total_died < 0 ? 0 : s->total_died,
            s->total_owner_died < 0 ? 0 : s->total_owner_died, number(lost, s->total_lost));
    if (s->total_owner_died > (b ? b->total_owner_died : s->total_owner_died))
        line->style = TOP_BAD;
}

void top_header(const struct top *t, struct top_line lines[TOP_HEADER])
{
    char up[HUMAN_BYTES], allocated[HUMAN_BYTES], removed[HUMAN_BYTES], left[HUMAN_BYTES];
    char all[HUMAN_BYTES], attachments[HUMAN_BYTES];
    const struct shmview_stats *s = t->now;
    top_put(&lines[0], TOP_BOLD, "shmviewd %s, up %s, %zu of %zu segments%s%s%s%s", s->version,
            duration(up, s->uptime_us), t->n_rows, s->n_segments, t->filter[0] ? ", filter " : "",
            t->filter, t->trouble ? " -- " : "", t->trouble ? t->trouble : "");
    if (t->trouble)
        lines[0].style = TOP_BAD;
    top_put(&lines[1], TOP_PLAIN, "bytes %s, of removed segments %s, free %s of %s; attachments %s",
            top_bytes(t, allocated, s->allocated_bytes), top_bytes(t, removed, s->removed_bytes),
            top_bytes(t, left, s->memory_free), top_bytes(t, all, s->memory_limit),
            number(attachments, s->attachments));
    put_rates(t, &lines[2]);
    int w = size_width(t);
    top_put(&lines[3], TOP_HEADING, "%-*s %*s %*s %4s %-17s %6s %4s %6s %6s %6s %6s", t->name_width,
            "NAME", w, "SIZE", w, "RES", "ATT", "HOLDER", "HELD", "WAIT", "FOR", "CHG/S", "DEATHS",
            "AGE");
}

/* --- Rows ---------------------------------------------------------------- */

/* Writes the holder of the lock, or the number of readers. */
static void name_holder(const struct top_row *row, char *buffer, size_t room)
{
    const struct shmview_party_stats *p = row->holder;
    buffer[0] = '\0';
    if (p && row->n_holders > 1)
        snprintf(buffer, room, "%" PRId64 " readers", row->n_holders);
    else if (p)
        snprintf(buffer, room, "%" PRId64 " %s%s", p->pid, p->command,
                 p->holds == SHMVIEW_SHARED ? " (r)" : "");
}

void top_row_line(const struct top *t, const struct top_row *row, struct top_line *line)
{
    const struct shmview_segment_stats *s = row->segment;
    char size[HUMAN_BYTES], resident[HUMAN_BYTES], held[HUMAN_BYTES], waited[HUMAN_BYTES];
    char age[HUMAN_BYTES], deaths[HUMAN_BYTES], changes[HUMAN_BYTES] = "-", holder[48];
    name_holder(row, holder, sizeof holder);
    if (row->changes >= 0)
        snprintf(changes, sizeof changes, "%.0f", row->changes);
    int w = size_width(t);
    top_put(line,
            row->n_waiters ? TOP_WARN
            : s->is_named  ? TOP_PLAIN
                           : TOP_DIM,
            "%-*.*s %*s %*s %4" PRId64 " %-17.17s %6s %4" PRId64 " %6s %6s %6s %6s", t->name_width,
            t->name_width, s->name, w, top_bytes(t, size, s->size), w,
            top_bytes(t, resident, s->resident), s->attachments, holder,
            duration(held, row->held_us), row->n_waiters, duration(waited, row->waited_us), changes,
            number(deaths, s->owner_deaths),
            duration(age, s->created_us < 0 ? -1 : t->now_us - s->created_us));
}

/* --- One segment --------------------------------------------------------- */

/* Writes the line of one attachment. */
static void put_party(const struct top *t, const struct shmview_party_stats *p,
                      struct top_line *line)
{
    char since[HUMAN_BYTES], slot[HUMAN_BYTES];
    const char *access = access_name(p->access);
    top_put(line, p->waits ? TOP_WARN : TOP_PLAIN, "%8" PRId64 " %-12.12s %-16s %-6s %4s %-16s %6s",
            p->pid, p->uid < 0 ? "-" : user_name(p->uid), p->command, access ? access : "",
            number(slot, p->slot), party_state(p),
            duration(since, p->since_us > 0 ? t->now_us - p->since_us : -1));
}

/* Writes the tree of waits, and marks a cycle: programs that wait for each other. Returns the
 * number of lines. */
static size_t put_waits(const struct top *t, const struct shmview_segment_stats *s,
                        struct top_line *lines, size_t room)
{
    static struct waits_line tree[WAITS_MAX];
    size_t n = waits_tree(t->now, s, t->now_us, tree, WAITS_MAX);
    for (size_t i = 0; i < n && i < room; i++)
        top_put(&lines[i], tree[i].is_cycle ? TOP_BAD : TOP_PLAIN, "%*s%s%s",
                (int)tree[i].depth * 2 + 2, "", tree[i].text,
                tree[i].is_cycle ? " -- a cycle: it waits for itself" : "");
    if (n == 0 && room > 0)
        top_put(&lines[0], TOP_DIM, "  nobody holds the lock or waits for it");
    return n == 0 ? room > 0 : n < room ? n : room;
}

size_t top_segment(const struct top *t, const struct shmview_segment_stats *s,
                   struct top_line *lines, size_t room)
{
    char size[HUMAN_BYTES], resident[HUMAN_BYTES], deaths[HUMAN_BYTES], changes[HUMAN_BYTES];
    const char *lifetime = lifetime_name(s->lifetime);
    size_t n = 0;
    if (room < 6)
        return 0;
    top_put(&lines[n++], TOP_BOLD,
            "%s%s, %s, resident %s, owner %s, mode %04" PRIo32 ", lifetime %s", s->name,
            s->is_named ? "" : " (removed)", top_bytes(t, size, s->size),
            top_bytes(t, resident, s->resident), user_name(s->owner), s->mode,
            lifetime ? lifetime : "-");
    top_put(&lines[n++], TOP_PLAIN,
            "layout %s, generation %" PRId64 ", changes %s, deaths inside %s",
            s->layout[0] ? s->layout : "-", s->generation < 0 ? 0 : s->generation,
            number(changes, s->changes), number(deaths, s->owner_deaths));
    top_put(&lines[n++], TOP_HEADING, "%8s %-12s %-16s %-6s %4s %-16s %6s", "PID", "USER",
            "COMMAND", "ACCESS", "SLOT", "LOCK", "SINCE");
    for (size_t i = 0; i < s->n_parties && n + 3 < room; i++)
        put_party(t, s->parties[i], &lines[n++]);
    top_put(&lines[n++], TOP_PLAIN, "%" PRId64 " attachments", s->attachments);
    top_put(&lines[n++], TOP_HEADING, "WHO WAITS FOR WHOM");
    return n + put_waits(t, s, lines + n, room - n);
}
