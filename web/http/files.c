/* SPDX-License-Identifier: Apache-2.0 */
#include "web/http/files.h"

#include <string.h>

#include "page_files.h"

const struct file *files_find(const char *path)
{
    if (strcmp(path, "/") == 0)
        path = "/index.html";
    for (size_t i = 0; i < page_files_n; i++)
        if (strcmp(page_files[i].path, path) == 0)
            return &page_files[i];
    return NULL;
}
