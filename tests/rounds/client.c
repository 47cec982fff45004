/* SPDX-License-Identifier: Apache-2.0 */
/* One client: it creates, attaches, locks and switches, and dies at any point. It checks that
 * everything that a daemon has acknowledged is still there. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <shmview/shmview.h>

#include "rounds/arena.h"

/* In the shared segment: equal unless an owner died between its two writes. */
struct pair {
    uint64_t first, second;
};

static unsigned number;
static uint64_t state;
static struct shmview_connection *conn;
static struct shmview_segment *shared, *own;

/* xorshift64, Marsaglia 2003 */
static uint32_t draw(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % n;
}

static void die(void)
{
    kill(getpid(), SIGKILL);
}

static int64_t began_ns;

static void began(void)
{
    began_ns = shmview_deadline(0);
}

/* Records how long the call took. Returns r. */
static int took(enum kind kind, int r)
{
    long ns = (long)(shmview_deadline(0) - began_ns), worst = atomic_load(&arena->worst_ns[kind]);
    atomic_fetch_add(&arena->calls[kind], 1);
    while (ns > worst && !atomic_compare_exchange_weak(&arena->worst_ns[kind], &worst, ns))
        continue;
    return r;
}

#define TIMED(kind, call) (began(), took((kind), (call)))

/* Returns whether to repeat a call: it failed because no daemon came back in time, and nothing
 * is wrong yet. Counts it as uncertain. */
static bool gave_up(int r)
{
    if (r != -SHMVIEW_ERR_DISCONNECTED || atomic_load(&arena->n_wrong))
        return false;
    atomic_fetch_add(&arena->uncertain, 1);
    return true;
}

/* Repeats a call until a daemon answers. Each attempt is timed. */
#define HEARD(kind, call)                                                                          \
    ({                                                                                             \
        int heard_result;                                                                          \
        do                                                                                         \
            heard_result = TIMED((kind), (call));                                                  \
        while (gave_up(heard_result));                                                             \
        heard_result;                                                                              \
    })

/* Records a failure unless r is 0 or other. Returns r. */
static int expect(int r, int other, const char *what, const char *name)
{
    if (r && r != other)
        wrong("%s '%s': %d, %s", what, name, r, r < 0 ? shmview_error_text() : "");
    return r;
}

/* --- What it does -------------------------------------------------------- */

/* Creates a segment. A request that was not answered may have created it, so EXISTS after such a
 * request is a success for a manual segment. */
static int create(const char *name, uint64_t size, uint32_t lifetime,
                  struct shmview_segment **segment)
{
    struct shmview_create_options o = {.struct_bytes = sizeof o, .lifetime = lifetime};
    bool uncertain = false;
    for (;;) {
        int r = TIMED(CALL_CREATE, shmview_create(conn, name, size, &o, segment));
        if (r == -SHMVIEW_ERR_EXISTS && uncertain && lifetime == SHMVIEW_MANUAL)
            return HEARD(CALL_ATTACH, shmview_attach(conn, name, SHMVIEW_WRITE, 0, segment));
        if (r != -SHMVIEW_ERR_DISCONNECTED)
            return r;
        atomic_fetch_add(&arena->uncertain, 1);
        uncertain = true;
        /* reconnects; the Claim does not name the attachment of a lost reply, which ends it */
        HEARD(CALL_PING, shmview_ping(conn));
    }
}

static void fill_own(void)
{
    unsigned n = atomic_load(&arena->own[number].written) + 1;
    char *bytes = shmview_data(own);
    memset(bytes, (int)(n & 255), OWN_BYTES);
    atomic_store(&arena->own[number].written, n);
}

static void check_own(void)
{
    const unsigned char *bytes = shmview_data(own);
    unsigned n = atomic_load(&arena->own[number].written);
    for (int i = 0; i < OWN_BYTES; i++)
        if (bytes[i] != (n & 255) && bytes[i] != ((n + 1) & 255)) {
            wrong("byte %d of client %u is %u, not %u", i, number, bytes[i], n & 255);
            return;
        }
}

static void begin(void)
{
    char name[32];
    snprintf(name, sizeof name, "own%u", number);
    if (expect(TIMED(CALL_CONNECT, shmview_connect(arena->socket, 0, &conn)),
               -SHMVIEW_ERR_NO_DAEMON, "connecting", ""))
        _exit(0); /* no daemon runs now; the next incarnation tries again */
    if (expect(HEARD(CALL_ATTACH, shmview_attach(conn, "shared", SHMVIEW_WRITE, 0, &shared)), 0,
               "attaching", "shared"))
        _exit(1);
    int r = atomic_load(&arena->own[number].exists)
                ? HEARD(CALL_ATTACH, shmview_attach(conn, name, SHMVIEW_WRITE, 0, &own))
                : create(name, OWN_BYTES, SHMVIEW_MANUAL, &own);
    if (r == -SHMVIEW_ERR_EXISTS) /* the previous incarnation died before the reply to its create */
        r = HEARD(CALL_ATTACH, shmview_attach(conn, name, SHMVIEW_WRITE, 0, &own));
    if (expect(r, 0, "having", name))
        _exit(1);
    if (!atomic_exchange(&arena->own[number].exists, true))
        fill_own();
    check_own();
}

static void lock_and_count(void)
{
    struct pair *pair = shmview_data(shared);
    int r = TIMED(CALL_LOCK, shmview_lock(shared));
    if (expect(r, SHMVIEW_OWNER_DIED, "locking", "shared") == SHMVIEW_OWNER_DIED) {
        atomic_fetch_add(&arena->repairs, 1);
        pair->second = pair->first;
    }
    if (r < 0)
        return;
    if (pair->first != pair->second)
        wrong("%ju and %ju: two held the lock, or a death was not reported", (uintmax_t)pair->first,
              (uintmax_t)pair->second);
    pair->first++;
    atomic_signal_fence(memory_order_seq_cst);
    if (draw(400) == 0)
        die();
    if (draw(8) == 0)
        expect(HEARD(CALL_SWITCH, shmview_switch(shared, draw(2) ? "float" : "int")), 0,
               "switching", "shared");
    pair->second = pair->first;
    expect(shmview_unlock(shared), 0, "unlocking", "shared");
}

/* Creates a segment and lets it end; its name must then be free again. */
static void create_and_leave(void)
{
    static const uint32_t lifetimes[] = {SHMVIEW_ATTACHED, SHMVIEW_CREATOR};
    char name[32];
    struct shmview_segment *s = NULL, *again = NULL;
    uint32_t lifetime = lifetimes[draw(2)];
    const int64_t ten = 10;
    struct shmview_view_spec spec = {.name = "A", .format = "f", .ndim = 1, .shape = &ten};
    snprintf(name, sizeof name, "passing%u", number);
    int r = create(name, 1 + draw(draw(8) ? 10000 : 4000000), lifetime, &s);
    if (r == -SHMVIEW_ERR_EXISTS && lifetime == SHMVIEW_CREATOR) {
        /* a request of this client created it, but the reply was lost */
        r = HEARD(CALL_REMOVE, shmview_remove(conn, name));
        expect(r, -SHMVIEW_ERR_NOT_FOUND, "removing", name);
        return;
    }
    if (expect(r, 0, "creating", name))
        return;
    memset(shmview_data(s), 1, (size_t)shmview_size(s));
    if (draw(2) && shmview_size(s) >= 40) {
        r = HEARD(CALL_DEFINE, shmview_define(s, "l", &spec, 1));
        expect(r, -SHMVIEW_ERR_LAYOUT_EXISTS, "defining", name);
    }
    if (draw(2)) {
        r = HEARD(CALL_ATTACH, shmview_attach(conn, name, SHMVIEW_READ, 0, &again));
        if (expect(r, 0, "attaching again", name) == 0)
            TIMED(CALL_DETACH, shmview_detach(again));
    }
    if (draw(40) == 0)
        die();
    if (lifetime == SHMVIEW_CREATOR || draw(3) == 0) {
        r = HEARD(CALL_REMOVE, shmview_remove(conn, name));
        expect(r, -SHMVIEW_ERR_NOT_FOUND, "removing", name);
    }
    TIMED(CALL_DETACH, shmview_detach(s));
    expect(HEARD(CALL_PING, shmview_ping(conn)), 0, "asking", name);
    if (HEARD(CALL_ATTACH, shmview_attach(conn, name, SHMVIEW_PEEK, 0, &s)) !=
        -SHMVIEW_ERR_NOT_FOUND)
        wrong("'%s' is still there", name);
}

static void peek(void)
{
    char name[32];
    struct shmview_segment *s;
    unsigned who = draw(8);
    snprintf(name, sizeof name, "own%u", who);
    /* read before the call, because the segment may be created during it */
    bool exists = atomic_load(&arena->own[who].exists);
    int r = HEARD(CALL_ATTACH, shmview_attach(conn, name, SHMVIEW_PEEK, 0, &s));
    if (r == -SHMVIEW_ERR_NOT_FOUND && !exists)
        return;
    if (expect(r, 0, "peeking at", name) == 0)
        TIMED(CALL_DETACH, shmview_detach(s));
}

static void end(void)
{
    TIMED(CALL_DETACH, shmview_detach(own));
    TIMED(CALL_DETACH, shmview_detach(shared));
    expect(HEARD(CALL_PING, shmview_ping(conn)), 0, "asking", "at the end");
    shmview_disconnect(conn);
}

void client_live(unsigned me, unsigned incarnation)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    number = me;
    state = arena->seed * 1000003 + me * 4099 + incarnation + 1;
    for (int i = 0; i < 8; i++)
        draw(2);
    begin();
    while (!atomic_load(&arena->over) && !atomic_load(&arena->n_wrong)) {
        uint32_t what = draw(100);
        if (what < 60)
            lock_and_count();
        else if (what < 80)
            create_and_leave();
        else if (what < 90)
            peek();
        else if (what < 99)
            check_own(), fill_own();
        else if (draw(4) == 0)
            die();
    }
    end();
    _exit(0);
}
