/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the table of methods with the .varlink texts, which clients rely on. Includes methods.c
 * to see its table. */
#include "unit/unit.h"

#include <shmview/error.h>

#include "daemon/requests/methods.c"
#include "unit/varlink.h"
#include "varlink_text.h"

#define TEXT    varlink_text_io_shmview
#define SERVICE varlink_text_org_varlink_service

/* Returns whether a method of that name has a row. */
static bool is_implemented(const char *interface, const char *name, size_t n)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%.*s", interface, (int)n, name);
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].name, full) == 0)
            return true;
    return false;
}

/* Calls visit for the name after each "keyword " at the beginning of a line. Returns how many. */
static unsigned each(const char *text, const char *keyword, void (*visit)(const char *, size_t))
{
    unsigned count = 0;
    char line[32];
    snprintf(line, sizeof line, "\n%s ", keyword);
    for (const char *p = text; (p = strstr(p, line)); count++) {
        p += strlen(line);
        visit(p, varlink_word(p));
    }
    return count;
}

static void assert_row(const char *name, size_t n)
{
    ck_assert_msg(is_implemented("io.shmview", name, n), "io.shmview.%.*s has no row", (int)n,
                  name);
}

static void assert_service_row(const char *name, size_t n)
{
    ck_assert_msg(is_implemented("org.varlink.service", name, n), "%.*s has no row", (int)n, name);
}

START_TEST(every_method_of_the_text_is_implemented)
{
    ck_assert_uint_eq(each(TEXT, "method", assert_row), 16);
    ck_assert_uint_eq(each(SERVICE, "method", assert_service_row), 2);
}
END_TEST

START_TEST(every_method_implemented_is_in_the_text)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        const char *name = strrchr(methods[i].name, '.') + 1;
        bool ours = strncmp(methods[i].name, "io.shmview.", 11) == 0;
        ck_assert_ptr_nonnull(methods[i].run);
        ck_assert_msg(varlink_find(ours ? TEXT : SERVICE, "method", name, strlen(name)),
                      "%s is not in the text", methods[i].name);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(methods[i].name, methods[k].name);
    }
}
END_TEST

static void assert_declared(const char *full)
{
    const char *name = strrchr(full, '.') + 1;
    bool ours = strncmp(full, "io.shmview.", 11) == 0;
    ck_assert_msg(ours || strncmp(full, "org.varlink.service.", 20) == 0, "%s", full);
    const char *p = varlink_find(ours ? TEXT : SERVICE, "error", name, strlen(name));
    ck_assert_msg(p, "%s is not declared", full);
    varlink_check_list(ours ? TEXT : SERVICE, p, &varlink_skip, name);
}

static const char *const error_names[] = {
#define X(name, value, wire, text) wire,
    SHMVIEW_ERROR_LIST(X)
#undef X
        "org.varlink.service.InterfaceNotFound",
    "org.varlink.service.MethodNotFound",
    "org.varlink.service.MethodNotImplemented",
};

START_TEST(every_error_sent_is_declared)
{
    for (size_t i = 0; i < ARRAY_LEN(error_names); i++)
        if (error_names[i][0])
            assert_declared(error_names[i]);
}
END_TEST

static void assert_sent(const char *name, size_t n)
{
    char full[128];
    snprintf(full, sizeof full, "io.shmview.%.*s", (int)n, name);
    for (size_t i = 0; i < ARRAY_LEN(error_names); i++)
        if (strcmp(error_names[i], full) == 0)
            return;
    ck_abort_msg("nobody sends %s", full);
}

static void assert_has_reason(const char *name, size_t n)
{
    const char *p = varlink_find(TEXT, "error", name, n);
    char declaration[200];
    snprintf(declaration, sizeof declaration, "%.*s", (int)strcspn(p, ")"), p);
    unit_assert_holds(declaration, "reason: string");
}

START_TEST(every_error_declared_is_sent)
{
    ck_assert_uint_gt(each(TEXT, "error", assert_sent), 10);
    each(TEXT, "error", assert_has_reason);
}
END_TEST

/* Every type that the texts name must be defined and readable. */
static void assert_type(const char *name, size_t n)
{
    varlink_check(TEXT, varlink_find(TEXT, "type", name, n), &varlink_skip, "type");
}

static void assert_method(const char *name, size_t n)
{
    const char *p = varlink_find(TEXT, "method", name, n);
    p = varlink_space(varlink_check(TEXT, p, &varlink_skip, "parameters"));
    ck_assert_int_eq(strncmp(p, "->", 2), 0);
    varlink_check(TEXT, varlink_space(p + 2), &varlink_skip, "reply");
}

START_TEST(the_text_can_be_read)
{
    ck_assert_ptr_eq(strstr(TEXT, "# "), TEXT);
    ck_assert_ptr_nonnull(strstr(TEXT, "\ninterface io.shmview\n"));
    ck_assert_ptr_nonnull(strstr(SERVICE, "\ninterface org.varlink.service\n"));
    each(TEXT, "type", assert_type);
    each(TEXT, "method", assert_method);
    for (const char *p = TEXT; *p; p++)
        ck_assert(*p == '\n' || (*p >= ' ' && *p <= '~'));
}
END_TEST

/* Values that C and the text both define. */
START_TEST(values_of_enums)
{
    for (int64_t i = 1; i <= 3; i++) {
        json_t *access = json_string(wire_access_name(i));
        json_t *lifetime = json_string(wire_lifetime_name(i));
        varlink_check(TEXT, varlink_find(TEXT, "type", "Access", 6), access, "Access");
        varlink_check(TEXT, varlink_find(TEXT, "type", "Lifetime", 8), lifetime, "Lifetime");
        json_decref(access);
        json_decref(lifetime);
    }
}
END_TEST

static json_t *parameters_of(char *call)
{
    json_t *root = json_loads(call, 0, NULL);
    json_t *parameters = json_incref(json_object_get(root, "parameters"));
    json_decref(root);
    free(call);
    return parameters;
}

/* The requests that clients write must match the text. */
START_TEST(requests)
{
    struct wire_view view = {"v",
                             "i",
                             true,
                             {.offset = 8,
                              .ndim = 1,
                              .read_only = true,
                              .indirect = true,
                              .shape = {2},
                              .strides = {4},
                              .suboffsets = {-1}}};
    struct wire_define define = {"s", {"l", &view, 1}, 5};
    struct wire_describe describe_it = {"s", 5, "l", 1};
    struct wire_acl_entry acl[] = {{.user = 7, .is_user = true, .right = WIRE_RIGHT_WRITE}};
    struct wire_grant grant = {0600, 1, 2, acl, 1};
    struct wire_create create = {"s",
                                 1,
                                 SHMVIEW_WRITE,
                                 SHMVIEW_MANUAL,
                                 false,
                                 grant,
                                 "l",
                                 SHMVIEW_BACKING_SEALED,
                                 WIRE_MEMORY_CLIENT,
                                 SHMVIEW_HUGE_WANTED,
                                 SHMVIEW_NUMA_NODE,
                                 0,
                                 true};
    struct wire_set_access set_access = {"s", 5, grant};
    struct wire_attach attach_to = {"s", SHMVIEW_WRITE, 5};
    struct wire_entrust entrust = {"s", 5};
    int64_t held[] = {1, 2};
    struct wire_claim claim = {7, held, 2, WIRE_PRESENCE_KEPT, true};
    json_t *written[] = {parameters_of(wire_define_text(&define)),
                         parameters_of(wire_create_text(&create)),
                         parameters_of(wire_attach_text(&attach_to)),
                         parameters_of(wire_describe_text(&describe_it)),
                         parameters_of(wire_set_access_text(&set_access)),
                         parameters_of(wire_entrust_text(&entrust)),
                         parameters_of(wire_claim_text(&claim)),
                         parameters_of(wire_remove_text("s")),
                         parameters_of(wire_detach_text(1))};
    const char *names[] = {"DefineLayout", "Create", "Attach", "Describe", "SetAccess",
                           "Entrust",      "Claim",  "Remove", "Detach"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        varlink_check(TEXT, varlink_find(TEXT, "method", names[i], strlen(names[i])), written[i],
                      names[i]);
        json_decref(written[i]);
    }
}
END_TEST

UNIT_MAIN("varlink", UNIT_TEST(every_method_of_the_text_is_implemented),
          UNIT_TEST(every_method_implemented_is_in_the_text),
          UNIT_TEST(every_error_sent_is_declared), UNIT_TEST(every_error_declared_is_sent),
          UNIT_TEST(the_text_can_be_read), UNIT_TEST(values_of_enums), UNIT_TEST(requests))
