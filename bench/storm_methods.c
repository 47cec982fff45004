/* SPDX-License-Identifier: Apache-2.0 */
/* A storm of all methods. Every method that the daemon names when it is asked for its interfaces
 * must be called here, with as much work for one request as its limits allow. Two more processes do
 * the same with segments of their own at the same time. */
#include "storm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define SEGMENTS    1000
#define GUSTS       2   /* further processes */
#define GUST        200 /* segments of each of them */
#define LAYOUTS     60
#define VIEWS       256
#define ACL_ENTRIES 32
#define MONITORS    56 /* the most of one user */
#define WATCHERS    64
#define RINGS       2000
#define SWITCHES    600
#define HELD        4000 /* attachments of one client */
#define CREATORS    200
#define FREEZES     100
#define HANDOVERS   500
#define CLIENT      4711

#define SHMVIEW "io.shmview."
#define SERVICE "org.varlink.service."

struct scene {
    const char *socket;
    struct shmview_connection *library;
    struct methods called, offered;
    struct caller main, monitors[MONITORS], watchers[WATCHERS];
    unsigned n_monitors, n_watchers;
};

/* Like caller_ask() by the main connection, for a reply that nobody needs. Returns 0 or -1. */
static int ask(struct scene *scene, const char *method, json_t *parameters)
{
    json_t *reply = caller_ask(&scene->main, method, parameters);
    json_decref(reply);
    return reply ? 0 : -1;
}

/* --- Parameters ---------------------------------------------------------- */

/* arg is the beginning of the names. */
static json_t *named(unsigned i, void *arg)
{
    char name[64];
    snprintf(name, sizeof name, "%s%u", (const char *)arg, i);
    return json_pack("{s:s}", "name", name);
}

static json_t *to_create(unsigned i, void *arg)
{
    json_t *parameters = named(i, arg);
    json_object_set_new(parameters, "size", json_integer(4096));
    return parameters;
}

static json_t *to_create_mortal(unsigned i, void *arg)
{
    json_t *parameters = to_create(i, arg);
    json_object_set_new(parameters, "access", json_string("write"));
    json_object_set_new(parameters, "lifetime", json_string("creator"));
    return parameters;
}

static json_t *to_entrust(unsigned i, void *arg)
{
    json_t *parameters = named(i, arg);
    json_object_set_new(parameters, "pid", json_integer(getpid()));
    return parameters;
}

static json_t *to_set_access(unsigned i, void *arg)
{
    json_t *parameters = named(i, arg), *acl = json_array();
    for (unsigned k = 0; k < ACL_ENTRIES; k++)
        json_array_append_new(acl, json_pack("{s:i, s:s}", k % 2 ? "user" : "group", 60000 + k,
                                             "right", k % 3 ? "read" : "write"));
    json_object_set_new(parameters, "acl", acl);
    json_object_set_new(parameters, "mode", json_integer(0640));
    return parameters;
}

static json_t *to_attach(unsigned i, void *arg)
{
    json_t *parameters = named(i % SEGMENTS, arg);
    json_object_set_new(parameters, "access", json_string("write"));
    return parameters;
}

static json_t *to_attach_large(unsigned i, void *arg)
{
    (void)i;
    (void)arg;
    return json_pack("{s:s, s:s}", "name", "large", "access", "read");
}

static json_t *to_detach(unsigned i, void *arg)
{
    return json_pack("{s:I}", "attachment", ((const json_int_t *)arg)[i]);
}

static json_t *nothing(unsigned i, void *arg)
{
    (void)i;
    (void)arg;
    return json_object();
}

static json_t *to_end_freeze(unsigned i, void *arg)
{
    (void)i;
    return json_pack("{s:I, s:b}", "attachment", *(const json_int_t *)arg, "done", 1);
}

static json_t *to_define(unsigned i, void *arg)
{
    char text[32];
    json_t *views = json_array();
    for (unsigned k = 0; k < VIEWS; k++) {
        snprintf(text, sizeof text, "view%u", k);
        json_array_append_new(views, json_pack("{s:s, s:s, s:[i], s:i}", "name", text, "format",
                                               "d", "shape", 1, "offset", 8 * k));
    }
    snprintf(text, sizeof text, "layout%u", i);
    return json_pack("{s:s, s:{s:s, s:o}}", "name", arg, "layout", "name", text, "views", views);
}

/* --- Steps --------------------------------------------------------------- */

/* Notes the methods of one interface, which are lines such as "method Ping() -> ()". */
static void note_offered(struct scene *scene, const char *interface, const char *text)
{
    char method[64], name[128];
    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (sscanf(p, "method %63[A-Za-z0-9]", method) != 1)
            continue;
        snprintf(name, sizeof name, "%.*s.%s", 40, interface, method);
        methods_note(&scene->offered, name);
    }
}

static int introspect(struct scene *scene)
{
    size_t i;
    json_t *interface, *info = caller_ask(&scene->main, SERVICE "GetInfo", json_object());
    int r = info ? 0 : -1;
    json_array_foreach (json_object_get(info, "interfaces"), i, interface) {
        const char *name = json_string_value(interface);
        json_t *reply = caller_ask(&scene->main, SERVICE "GetInterfaceDescription",
                                   json_pack("{s:s}", "interface", name));
        const char *text = json_string_value(json_object_get(reply, "description"));
        if (text)
            note_offered(scene, name, text);
        else
            r = -1;
        json_decref(reply);
    }
    json_decref(info);
    return r || scene->offered.n ? r : failed("the daemon names no method");
}

static int fill(struct scene *scene)
{
    struct caller *c = &scene->main;
    return ask(scene, SHMVIEW "Create",
               json_pack("{s:s, s:i}", "name", "large", "size", 1 << 20)) ||
                   ask(scene, SHMVIEW "Attach",
                       json_pack("{s:s, s:s}", "name", "large", "access", "write")) ||
                   caller_ask_many(c, SHMVIEW "Create", SEGMENTS, to_create, "small", NULL) ||
                   caller_ask_many(c, SHMVIEW "SetAccess", SEGMENTS, to_set_access, "small", NULL)
               ? -1
               : 0;
}

static int define(struct scene *scene)
{
    return caller_ask_many(&scene->main, SHMVIEW "DefineLayout", LAYOUTS, to_define, "large", NULL);
}

static int monitor(struct scene *scene)
{
    for (; scene->n_monitors < MONITORS; scene->n_monitors++) {
        struct caller *c = &scene->monitors[scene->n_monitors];
        if (caller_open(c, scene->socket, &scene->called))
            return -1;
        json_t *reply = caller_ask(c, SHMVIEW "Monitor", json_object());
        json_decref(reply);
        if (!reply) {
            caller_close(c);
            return -1;
        }
    }
    return 0;
}

/* Every second monitor reads. */
static void read_events(struct scene *scene)
{
    for (unsigned i = 0; i < scene->n_monitors; i += 2)
        caller_drain(&scene->monitors[i]);
}

/* Asks from page to page: the reply has the place of the next one as `next`. */
static int ask_pages(struct scene *scene, const char *method, const char *from, json_t *parameters)
{
    for (json_t *next = json_integer(0); next;) {
        json_object_set_new(parameters, from, next);
        json_t *reply = caller_ask(&scene->main, method, json_incref(parameters));
        next = json_incref(json_object_get(reply, "next"));
        json_decref(reply);
        if (!reply) {
            json_decref(parameters);
            return -1;
        }
    }
    json_decref(parameters);
    return 0;
}

static int look_at_all(struct scene *scene)
{
    return ask_pages(scene, SHMVIEW "List", "after", json_object()) ||
                   ask_pages(scene, SHMVIEW "Describe", "from",
                             json_pack("{s:s}", "name", "large")) ||
                   ask_pages(scene, SHMVIEW "Stats", "after", json_pack("{s:i}", "limit", 1000)) ||
                   ask(scene, SHMVIEW "Ping", json_object())
               ? -1
               : 0;
}

/* As many clients as may watch one segment do so, and one rings its bell without pause. */
static int watch(struct scene *scene)
{
    json_int_t id = 0;
    for (; scene->n_watchers < WATCHERS; scene->n_watchers++) {
        struct caller *c = &scene->watchers[scene->n_watchers];
        if (caller_open(c, scene->socket, &scene->called) ||
            caller_ask_many(c, SHMVIEW "Attach", 1, to_attach, "small", &id) ||
            caller_ask_many(c, SHMVIEW "Watch", 1, to_detach, &id, NULL)) {
            caller_close(c);
            return -1;
        }
    }
    struct caller ringer;
    int r = caller_open(&ringer, scene->socket, &scene->called);
    if (r == 0)
        r = caller_ask_many(&ringer, SHMVIEW "Attach", 1, to_attach, "small", &id);
    json_t *reply =
        r ? NULL
          : caller_ask(&ringer, SHMVIEW "Claim",
                       json_pack("{s:i, s:[I], s:b}", "client", CLIENT + 1, "held", id, "bell", 1));
    json_t *bell = json_object_get(reply, "bell");
    uint64_t ring = (uint64_t)id;
    if (!bell || ringer.n_fds <= json_integer_value(bell))
        r = failed("no bell");
    for (unsigned i = 0; r == 0 && i < RINGS; i++)
        send(ringer.fds[json_integer_value(bell)], &ring, sizeof ring, MSG_NOSIGNAL);
    json_decref(reply);
    caller_close(&ringer);
    return r;
}

/* Makes one layout after the other current, which all monitors hear of. */
static int switch_phases(struct scene *scene)
{
    struct shmview_segment *s;
    char name[32];
    if (storm_check(shmview_attach(scene->library, "large", SHMVIEW_WRITE, 0, &s), "attach"))
        return -1;
    int r = storm_check(shmview_lock(s), "lock");
    for (unsigned i = 0; r == 0 && i < SWITCHES; i++) {
        snprintf(name, sizeof name, "layout%u", i % LAYOUTS);
        r = storm_check(shmview_switch(s, name), "switch");
        usleep(i % 10 ? 0 : 1000); /* so that it lasts for some looks of the daemon */
    }
    if (r == 0)
        r = storm_check(shmview_unlock(s), "unlock");
    shmview_detach(s);
    return r;
}

/* Claims the attachments, as after a lost connection, and hangs up. Maps the presence, so that the
 * daemon keeps them, and returns it in *ret_page unless that is NULL. */
static int claim(struct scene *scene, const json_int_t *ids, unsigned n, void **ret_page,
                 struct caller *c)
{
    json_t *held = json_array();
    for (unsigned i = 0; i < n; i++)
        json_array_append_new(held, json_integer(ids[i]));
    if (caller_open(c, scene->socket, &scene->called)) {
        json_decref(held);
        return -1;
    }
    json_t *reply = caller_ask(c, SHMVIEW "Claim",
                               json_pack("{s:i, s:o, s:s}", "client", CLIENT, "held", held,
                                         "presence", ret_page ? "wanted" : "kept"));
    size_t n_held = json_array_size(json_object_get(reply, "held"));
    if (ret_page && reply && c->n_fds)
        *ret_page = mmap(NULL, 4096, PROT_NONE, MAP_SHARED, c->fds[0], 0);
    bool is_right = reply && n_held == n && (!ret_page || *ret_page != MAP_FAILED);
    json_decref(reply);
    return is_right ? 0 : failed("claimed %zu of %u attachments", n_held, n);
}

/* A client with thousands of attachments loses its connection, claims all, and loses it again; then
 * it claims half of them, and then none: the daemon ends the others. */
static int claim_again(struct scene *scene)
{
    static json_int_t ids[HELD];
    static const unsigned held[] = {HELD, HELD / 2, 0};
    void *page = MAP_FAILED;
    struct caller c;
    int r = claim(scene, NULL, 0, &page, &c);
    if (r == 0)
        r = caller_ask_many(&c, SHMVIEW "Attach", HELD, to_attach, "small", ids);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(held); i++) {
        caller_close(&c);
        r = claim(scene, ids, held[i], NULL, &c);
    }
    caller_close(&c);
    if (page != MAP_FAILED)
        munmap(page, 4096);
    return r;
}

static int entrust(struct scene *scene)
{
    struct caller *c = &scene->main;
    return caller_ask_many(c, SHMVIEW "Create", CREATORS, to_create_mortal, "mortal", NULL) ||
                   caller_ask_many(c, SHMVIEW "Entrust", CREATORS, to_entrust, "mortal", NULL) ||
                   caller_ask_many(c, SHMVIEW "Remove", CREATORS, named, "mortal", NULL)
               ? -1
               : 0;
}

/* Begins and ends to freeze a sealed segment, and hands over memory that it does not send. */
static int seal(struct scene *scene)
{
    struct caller *c = &scene->main;
    json_int_t id = 0;
    char one[] = "sealed";
    int r = ask(scene, SHMVIEW "Create",
                json_pack("{s:s, s:i, s:s}", "name", "sealed0", "size", 4096, "backing", "sealed"));
    if (r == 0)
        r = caller_ask_many(c, SHMVIEW "Attach", 1, to_attach, one, &id);
    for (unsigned i = 0; r == 0 && i < FREEZES; i++)
        r = caller_ask_many(c, SHMVIEW "Freeze", 1, to_detach, &id, NULL) ||
                    caller_ask_many(c, SHMVIEW "Freeze", 1, to_end_freeze, &id, NULL)
                ? -1
                : 0;
    if (r == 0)
        r = caller_ask_many(c, SHMVIEW "HandOver", HANDOVERS, nothing, NULL, NULL);
    return r || caller_ask_many(c, SHMVIEW "Detach", 1, to_detach, &id, NULL) ||
                   caller_ask_many(c, SHMVIEW "Remove", 1, named, one, NULL)
               ? -1
               : 0;
}

static int attach_all(struct scene *scene)
{
    static json_int_t ids[SEGMENTS];
    struct caller *c = &scene->main;
    return caller_ask_many(c, SHMVIEW "Attach", SEGMENTS, to_attach, "small", ids) ||
                   caller_ask_many(c, SHMVIEW "Detach", SEGMENTS, to_detach, ids, NULL) ||
                   caller_ask_many(c, SHMVIEW "Attach", LAYOUTS, to_attach_large, NULL, ids) ||
                   caller_ask_many(c, SHMVIEW "Detach", LAYOUTS, to_detach, ids, NULL)
               ? -1
               : 0;
}

static int remove_all(struct scene *scene)
{
    return caller_ask_many(&scene->main, SHMVIEW "Remove", SEGMENTS, named, "small", NULL);
}

/* --- The storm ----------------------------------------------------------- */

/* What another process does, until it is killed. */
static void blow_gusts(void *arg)
{
    char prefix[32];
    struct scene scene = {.socket = arg};
    snprintf(prefix, sizeof prefix, "gust%d.", getpid());
    if (caller_open(&scene.main, scene.socket, &scene.called))
        return;
    struct caller *c = &scene.main;
    while (caller_ask_many(c, SHMVIEW "Create", GUST, to_create, prefix, NULL) == 0 &&
           caller_ask_many(c, SHMVIEW "SetAccess", GUST, to_set_access, prefix, NULL) == 0 &&
           look_at_all(&scene) == 0 &&
           caller_ask_many(c, SHMVIEW "Remove", GUST, named, prefix, NULL) == 0)
        continue;
}

/* Fails for a method that the daemon offers and no step has called. */
static int check_called(const struct scene *scene)
{
    for (size_t i = 0; i < scene->offered.n; i++)
        if (!methods_have(&scene->called, scene->offered.names[i]))
            return failed("the storm of all methods lacks %s", scene->offered.names[i]);
    return 0;
}

static int run_steps(struct scene *scene, pid_t gusts[GUSTS])
{
    static int (*const steps[])(struct scene *) = {
        introspect,  fill,    define, monitor,    watch,       switch_phases,
        claim_again, entrust, seal,   attach_all, look_at_all, remove_all,
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(steps); i++) {
        r = steps[i](scene);
        read_events(scene);
        for (unsigned k = 0; i == 2 && k < GUSTS; k++) /* after the layouts that they describe */
            gusts[k] = child_start(blow_gusts, (void *)(uintptr_t)scene->socket);
    }
    return r ? r : check_called(scene);
}

int blow_methods(struct shmview_connection *connection, const char *socket)
{
    pid_t gusts[GUSTS] = {-1, -1};
    struct scene *scene = calloc(1, sizeof *scene);
    if (!scene)
        return failed("out of memory");
    scene->socket = socket;
    scene->library = connection;
    int r = caller_open(&scene->main, socket, &scene->called) ? -1 : run_steps(scene, gusts);
    for (unsigned i = 0; i < GUSTS; i++)
        child_end(gusts[i]);
    for (unsigned i = 0; i < scene->n_monitors; i++)
        caller_close(&scene->monitors[i]);
    for (unsigned i = 0; i < scene->n_watchers; i++)
        caller_close(&scene->watchers[i]);
    caller_close(&scene->main);
    free(scene);
    return r;
}
