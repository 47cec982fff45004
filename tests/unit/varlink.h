/* SPDX-License-Identifier: Apache-2.0 */
/* Compares JSON with a .varlink text: every member must be there and have its type, and the text
 * must know every member. */
#ifndef UNIT_VARLINK_H
#define UNIT_VARLINK_H

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <check.h>
#include <jansson.h>

/* Stands for a value that is skipped without a check. */
static json_t varlink_skip;

static inline const char *varlink_space(const char *p)
{
    for (;;) {
        p += strspn(p, " \n\t,");
        if (*p != '#')
            return p;
        p += strcspn(p, "\n");
    }
}

static inline size_t varlink_word(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    return n;
}

/* Returns the text after "keyword name", or NULL. */
static inline const char *varlink_find(const char *text, const char *keyword, const char *name,
                                       size_t n)
{
    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        size_t k = strlen(keyword);
        if (strncmp(p, keyword, k) != 0 || p[k] != ' ')
            continue;
        const char *word = p + k + 1;
        if (varlink_word(word) == n && strncmp(word, name, n) == 0)
            return varlink_space(word + n);
    }
    return NULL;
}

static inline const char *varlink_check(const char *text, const char *p, json_t *v,
                                        const char *path);

/* Checks v against a struct or an enum that begins at its "(". Returns the text after its ")". */
static inline const char *varlink_check_list(const char *text, const char *p, json_t *v,
                                             const char *path)
{
    size_t known = 0;
    bool is_enum = false, found = false;
    ck_assert_int_eq(*p++, '(');
    while (*(p = varlink_space(p)) != ')') {
        size_t n = varlink_word(p);
        char name[64], inner[200];
        ck_assert_uint_gt(n, 0);
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        snprintf(inner, sizeof inner, "%s.%s", path, name);
        p = varlink_space(p + n);
        if (*p != ':') {
            is_enum = true;
            found = found || (json_is_string(v) && strcmp(json_string_value(v), name) == 0);
            continue;
        }
        json_t *member = v == &varlink_skip ? v : json_object_get(v, name);
        known += member != NULL;
        p = varlink_check(text, varlink_space(p + 1), member, inner);
    }
    if (v != &varlink_skip && is_enum)
        ck_assert_msg(found, "%s is none of its values", path);
    if (v != &varlink_skip && !is_enum) {
        ck_assert_msg(json_is_object(v), "%s is no object", path);
        ck_assert_msg(known == json_object_size(v), "%s has a member too many", path);
    }
    return p + 1;
}

/* Checks v against the type at p. Returns the text after the type. */
static inline const char *varlink_check(const char *text, const char *p, json_t *v,
                                        const char *path)
{
    size_t i;
    json_t *element;
    if (*p == '?')
        return varlink_check(text, p + 1, !v || json_is_null(v) ? &varlink_skip : v, path);
    ck_assert_msg(v, "%s is missing", path);
    if (*p == '[') {
        ck_assert_msg(v == &varlink_skip || json_is_array(v), "%s is no array", path);
        if (v != &varlink_skip)
            json_array_foreach (v, i, element)
                varlink_check(text, p + 2, element, path);
        return varlink_check(text, p + 2, &varlink_skip, path);
    }
    if (*p == '(')
        return varlink_check_list(text, p, v, path);
    size_t n = varlink_word(p);
    bool right = v == &varlink_skip;
    if (strncmp(p, "string", n) == 0)
        right = right || json_is_string(v);
    else if (strncmp(p, "int", n) == 0)
        right = right || json_is_integer(v);
    else if (strncmp(p, "bool", n) == 0)
        right = right || json_is_boolean(v);
    else {
        const char *type = varlink_find(text, "type", p, n);
        ck_assert_msg(type, "%s: no type %.*s", path, (int)n, p);
        varlink_check(text, type, v, path);
        right = true;
    }
    ck_assert_msg(right, "%s is no %.*s", path, (int)n, p);
    return p + n;
}

/* Checks the parameters of a reply to method (without its interface). */
static inline void varlink_check_reply(const char *text, const char *method, json_t *parameters)
{
    const char *p = varlink_find(text, "method", method, strlen(method));
    ck_assert_msg(p, "the text knows no method %s", method);
    p = varlink_space(varlink_check(text, p, &varlink_skip, method));
    ck_assert_int_eq(strncmp(p, "->", 2), 0);
    varlink_check(text, varlink_space(p + 2), parameters, method);
}

/* Checks the parameters of an error. Our errors of org.varlink.service have a "reason" in addition
 * to the standard parameters. */
static inline void varlink_check_error(const char *text, const char *error, json_t *parameters)
{
    const char *p = varlink_find(text, "error", error, strlen(error));
    ck_assert_msg(p, "the text knows no error %s", error);
    json_t *copy = json_copy(parameters);
    if (strstr(text, "interface org.varlink.service"))
        json_object_del(copy, "reason");
    varlink_check(text, p, copy, error);
    json_decref(copy);
}

#endif
