/* SPDX-License-Identifier: Apache-2.0 */
/* When memory is short or a file cannot be read, no part of the configuration is used and the error
 * is reported. */
#include "unit/unit.h"

#include "unit/faults.h"

#include "daemon/config/config_read.h"

static const char text[] =
    "{'create':['user:1','group:2'],'admin_group':'0','segments':[{'name':'a','size':64,'acl':["
    "'user:root:r'],'layouts':[{'name':'l','views':[{'name':'v','format':'T{b:x:i:y:}',"
    "'shape':[2]}]}]},{'name':'b','size':1},{'name':'c','stream':{'mode':'latest','views':["
    "{'name':'v','format':'B','shape':[2]}]}}]}";

static unsigned n_said;
static char said[512]; /* the last reported line */

static void say(void *arg, const char *line)
{
    (void)arg;
    n_said++;
    snprintf(said, sizeof said, "%s", line);
}

static const char *write_config(void)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/c.json", unit_directory());
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    fputs(unit_json(text), f);
    fclose(f);
    ck_assert_int_eq(chmod(path, 0600), 0);
    return path;
}

static void read_with_faults(unsigned classes)
{
    const char *path = write_config();
    unsigned n_failed = 0;
    for (unsigned n = 1;; n++) {
        n_said = 0;
        faults_begin(classes, n);
        bool may_pass;
        struct config *c = config_read(path, true, say, NULL, &may_pass);
        bool failed = faults_end();
        ck_assert_msg((c == NULL) == (n_said > 0), "%s %u: %u lines", faults_name(), n, n_said);
        ck_assert_msg(!c || c->n_segments == 3, "%s %u", faults_name(), n);
        if (!c)
            ck_assert_msg(strlen(strstr(said, ": ") + 2) > 5, "%s %u: \"%s\"", faults_name(), n,
                          said);
        n_failed += !c;
        config_free(c);
        if (!failed)
            break;
    }
    ck_assert_uint_gt(n_failed, 3);
}

START_TEST(memory)
{
    read_with_faults(FAULTS_MEMORY);
}
END_TEST

START_TEST(system_calls)
{
    static const struct {
        const char *call;
        int error;
        bool may_pass;
    } calls[] = {
        {"open", EIO, true}, {"fstat", EIO, true}, {"open", EMFILE, true}, {"open", EACCES, false}};
    const char *path = write_config();
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        bool may_pass = !calls[i].may_pass;
        faults_begin_call(calls[i].call, 1, calls[i].error, false);
        ck_assert_ptr_null(config_read(path, true, say, NULL, &may_pass));
        ck_assert(faults_end());
        unit_assert_holds(said, strerror(calls[i].error));
        ck_assert_int_eq(may_pass, calls[i].may_pass);
    }
}
END_TEST

UNIT_MAIN("config_faults", UNIT_TEST(memory), UNIT_TEST(system_calls))
