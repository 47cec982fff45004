/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a target on the given files, and on every file of a given directory. So the corpus is a
 * plain test, and one input that a fuzzer found can be replayed. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz.h"

/* Returns how many inputs were run. */
static unsigned run_file(const char *path)
{
    struct stat st;
    FILE *file = fopen(path, "re");
    if (!file || fstat(fileno(file), &st)) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    size_t size = (size_t)st.st_size;
    /* of exactly that size, so that a sanitizer reports a read beyond its end */
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, file) != size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static unsigned run_directory(const char *path)
{
    unsigned n = 0;
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char file[PATH_MAX];
        if (entry->d_name[0] == '.' ||
            snprintf(file, sizeof file, "%s/%s", path, entry->d_name) >= (int)sizeof file)
            continue;
        n += run_file(file);
    }
    if (directory)
        closedir(directory);
    return n;
}

int main(int argc, char **argv)
{
    unsigned n = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        n += stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode) ? run_directory(argv[i])
                                                            : run_file(argv[i]);
    }
    printf("%u inputs\n", n);
    return n ? EXIT_SUCCESS : EXIT_FAILURE;
}
