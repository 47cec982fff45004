/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page. The build writes them into the program, so that there is no path to
 * follow at run time, and no file to be missing or to be another version. */
#ifndef WEB_FILES_H
#define WEB_FILES_H

#include <stddef.h>

struct file {
    const char *path; /* of the URL, "/app.js" */
    const char *type;
    const unsigned char *bytes;
    size_t n;
};

/* Returns the file at a path, or NULL. "/" is index.html. Never fails. */
const struct file *files_find(const char *path);

#endif
