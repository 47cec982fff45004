/* SPDX-License-Identifier: Apache-2.0 */
/* A handle whose attachment the daemon has ended never takes the lock, does not touch its
 * successor's slot, and reports why. The test plays the daemon, which marks slots as dead and
 * assigns them again, or as ended, and the other clients. */
#include "client/link/connection.h"

#include <shmview/wait.h>

#include "unit/faults.h"
#include "unit/objects.h"

#define DEAD   (5 | SHMVIEW_GENERATION_DEAD)
#define OTHERS (7u << SHMVIEW_SLOT_BITS | 1) /* the id of another client, which is alive */

static struct stub stub;
static struct shmview_connection *conn;
static struct shmview_segment *seg;
static struct shmview_control *control;
static struct shmview_liveness *live;
static struct shmview_slot *mine;
static struct stub_step steps[3];

static void begin(void)
{
    objects_make();
    control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, objects.control, 0);
    live = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, objects.live, 0);
    mine = (struct shmview_slot *)(void *)((char *)control + 1536);
    live->generation[1] = 7;
    steps[0] = (struct stub_step)STUB_GREETING;
    steps[1] = attach_step(REPLY(SEGMENT, ATTACHMENT));
    steps[2] = detach_step;
    stub_start(&stub, steps, 3);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    ck_assert_int_eq(shmview_attach(conn, "seg", SHMVIEW_WRITE, 0, &seg), 0);
}

static void end(void)
{
    ck_assert_int_eq(shmview_detach(seg), 0);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
    munmap(control, 4096);
    munmap(live, 4096);
    objects_close();
}

static void assert_fails(int r, int error, const char *part)
{
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    unit_assert_holds(shmview_error_text(), part);
}

#define LOST(call) assert_fails((call), SHMVIEW_ERR_LOST, "the daemon has ended this attachment")

/* Makes every call that takes the lock or depends on it; each must fail. */
static void assert_lost(void)
{
    struct shmview_phase phase;
    struct shmview_death death;
    uint64_t version;
    uint32_t change;
    LOST(shmview_lock(seg));
    LOST(shmview_trylock(seg));
    LOST(shmview_lock_until(seg, shmview_deadline(1000)));
    LOST(shmview_lock_shared(seg));
    LOST(shmview_trylock_shared(seg));
    LOST(shmview_owner_died(seg, &death));
    LOST(shmview_switch(seg, "x"));
    LOST(shmview_phase_get(seg, &phase));
    LOST(shmview_read_begin(seg, &version));
    LOST(shmview_notify(seg));
    LOST(shmview_wait_change(seg, 0, 0, &change));
    assert_fails(shmview_unlock(seg), SHMVIEW_ERR_NOT_OWNER, "");
}

START_TEST(lost_while_free)
{
    for (int shared = 0; shared < 2; shared++) {
        begin();
        ck_assert_int_eq(shared ? shmview_lock_shared(seg) : shmview_lock(seg), 0);
        ck_assert_int_eq(shmview_unlock(seg), 0);
        uint64_t inside = control->inside;
        live->generation[0] = DEAD;
        if (shared)
            LOST(shmview_lock_shared(seg));
        else
            LOST(shmview_lock(seg));
        assert_lost();
        ck_assert_uint_eq(control->lock, 0);
        ck_assert(control->inside == inside);
        end();
    }
}
END_TEST

/* The call fails at once instead of waiting for the lock. */
START_TEST(lost_while_another_is_inside)
{
    begin();
    ck_assert_int_eq(shmview_lock(seg), 0);
    ck_assert_int_eq(shmview_unlock(seg), 0);
    live->generation[0] = DEAD;
    control->lock = OTHERS;
    LOST(shmview_lock(seg));
    assert_lost();
    ck_assert_uint_eq(control->lock, OTHERS);
    end();
}
END_TEST

/* A handle that has never locked has not signed its slot, which belongs to another client now. */
START_TEST(lost_before_it_is_used)
{
    begin();
    live->generation[0] = 6;
    mine->id = 6u << SHMVIEW_SLOT_BITS;
    mine->readers = 6u << SHMVIEW_READER_COUNT_BITS | 1;
    assert_lost();
    ck_assert_uint_eq(mine->id, 6u << SHMVIEW_SLOT_BITS);
    ck_assert_uint_eq(mine->readers, 6u << SHMVIEW_READER_COUNT_BITS | 1);
    end();
}
END_TEST

START_TEST(lost_while_held)
{
    for (int not_repaired = 0; not_repaired < 2; not_repaired++) {
        struct shmview_death death;
        begin();
        ck_assert_int_eq(shmview_lock(seg), 0);
        ck_assert_int_eq(shmview_lock(seg), 0); /* nested */
        live->generation[0] = DEAD;
        control->lock = OTHERS;
        control->inside = OTHERS;
        LOST(shmview_lock(seg));
        LOST(shmview_owner_died(seg, &death));
        LOST(shmview_switch(seg, "x"));
        LOST(shmview_unlock(seg)); /* the nested one */
        LOST(not_repaired ? shmview_unlock_not_repaired(seg) : shmview_unlock(seg));
        assert_lost();
        ck_assert_uint_eq(control->lock, OTHERS);
        ck_assert(control->inside == OTHERS);
        end();
    }
}
END_TEST

/* While its slot is its own, a client whose lock was robbed may lock again. */
START_TEST(robbed_while_held)
{
    begin();
    ck_assert_int_eq(shmview_lock(seg), 0);
    control->lock = OTHERS;
    assert_fails(shmview_unlock(seg), SHMVIEW_ERR_LOST, "taken away");
    ck_assert_uint_eq(control->lock, OTHERS);
    control->lock = 0;
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED); /* the owner did not leave in order */
    ck_assert_int_eq(shmview_unlock(seg), 0);
    end();
}
END_TEST

/* What an owner knew of the bytes ends with its turn, even if its lock was robbed. */
START_TEST(robbed_of_bytes_that_are_not_in_order)
{
    struct shmview_death death;
    begin();
    control->inside = OTHERS;
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    control->lock = OTHERS;
    assert_fails(shmview_unlock_not_repaired(seg), SHMVIEW_ERR_LOST, "taken away");
    control->lock = 0;
    control->inside = 0; /* the next owner has repaired them */
    ck_assert_int_eq(shmview_lock(seg), 0);
    ck_assert_int_eq(shmview_owner_died(seg, &death), 0);
    ck_assert_uint_eq(death.slot, 0);
    ck_assert_int_eq(shmview_unlock(seg), 0);
    ck_assert_uint_eq(control->inside & SHMVIEW_LOCK_OWNER, 0);
    ck_assert_int_eq(shmview_lock(seg), 0);
    ck_assert_int_eq(shmview_unlock(seg), 0);
    end();
}
END_TEST

START_TEST(lost_while_shared)
{
    begin();
    const uint32_t others = 6u << SHMVIEW_READER_COUNT_BITS | 1;
    ck_assert_int_eq(shmview_lock_shared(seg), 0);
    ck_assert_int_eq(shmview_lock_shared(seg), 0); /* nested */
    live->generation[0] = 6;
    mine->readers = others;
    LOST(shmview_lock_shared(seg));
    ck_assert_int_eq(shmview_unlock(seg), 0); /* the nested lock is only in this process */
    LOST(shmview_unlock(seg));
    assert_lost();
    ck_assert_uint_eq(mine->readers, others);
    end(); /* a reader in another client does not delay a detach */
}
END_TEST

/* A restarted daemon does not know the attachment. If its client died inside, the lock would never
 * become free. */
START_TEST(not_in_the_reply_to_a_claim)
{
    objects_make();
    const struct stub_step all[] = {STUB_GREETING,
                                    attach_step(REPLY(SEGMENT, ATTACHMENT)),
                                    {.method = "io.shmview.Ping"},
                                    STUB_GREETING,
                                    STUB_PONG};
    control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, objects.control, 0);
    live = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, objects.live, 0);
    stub_start(&stub, all, 5);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    ck_assert_int_eq(shmview_attach(conn, "seg", SHMVIEW_WRITE, 0, &seg), 0);
    ck_assert_int_eq(shmview_lock(seg), 0);
    ck_assert_int_eq(shmview_ping(conn), 0); /* the stub hangs up, and the library asks again */
    LOST(shmview_lock(seg));
    ck_assert_int_eq(shmview_unlock(seg), 0); /* no other client had it */
    ck_assert_uint_eq(control->lock, 0);
    assert_lost();
    end();
}
END_TEST

static void claim_meanwhile(void)
{
    connection_hang_up(conn);
    ck_assert_int_eq(shmview_ping(conn), 0);
}

/* Another thread reconnects before the reply to an attach is mapped. */
START_TEST(lost_before_it_is_mapped)
{
    objects_make();
    const struct stub_step all[] = {STUB_GREETING, attach_step(REPLY(SEGMENT, ATTACHMENT)),
                                    STUB_GREETING, STUB_PONG};
    control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, objects.control, 0);
    live = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, objects.live, 0);
    stub_start(&stub, all, 4);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    faults_hook("mmap", claim_meanwhile);
    ck_assert_int_eq(shmview_attach(conn, "seg", SHMVIEW_WRITE, SHMVIEW_POPULATE, &seg), 0);
    unit_assert_holds(stub.requests[2], "\"held\":[9]");
    assert_lost();
    ck_assert_uint_eq(control->lock, 0);
    end(); /* the library sends no Detach for an unknown attachment */
}
END_TEST

/* --- Ended slots --------------------------------------------------------- */

#define ENDED(generation) ((generation) | SHMVIEW_GENERATION_ENDED)

/* Nobody else can have had the lock, so its release succeeds, in either mode and when nested. */
START_TEST(ended_while_held)
{
    for (int shared = 0; shared < 2; shared++) {
        begin();
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(shared ? shmview_lock_shared(seg) : shmview_lock(seg), 0);
        live->generation[0] = ENDED(live->generation[0]);
        if (shared)
            LOST(shmview_lock_shared(seg));
        else
            LOST(shmview_lock(seg));
        ck_assert_int_eq(shmview_unlock(seg), 0);
        assert_fails(shmview_detach(seg), SHMVIEW_ERR_BUSY, "holds the lock");
        ck_assert_int_eq(shmview_unlock(seg), 0);
        ck_assert_uint_eq(control->lock, 0);
        ck_assert_uint_eq(control->inside & SHMVIEW_LOCK_OWNER, 0);
        ck_assert_uint_eq(mine->readers & SHMVIEW_READER_COUNT_MASK, 0);
        assert_lost();
        end();
    }
}
END_TEST

/* A client whose own slot is not marked yet finds another one marked, which may be inside. */
START_TEST(ended_of_another)
{
    begin();
    ck_assert_int_eq(shmview_lock(seg), 0);
    ck_assert_int_eq(shmview_unlock(seg), 0);
    live->generation[1] = ENDED(7);
    live->high = 2;
    control->lock = OTHERS;
    assert_fails(shmview_trylock(seg), SHMVIEW_ERR_TIMED_OUT, "");
    assert_fails(shmview_trylock_shared(seg), SHMVIEW_ERR_TIMED_OUT, "");
    ck_assert_uint_eq(control->lock, OTHERS);
    control->lock = 0;
    control->reader_groups = 2;
    mine[1].readers = 7u << SHMVIEW_READER_COUNT_BITS | 1;
    assert_fails(shmview_trylock(seg), SHMVIEW_ERR_TIMED_OUT, "");
    ck_assert_uint_eq(mine[1].readers, 7u << SHMVIEW_READER_COUNT_BITS | 1);
    mine[1].readers = 7u << SHMVIEW_READER_COUNT_BITS;
    ck_assert_int_eq(shmview_trylock(seg), 0);
    ck_assert_int_eq(shmview_unlock(seg), 0);
    end();
}
END_TEST

/* Runs in a wait, which must end by itself after that. */
static int end_slot(void *n_calls)
{
    live->generation[0] = ENDED(live->generation[0]);
    return ++*(int *)n_calls > 2;
}

static int wait_of_any_kind(int kind)
{
    const struct shmview_wait entry = {.kind = SHMVIEW_WAIT_CHANGE, .segment = seg};
    struct shmview_phase phase;
    uint32_t change;
    size_t index;
    switch (kind) {
    case 0:
        return shmview_wait_change(seg, 0, SHMVIEW_FOREVER, &change);
    case 1:
        return shmview_wait_phase(seg, NULL, 0, SHMVIEW_FOREVER, &phase);
    case 2:
        return shmview_wait_any(&entry, 1, SHMVIEW_FOREVER, &index);
    case 3:
        return shmview_lock_shared(seg);
    default:
        return shmview_lock(seg);
    }
}

/* Another client has the lock, or shares it, and does not end. */
START_TEST(ended_while_waiting)
{
    for (int kind = 0; kind < 6; kind++) {
        int n_calls = 0;
        begin();
        live->high = 2;
        if (kind == 5) {
            control->reader_groups = 2;
            mine[1].readers = 7u << SHMVIEW_READER_COUNT_BITS | 1;
        } else {
            control->lock = OTHERS;
        }
        shmview_on_wait(end_slot, &n_calls);
        LOST(wait_of_any_kind(kind));
        shmview_on_wait(NULL, NULL);
        ck_assert_int_eq(n_calls, 1);
        ck_assert_uint_eq(control->lock & SHMVIEW_LOCK_OWNER, kind == 5 ? 0 : OTHERS);
        control->reader_groups = control->lock = mine[1].readers = 0;
        assert_lost();
        end();
    }
}
END_TEST

START_TEST(ended_before_it_is_watched)
{
    int fd = 77;
    begin();
    ck_assert_int_eq(shmview_notify(seg), 0);
    live->generation[0] = ENDED(live->generation[0]);
    LOST(shmview_change_fd(seg, &fd));
    ck_assert_int_eq(fd, 77);
    end();
}
END_TEST

/* --- Threads ------------------------------------------------------------- */

static pthread_barrier_t inside, lost;

static void *hold_and_end(void *shared)
{
    int r = shared ? shmview_lock_shared(seg) : shmview_lock(seg);
    pthread_barrier_wait(&inside);
    pthread_barrier_wait(&lost);
    return r ? seg : NULL;
}

/* A thread that ends gives back its lock. The handle may be lost by then, whether or not a call has
 * noticed it. */
static void end_a_thread(bool shared, bool known)
{
    pthread_t thread;
    void *failed;
    begin();
    pthread_barrier_init(&inside, NULL, 2);
    pthread_barrier_init(&lost, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, hold_and_end, shared ? seg : NULL), 0);
    pthread_barrier_wait(&inside);
    live->generation[0] = 6;
    mine->readers = 6u << SHMVIEW_READER_COUNT_BITS | 1;
    control->lock = OTHERS;
    control->inside = OTHERS;
    if (known)
        LOST(shmview_lock(seg));
    ck_assert_int_eq(shmview_detach_later(seg), 0);
    pthread_barrier_wait(&lost);
    pthread_join(thread, &failed);
    ck_assert_ptr_null(failed);
    ck_assert_uint_eq(control->lock, OTHERS);
    ck_assert(control->inside == OTHERS);
    ck_assert_uint_eq(mine->readers, 6u << SHMVIEW_READER_COUNT_BITS | 1);
    seg = NULL;
    end();
}

START_TEST(lost_by_a_thread_that_ends)
{
    for (int shared = 0; shared < 2; shared++)
        for (int known = 0; known < 2; known++)
            end_a_thread(shared, known);
}
END_TEST

UNIT_MAIN("client_lost", UNIT_TEST(lost_while_free), UNIT_TEST(lost_while_another_is_inside),
          UNIT_TEST(lost_before_it_is_used), UNIT_TEST(lost_while_held),
          UNIT_TEST(not_in_the_reply_to_a_claim), UNIT_TEST(lost_before_it_is_mapped),
          UNIT_TEST(robbed_while_held), UNIT_TEST(robbed_of_bytes_that_are_not_in_order),
          UNIT_TEST(lost_while_shared), UNIT_TEST(ended_while_held), UNIT_TEST(ended_of_another),
          UNIT_TEST(ended_while_waiting), UNIT_TEST(ended_before_it_is_watched),
          UNIT_TEST(lost_by_a_thread_that_ends))
