/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/name.h"

#include <stdlib.h>
#include <string.h>

/* isalnum() would depend on the locale. */
static bool letter_is_valid(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

bool name_is_valid(const char *name, size_t max_bytes)
{
    size_t n = strnlen(name, max_bytes + 1);
    if (n == 0 || n > max_bytes || name[0] == '.')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!letter_is_valid(name[i]))
            return false;
    return true;
}

const char **names_copy(const char *const *names, size_t n)
{
    size_t bytes = (n + 1) * sizeof *names;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(names[i]) + 1;
    const char **list = malloc(bytes);
    if (!list)
        return NULL;
    char *text = (char *)&list[n + 1];
    for (size_t i = 0; i < n; i++) {
        list[i] = text;
        text = stpcpy(text, names[i]) + 1;
    }
    list[n] = NULL;
    return list;
}
