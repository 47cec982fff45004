/* SPDX-License-Identifier: Apache-2.0 */
/* Checks which configuration files are read, and which are refused. */
#include "unit/unit.h"

#include "daemon/config/config_read.h"

static char said[4 * PATH_MAX];
static bool may_pass;

static void say(void *arg, const char *line)
{
    size_t n = strlen(said);
    (void)arg;
    snprintf(said + n, sizeof said - n, "%s\n", line);
}

/* Returns the path of a file of this test, which is valid until the next call but three. */
static const char *at(const char *name)
{
    static char paths[4][200];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", unit_directory(), name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "we");
    ck_assert_ptr_nonnull(f);
    fputs(unit_json(text), f);
    fclose(f);
    ck_assert_int_eq(chmod(at(name), 0644), 0);
}

static struct config *read_config(const char *name, bool required)
{
    said[0] = '\0';
    struct config *c = config_read(at(name), required, say, NULL, &may_pass);
    ck_assert_msg((c == NULL) == (said[0] != '\0'), "%s", said);
    return c;
}

static struct config *reads(const char *name)
{
    struct config *c = read_config(name, true);
    ck_assert_msg(c != NULL, "%s", said);
    return c;
}

/* The file must be refused with this line alone, which begins with the path of name. */
static void refused(const char *file, const char *name, const char *rest)
{
    char line[500];
    snprintf(line, sizeof line, "%s%s\n", at(name), rest);
    ck_assert_ptr_null(read_config(file, true));
    ck_assert_str_eq(said, line);
}

START_TEST(in_order)
{
    write_file("c.json", "{'segments':[{'name':'a','size':1}],'defaults':{'mode':'0600'}}");
    ck_assert_int_eq(mkdir(at("c.d"), 0755), 0);
    write_file("c.d/10.json", "{'segments':[{'name':'b','size':1}],'defaults':{'mode':'0602'}}");
    write_file("c.d/9.json", "{'segments':[{'name':'c','size':1}],'defaults':{'mode':'0604'}}");
    write_file("c.d/B.json", "{'segments':[{'name':'d','size':1}]}");
    write_file("c.d/a.json", "{'segments':[{'name':'e','size':1}]}");
    write_file("c.d/.hidden.json", "nothing of this");
    write_file("c.d/a.json~", "is");
    write_file("c.d/README", "read");
    write_file("c.d/.json", "at all");
    struct config *c = reads("c.json");
    ck_assert_uint_eq(c->n_segments, 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(c->segments[i].name[0], "abcde"[i]);
    ck_assert_uint_eq(c->default_mode, 0604);
    config_free(c);
}
END_TEST

START_TEST(what_is_missing)
{
    refused("c.json", "c.json", ": No such file or directory");
    config_free(read_config("c.json", false));
    ck_assert_int_eq(mkdir(at("c.d"), 0755), 0);
    write_file("c.d/a.json", "{'segments':[{'name':'a','size':1}]}");
    struct config *c = read_config("c.json", false);
    ck_assert_uint_eq(c->n_segments, 1); /* the directory alone */
    config_free(c);
    refused("c.json", "c.json", ": No such file or directory");
    c = config_read(CONFIG_NONE, true, say, NULL, &may_pass);
    ck_assert_uint_eq(c->n_segments, 0);
    config_free(c);
}
END_TEST

START_TEST(another_suffix)
{
    write_file("conf", "{}");
    ck_assert_int_eq(mkdir(at("conf.d"), 0755), 0);
    write_file("conf.d/a.json", "\n{'x':1}");
    refused("conf", "conf.d/a.json", ":2: x is not a known key");
}
END_TEST

START_TEST(no_files)
{
    ck_assert_int_eq(mkdir(at("c.json"), 0755), 0);
    refused("c.json", "c.json", ": is not a regular file");
    ck_assert_int_eq(rmdir(at("c.json")), 0);
    ck_assert_int_eq(mkfifo(at("c.json"), 0600), 0);
    refused("c.json", "c.json", ": is not a regular file"); /* without a wait */
    ck_assert_int_eq(unlink(at("c.json")), 0);
    ck_assert_int_eq(symlink("c.json", at("c.json")), 0);
    refused("c.json", "c.json", ": Too many levels of symbolic links");
    ck_assert_int_eq(unlink(at("c.json")), 0);
    write_file("c.json", "{}");
    write_file("c.d", "{}");
    refused("c.json", "c.d", ": is not a directory");
}
END_TEST

START_TEST(of_others)
{
    write_file("c.json", "{}");
    ck_assert_int_eq(chmod(at("c.json"), 0646), 0);
    ck_assert_ptr_null(read_config("c.json", true));
    unit_assert_holds(said, "c.json: has mode 0646: must not be writable by ");
    ck_assert_int_eq(chmod(at("c.json"), 0664), 0);
    struct config *c = read_config("c.json", true);
    ck_assert((geteuid() < 1000) == (c == NULL)); /* only users trust their own group */
    config_free(c);
    ck_assert_int_eq(chmod(at("c.json"), 0444), 0);
    config_free(reads("c.json"));
    ck_assert_int_eq(mkdir(at("c.d"), 0755), 0);
    ck_assert_int_eq(chmod(at("c.d"), 01777), 0); /* anyone could put a file there */
    ck_assert_ptr_null(read_config("c.json", true));
    unit_assert_holds(said, "c.d: has mode 1777: must not be writable by ");
    ck_assert_int_eq(chmod(at("c.d"), 0755), 0);
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chmod(at("c.json"), 0666), 0);
    ck_assert_int_eq(chmod(unit_directory(), 0711), 0);
    ck_assert_int_eq(seteuid(54321), 0);
    c = read_config("c.json", true);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_ptr_null(c);
    unit_assert_holds(said, "c.json: has mode 0666: must not be writable by others\n");
    ck_assert_int_eq(chmod(at("c.json"), 0644), 0);
    ck_assert_int_eq(chown(at("c.json"), 1234, 0), 0);
    refused("c.json", "c.json", ": belongs to uid 1234: must belong to root or to uid 0");
}
END_TEST

START_TEST(a_link_is_what_it_leads_to)
{
    write_file("real", "{'segments':[{'name':'a','size':1}]}");
    ck_assert_int_eq(symlink("real", at("c.json")), 0);
    struct config *c = reads("c.json");
    ck_assert_uint_eq(c->n_segments, 1);
    config_free(c);
    ck_assert_int_eq(chmod(at("real"), 0666), 0);
    ck_assert_ptr_null(read_config("c.json", true));
}
END_TEST

START_TEST(too_much)
{
    write_file("c.json", "{}");
    FILE *f = fopen(at("c.json"), "ae");
    for (int i = 2; i < LIMIT_CONFIG_BYTES; i++)
        fputc(' ', f);
    fflush(f);
    config_free(reads("c.json"));
    fputc(' ', f);
    fclose(f);
    refused("c.json", "c.json", ": has more than 4194304 bytes, which is the limit");
    write_file("c.json", "{}");
    ck_assert_int_eq(mkdir(at("c.d"), 0755), 0);
    for (int i = 0; i <= LIMIT_CONFIG_FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "c.d/%d.json", i);
        write_file(name, "{}");
        if (i == LIMIT_CONFIG_FILES - 1)
            config_free(reads("c.json"));
    }
    refused("c.json", "c.d", ": has 257 files, the limit is 256");
}
END_TEST

START_TEST(by_default)
{
    config_path path;
    setenv("XDG_CONFIG_HOME", "/x", 1);
    setenv("HOME", "/h", 1);
    config_default_path(path);
    ck_assert_str_eq(path, geteuid() < 1000 ? "/etc/shmviewd.json" : "/x/shmviewd.json");
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(54321), 0);
    config_default_path(path);
    ck_assert_str_eq(path, "/x/shmviewd.json");
    setenv("XDG_CONFIG_HOME", "relative", 1);
    config_default_path(path);
    ck_assert_str_eq(path, "/h/.config/shmviewd.json");
    unsetenv("XDG_CONFIG_HOME");
    config_default_path(path);
    ck_assert_str_eq(path, "/h/.config/shmviewd.json");
    setenv("HOME", "relative", 1);
    config_default_path(path);
    ck_assert_str_eq(path, "/dev/null");
    unsetenv("HOME");
    config_default_path(path);
    ck_assert_str_eq(path, "/dev/null");
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

/* Fills ret with a path of the test's file that has n bytes, by components that lead nowhere. */
static void long_path(char *ret, size_t n, const char *name)
{
    size_t at_name = n - strlen(name), used = (size_t)sprintf(ret, "%s/", unit_directory());
    if ((at_name - used) % 2)
        ret[used++] = '/';
    for (; used < at_name; used += 2)
        memcpy(ret + used, "./", 2);
    strcpy(ret + used, name);
}

/* The file itself can be read; its directory, or a file there, has too long a path. */
START_TEST(long_paths)
{
    config_path path;
    write_file("c.json", "{}");
    ck_assert_int_eq(mkdir(at("c.d"), 0755), 0);
    write_file("c.d/it_is_long.json", "{}");
    said[0] = '\0';
    long_path(path, PATH_MAX - 10, "c.json");
    ck_assert_ptr_null(config_read(path, true, say, NULL, &may_pass));
    ck_assert_uint_gt(strlen(said), PATH_MAX - 10);
    unit_assert_holds(said + PATH_MAX - 20, "/c.d: 'it_is_long.json': File name too long\n");
    write_file("c", "{}");
    long_path(path, PATH_MAX - 2, "c"); /* no room for ".d" */
    said[0] = '\0';
    config_free(config_read(path, true, say, NULL, &may_pass));
    ck_assert_str_eq(said, "");
}
END_TEST

/* A file that exists and cannot be read is a fault, because it may declare something. */
START_TEST(what_cannot_be_read)
{
    ck_assert_int_eq(mkdir(at("c.d"), 0755), 0);
    ck_assert_int_eq(symlink("/proc/self/mem", at("c.json")), 0); /* nothing is at address 0 */
    refused("c.json", "c.json", ": Input/output error");
    ck_assert(may_pass);
    write_file("c.d/a.json", "{'x':1}");
    ck_assert_ptr_null(read_config("c.json", true));
    ck_assert(!may_pass); /* because of the other file */
    ck_assert_int_eq(unlink(at("c.d/a.json")), 0);
    ck_assert_int_eq(rmdir(at("c.d")), 0);
    ck_assert_int_eq(unlink(at("c.json")), 0);
    write_file("c.json", "{}");
    ck_assert_int_eq(symlink("c.d", at("c.d")), 0);
    refused("c.json", "c.d", ": Too many levels of symbolic links");
    ck_assert_int_eq(unlink(at("c.d")), 0);
    ck_assert_int_eq(mkdir(at("c.d"), 0711), 0);
    ck_assert_int_eq(chmod(at("c.d"), geteuid() == 0 ? 0711 : 0311), 0);
    ck_assert_int_eq(chmod(unit_directory(), 0711), 0);
    bool is_root = geteuid() == 0;
    if (is_root)
        ck_assert_int_eq(seteuid(54321), 0);
    said[0] = '\0';
    struct config *c = config_read(at("c.json"), true, say, NULL, &may_pass);
    if (is_root)
        ck_assert_int_eq(seteuid(0), 0);
    ck_assert_ptr_null(c);
    unit_assert_holds(said, "c.d: Permission denied\n");
    ck_assert(!may_pass);
}
END_TEST

UNIT_MAIN("config_read", UNIT_TEST(long_paths), UNIT_TEST(what_cannot_be_read), UNIT_TEST(in_order),
          UNIT_TEST(what_is_missing), UNIT_TEST(another_suffix), UNIT_TEST(no_files),
          UNIT_TEST(of_others), UNIT_TEST(a_link_is_what_it_leads_to), UNIT_TEST(too_much),
          UNIT_TEST(by_default))
