/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/text/target.h"

static bool is_name_character(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '.' || ch == '_' || ch == '-';
}

/* Takes a name from *p, and moves *p after it. Returns 0 or the exit status. */
static int take_name(struct context *c, const char *text, const char *what, const char **p,
                     char *ret, size_t bytes)
{
    size_t n = 0;
    while (is_name_character((*p)[n]))
        n++;
    if (n == 0)
        return fail_usage(c, "'%s': the name of a %s is expected at character %td", text, what,
                          *p - text);
    if (n >= bytes)
        return fail_usage(c, "'%s': the name of a %s has at most %zu characters", text, what,
                          bytes - 1);
    memcpy(ret, *p, n);
    ret[n] = '\0';
    *p += n;
    return 0;
}

int target_parse(struct context *c, const struct target_options *how, const char *text,
                 struct target *ret)
{
    struct problem problem;
    const char *p = text;
    *ret = (struct target){.c = c, .how = how};
    int status = take_name(c, text, "segment", &p, ret->name, sizeof ret->name);
    if (status == 0 && p[0] == ':' && p[1] >= '0' && p[1] <= '9' && !is_name_character(p[2])) {
        ret->stage[0] = ':';
        ret->stage[1] = p[1];
        p += 2;
    }
    if (status == 0 && *p == '/') {
        p++;
        status = take_name(c, text, "view", &p, ret->view, sizeof ret->view);
        if (status == 0 && *p == ':') {
            memcpy(ret->layout, ret->view, sizeof ret->layout);
            p++;
            status = take_name(c, text, "view", &p, ret->view, sizeof ret->view);
        }
    }
    if (status)
        return status;
    if (*p && *p != '[')
        return fail_usage(c,
                          "'%s': '%c' at character %td; write NAME, NAME/VIEW or "
                          "NAME/LAYOUT:VIEW, and a part of it in brackets",
                          text, *p, p - text);
    if (slice_parse(p, &ret->slice, &problem))
        return fail_usage(c, "%s", problem.text);
    return 0;
}

const char *target_text(const struct target *t)
{
    static char text[512];
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", t->name, t->stage, t->view[0] ? "/" : "",
             t->layout, t->layout[0] ? ":" : "", t->view, t->slice.text ? t->slice.text : "");
    return text;
}
