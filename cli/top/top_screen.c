/* SPDX-License-Identifier: Apache-2.0 */
/* The screen of top: a list of segments with the streams below it, the page of one segment, the
 * page of all streams, and the page of keys.
 *
 * One loop draws everything, waits for a key or for the next update, and handles it. Drawing
 * everything is cheap, because curses sends only the characters that changed. */
#include "cli/top/top_screen.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <curses.h>

#include "cli/text/bus_error.h"
#include "cli/top/top_streams.h"

#define ESC          27
#define ESC_DELAY_MS 25 /* wait for the rest of a key that begins with ESC */
#define COST_PART    5  /* at most 1/COST_PART of the time goes into queries to the daemon */
#define STREAMS_PART 3  /* at least 1/STREAMS_PART of the list's rows is for streams */
#define DETAIL_LINES                                                                               \
    1400 /* of a segment's page: 64 attachments, 200 of the tree of waits, the rest, and the       \
          * readers of a stream */

enum view {
    VIEW_LIST,
    VIEW_SEGMENT,
    VIEW_STREAMS,
    VIEW_HELP
};

/* The state of the display, on the stack of top_screen(). */
struct screen {
    struct top *top;
    enum view view;
    int64_t chosen;        /* id of the chosen segment; 0: none yet */
    size_t at;             /* row of the chosen segment */
    size_t first;          /* topmost row of the list, or line of another page */
    size_t rows;           /* rows that the list has on the screen */
    bool is_typing;        /* keys change the filter */
    bool is_done;          /* the user leaves */
    bool wants_figures;    /* update now, before the delay has passed */
    char kept[TOP_FILTER]; /* the filter before the user began to type */
    const char *notice;    /* shown in place of the keys; NULL: none */
    attr_t styles[TOP_DIM + 1];
};

/* --- Drawing ------------------------------------------------------------- */

static void choose_styles(struct screen *s)
{
    bool colors = wants_color() && has_colors() && start_color() == OK;
    s->styles[TOP_PLAIN] = A_NORMAL;
    s->styles[TOP_BOLD] = s->styles[TOP_WARN] = A_BOLD;
    s->styles[TOP_HEADING] = A_REVERSE;
    s->styles[TOP_BAD] = A_BOLD;
    s->styles[TOP_DIM] = A_DIM;
    if (!colors)
        return;
    use_default_colors();
    init_pair(1, COLOR_YELLOW, -1);
    init_pair(2, COLOR_RED, -1);
    s->styles[TOP_WARN] = COLOR_PAIR(1);
    s->styles[TOP_BAD] = COLOR_PAIR(2) | A_BOLD;
}

static void draw_line(const struct screen *s, int y, const struct top_line *line, bool is_chosen)
{
    attr_t style = is_chosen ? A_REVERSE : s->styles[line->style];
    attrset((int)style);
    mvaddnstr(y, 0, line->text, COLS);
    if (is_chosen || line->style == TOP_HEADING)
        mvchgat(y, 0, -1, style, (short)PAIR_NUMBER(style), NULL); /* up to the margin */
    attrset(A_NORMAL);
}

static void draw_text(const struct screen *s, int y, enum top_style style, const char *text)
{
    struct top_line line = {.style = style};
    snprintf(line.text, sizeof line.text, "%s", text);
    draw_line(s, y, &line, false);
}

/* Returns the lines between the header and the bottom. */
static size_t lines_of_body(void)
{
    int rows = LINES - TOP_HEADER - 1;
    return rows > 0 ? (size_t)rows : 0;
}

/* Returns how many of n lines of streams fit below the list: all that the list leaves, and at least
 * a part. A heading alone is of no use. */
static size_t room_of_streams(const struct screen *s, size_t n)
{
    size_t body = lines_of_body(), left = body > s->top->n_rows ? body - s->top->n_rows : 0;
    size_t room = left > body / STREAMS_PART ? left : body / STREAMS_PART;
    room = n < room ? n : room;
    return room > 1 ? room : 0;
}

/* Draws the streams in the last rows of the body, and sets how many rows remain for the list. */
static void draw_streams_below(struct screen *s)
{
    size_t n;
    CLEANUP_FREE struct top_line *lines = top_stream_lines(s->top, false, &n);
    size_t room = lines ? room_of_streams(s, n) : 0;
    s->rows = lines_of_body() - room;
    size_t y = s->top->n_rows < s->rows ? s->top->n_rows : s->rows;
    if (room && room < n) {
        lines[room - 1].style = TOP_DIM;
        snprintf(lines[room - 1].text, TOP_LINE, "%zu more lines: s shows all streams",
                 n - room + 1);
    }
    for (size_t i = 0; i < room; i++)
        draw_line(s, (int)(TOP_HEADER + y + i), &lines[i], false);
}

/* Follows the chosen segment, whose row may have changed, and scrolls so that it is visible. If it
 * is gone, chooses the segment that is now in its row. */
static void settle(struct screen *s)
{
    size_t rows = s->rows, n = s->top->n_rows;
    size_t found = s->chosen ? top_find(s->top, s->chosen) : SIZE_MAX;
    if (found != SIZE_MAX)
        s->at = found;
    if (s->at >= n)
        s->at = n ? n - 1 : 0;
    s->chosen = n ? s->top->rows[s->at].segment->id : 0;
    if (s->at < s->first)
        s->first = s->at;
    if (rows && s->at >= s->first + rows)
        s->first = s->at - rows + 1;
    if (s->first + rows > n)
        s->first = n > rows ? n - rows : 0;
}

static void draw_list(struct screen *s)
{
    struct top_line header[TOP_HEADER], line;
    draw_streams_below(s);
    settle(s);
    top_header(s->top, header);
    for (int i = 0; i < TOP_HEADER; i++)
        draw_line(s, i, &header[i], false);
    for (size_t i = 0; i < s->rows && s->first + i < s->top->n_rows; i++) {
        size_t row = s->first + i;
        top_row_line(s->top, &s->top->rows[row], &line);
        draw_line(s, (int)(TOP_HEADER + i), &line, row == s->at);
    }
    if (s->top->n_rows == 0)
        draw_text(s, TOP_HEADER, TOP_DIM,
                  s->top->filter[0] ? "No segment fits the filter." : "No segments.");
}

static const struct shmview_segment_stats *find_segment(const struct screen *s)
{
    const struct shmview_stats *now = s->top->now;
    for (size_t i = 0; i < now->n_segments; i++)
        if (now->segments[i]->id == s->chosen)
            return now->segments[i];
    return NULL;
}

/* Draws the part of n lines that fits from line y of the screen to the bottom. */
static void draw_part(struct screen *s, int y, const struct top_line *lines, size_t n)
{
    size_t rows = LINES > y + 1 ? (size_t)(LINES - y - 1) : 0;
    if (s->first + rows > n)
        s->first = n > rows ? n - rows : 0;
    for (size_t i = 0; i < rows && s->first + i < n; i++)
        draw_line(s, y + (int)i, &lines[s->first + i], false);
}

static void draw_streams(struct screen *s)
{
    struct top_line header[TOP_HEADER];
    size_t n;
    CLEANUP_FREE struct top_line *lines = top_stream_lines(s->top, true, &n);
    top_header(s->top, header);
    for (int i = 0; i < TOP_HEADER - 1; i++)
        draw_line(s, i, &header[i], false);
    if (!lines || n == 0) {
        draw_text(s, TOP_HEADER - 1, TOP_DIM, "No streams among these segments.");
        return;
    }
    draw_line(s, TOP_HEADER - 1, &lines[0], false);
    draw_part(s, TOP_HEADER, lines + 1, n - 1);
}

static void draw_segment(struct screen *s)
{
    static struct top_line lines[DETAIL_LINES];
    const struct shmview_segment_stats *segment = find_segment(s);
    if (!segment) {
        s->view = VIEW_LIST;
        s->notice = "The segment is gone.";
        draw_list(s);
        return;
    }
    size_t n = top_segment(s->top, segment, lines, DETAIL_LINES);
    const struct top_stream *stream = top_streams_find(s->top->streams, segment->id);
    if (stream) {
        top_stream_heading(s->top, &lines[n]);
        top_stream_row(s->top, stream, &lines[n + 1]);
        n += 2;
        n += top_stream_details(s->top, stream, lines + n, DETAIL_LINES - n);
    }
    if (s->top->trouble) { /* the figures are old: the second line gives the reason */
        lines[1].style = TOP_BAD;
        snprintf(lines[1].text, sizeof lines[1].text, "%s", s->top->trouble);
    }
    draw_part(s, 0, lines, n);
}

static void draw_help(const struct screen *s)
{
    static const char *const text[] = {
        "Keys",
        "",
        "  q              leave                    ?  this page",
        "  Up Down j k    choose a segment         PgUp PgDn Home End",
        "  Enter          show the segment         Esc, Backspace, Left  back",
        "  s              streams with each reader, or segments",
        "  /              filter by name: a part of it, or a pattern with * ? [",
        "  < >            sort by another column; r reverses the order",
        "  N S M A H      sort by name, size, resident memory, attachments, held",
        "  W C D T        by waiting, changes, deaths, age",
        "  b              sizes in bytes, or rounded",
        "  Space          update now",
        "",
        "Yellow: a program waits for the lock. HELD and FOR: how long it is held, and",
        "the longest wait; a holder's time is known once another program waits.",
        "Of a stream: its readers have missed frames. LAG is that of the slowest reader.",
    };
    for (size_t i = 0; i < ARRAY_LEN(text) && (int)i < LINES - 1; i++)
        draw_text(s, (int)i, i ? TOP_PLAIN : TOP_BOLD, text[i]);
}

static void draw_bottom(const struct screen *s)
{
    char text[TOP_LINE];
    const struct top *t = s->top;
    if (s->is_typing)
        snprintf(text, sizeof text, "Filter: %s", t->filter);
    else if (s->notice)
        snprintf(text, sizeof text, "%s", s->notice);
    else if (s->view == VIEW_LIST)
        snprintf(text, sizeof text,
                 "by %s%s | q leave  Enter show  / filter  s streams  < > sort  ? keys",
                 top_key_names[t->key], t->is_reversed ? ", reversed" : "");
    else
        snprintf(text, sizeof text, "Esc back  q leave  ? keys");
    draw_text(s, LINES - 1, s->notice ? TOP_WARN : TOP_DIM, text);
    curs_set(s->is_typing);
    if (s->is_typing)
        move(LINES - 1, (int)strlen(text) < COLS ? (int)strlen(text) : COLS - 1);
}

static void draw(struct screen *s)
{
    erase(); /* curses sends only the characters that differ */
    if (s->view == VIEW_HELP)
        draw_help(s);
    else if (s->view == VIEW_SEGMENT)
        draw_segment(s);
    else if (s->view == VIEW_STREAMS)
        draw_streams(s);
    else
        draw_list(s);
    draw_bottom(s);
    refresh();
}

/* --- Keys ---------------------------------------------------------------- */

/* Returns 0, or -1 if memory is short. */
static int sort_by(struct screen *s, enum top_key key)
{
    s->top->key = key;
    return top_arrange(s->top);
}

/* Changes the filter by a key; the list follows at once. ESC restores the old filter. Returns 0, or
 * -1 if memory is short. */
static int type_filter(struct screen *s, int key)
{
    char *filter = s->top->filter;
    size_t n = strlen(filter);
    if (key == '\n' || key == '\r' || key == KEY_ENTER) {
        s->is_typing = false;
    } else if (key == ESC) {
        s->is_typing = false;
        strcpy(filter, s->kept);
    } else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
        filter[n ? n - 1 : 0] = '\0';
    } else if (key > ' ' && key < 127 && n + 1 < TOP_FILTER) {
        filter[n] = (char)key;
        filter[n + 1] = '\0';
    }
    return top_arrange(s->top);
}

/* Moves to another row, or scrolls the page of a segment. */
static void move_by(struct screen *s, long rows)
{
    size_t *at = s->view == VIEW_LIST ? &s->at : &s->first;
    size_t n = s->top->n_rows;
    if (rows < 0)
        *at -= *at < (size_t)-rows ? *at : (size_t)-rows;
    else
        *at += *at > SIZE_MAX / 2 ? 0 : (size_t)rows;
    if (s->view != VIEW_LIST)
        return; /* draw_part() limits it to the end of the page */
    if (*at >= n)
        *at = n ? n - 1 : 0;
    s->chosen = n ? s->top->rows[*at].segment->id : 0;
}

static bool move_key(struct screen *s, int key)
{
    long page = LINES > 6 ? LINES - 6 : 1;
    static const struct {
        int key, pages, rows;
    } moves[] = {
        {KEY_UP, 0, -1},       {'k', 0, -1},      {KEY_DOWN, 0, 1},        {'j', 0, 1},
        {KEY_PPAGE, -1, 0},    {KEY_NPAGE, 1, 0}, {KEY_HOME, 0, -1000000}, {'g', 0, -1000000},
        {KEY_END, 0, 1000000}, {'G', 0, 1000000}};
    for (size_t i = 0; i < ARRAY_LEN(moves); i++)
        if (moves[i].key == key) {
            move_by(s, moves[i].pages * page + moves[i].rows);
            return true;
        }
    return false;
}

static int sort_key(struct screen *s, int key)
{
    static const char letters[] = "NSMAHWCDT"; /* in the order of enum top_key */
    const char *at = key > 0 && key < 127 ? strchr(letters, key) : NULL;
    if (at && *at)
        return sort_by(s, (enum top_key)(at - letters));
    if (key == '>')
        return sort_by(s, (enum top_key)((s->top->key + 1) % N_TOP_KEYS));
    if (key == '<')
        return sort_by(s, (enum top_key)((s->top->key + N_TOP_KEYS - 1) % N_TOP_KEYS));
    if (key == 'r') {
        s->top->is_reversed = !s->top->is_reversed;
        return top_arrange(s->top);
    }
    return 0;
}

/* Enters or leaves a page. Other keys do nothing. */
static void change_view(struct screen *s, int key)
{
    bool enters = key == '\n' || key == '\r' || key == KEY_ENTER || key == KEY_RIGHT;
    bool leaves =
        key == ESC || key == KEY_BACKSPACE || key == 127 || key == '\b' || key == KEY_LEFT;
    if (key == '?' || key == 'h')
        s->view = VIEW_HELP;
    else if (key == 's')
        s->view = s->view == VIEW_STREAMS ? VIEW_LIST : VIEW_STREAMS;
    else if (enters && s->view == VIEW_LIST && s->chosen)
        s->view = VIEW_SEGMENT;
    else if (leaves || (enters && s->view == VIEW_HELP))
        s->view = VIEW_LIST;
    else
        return;
    s->first = 0;
}

/* Handles one key. Returns 0, or -1 if memory is short. */
static int handle_key(struct screen *s, int key)
{
    s->notice = NULL;
    if (s->is_typing)
        return type_filter(s, key);
    if (move_key(s, key))
        return 0;
    switch (key) {
    case 'q':
        s->is_done = true;
        return 0;
    case ' ':
        s->wants_figures = true;
        return 0;
    case 'b':
        s->top->wants_bytes = !s->top->wants_bytes;
        return 0;
    case '/':
        strcpy(s->kept, s->top->filter);
        s->view = VIEW_LIST;
        s->is_typing = true;
        return 0;
    default:
        change_view(s, key);
        return sort_key(s, key);
    }
}

/* --- The loop ------------------------------------------------------------ */

/* Waits for a key until deadline_ns. Returns false if the terminal has hung up. */
static bool await_key(int64_t deadline_ns)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    int64_t left_ms = (deadline_ns - shmview_deadline(0)) / 1000000 + 1;
    int r = poll(&p, 1, left_ms < 0 ? 0 : left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
    return r <= 0 ? r == 0 || errno == EINTR : !(p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

/* Runs until the user leaves. Measures each query, and waits at least COST_PART times as long, so
 * that watching does not slow a busy daemon further. */
static int serve(struct context *c, struct screen *s, int64_t delay_ns, top_refresh refresh_stats)
{
    int64_t next = shmview_deadline(delay_ns);
    while (!s->is_done) {
        int r = 0;
        draw(s);
        if (!await_key(next))
            return EXIT_OK;
        for (int key; r == 0 && !s->is_done && (key = getch()) != ERR;)
            r = handle_key(s, key); /* KEY_RESIZE needs only the next draw() */
        if (r)
            return fail_memory(c);
        if (!s->wants_figures && shmview_deadline(0) < next)
            continue;
        s->wants_figures = false;
        int64_t began = shmview_deadline(0);
        int status = refresh_stats(c, s->top);
        if (status)
            return status;
        int64_t cost = (shmview_deadline(0) - began) * COST_PART;
        next = shmview_deadline(cost > delay_ns ? cost : delay_ns);
    }
    return EXIT_OK;
}

/* Gives the terminal back as it was. */
static void leave(void)
{
    endwin();
}

int top_screen(struct context *c, struct top *top, int64_t delay_ns, bool shows_streams,
               top_refresh refresh_stats)
{
    struct screen s = {.top = top, .view = shows_streams ? VIEW_STREAMS : VIEW_LIST};
    const char *term = getenv("TERM");
    SCREEN *terminal = newterm(NULL, stdout, stdin);
    if (!terminal)
        return fail_text(c, "terminal type '%s' is unknown here: set TERM, or use --batch",
                         term ? term : "");
    bus_error_at_end(leave);
    choose_styles(&s);
    set_escdelay(ESC_DELAY_MS);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    int status = serve(c, &s, delay_ns, refresh_stats);
    leave();
    bus_error_at_end(NULL);
    delscreen(terminal);
    return status;
}
