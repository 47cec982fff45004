/* SPDX-License-Identifier: Apache-2.0 */
/* Files of shmviewctl on a file system that reports a lack of room only when a file is closed, as
 * NFS does. */
#include "cli/data/outfile.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unit/unit.h"

static bool is_full;

/* For all code of this program. */
int close(int fd)
{
    int r = (int)syscall(SYS_close, fd);
    if (r == 0 && is_full) {
        errno = EDQUOT;
        return -1;
    }
    return r;
}

static void expect_text(const char *path, const char *text)
{
    char bytes[16] = "";
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(bytes, sizeof bytes, f));
    ck_assert_str_eq(bytes, text);
    fclose(f);
}

static int replace(const char *path, const char *text)
{
    struct context c = {0};
    CLEANUP_OUTFILE struct outfile file;
    int status = outfile_open(&c, &file, path, strlen(text));
    status = status ? status : outfile_write(&file, text, strlen(text));
    return status ? status : outfile_commit(&file);
}

START_TEST(an_error_at_the_end_keeps_the_old_file)
{
    char path[300];
    snprintf(path, sizeof path, "%s/file", unit_directory());
    ck_assert_int_eq(replace(path, "old"), 0);
    expect_text(path, "old");
    is_full = true;
    ck_assert_int_ne(replace(path, "new"), 0);
    is_full = false;
    expect_text(path, "old");
    ck_assert_int_eq(replace(path, "new"), 0);
    expect_text(path, "new");
}
END_TEST

UNIT_MAIN("cli_outfile", UNIT_TEST(an_error_at_the_end_keeps_the_old_file))
