/* SPDX-License-Identifier: Apache-2.0 */
/* How often one thread may hold a lock. */
#include "client/lock/word.h"

#include "unit/faults.h"
#include "unit/objects.h"

/* The test presets how often that was. */
START_TEST(two_to_the_31_times)
{
    static struct stub stub;
    struct shmview_connection *conn;
    struct shmview_segment *seg;
    objects_make();
    const struct stub_step steps[] = {STUB_GREETING, attach_step(REPLY(SEGMENT, ATTACHMENT)),
                                      detach_step};
    stub_start(&stub, steps, 3);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    ck_assert_int_eq(shmview_attach(conn, "seg", SHMVIEW_WRITE, 0, &seg), 0);
    for (int shared = 0; shared < 2; shared++) {
        int (*take)(struct shmview_segment *) = shared ? shmview_lock_shared : shmview_lock;
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(take(seg), 0);
        uint32_t *again = shared ? &this_thread.shared[0].depth : &lock_of(seg)->nested;
        uint32_t now = *again;
        *again = INT32_MAX - 1 + (uint32_t)shared;
        ck_assert_int_eq(take(seg), 0);
        ck_assert_int_eq(take(seg), -SHMVIEW_ERR_TOO_DEEP);
        unit_assert_holds(shmview_error_text(), "the lock of 'seg' is held");
        *again = now;
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(shmview_unlock(seg), 0);
    }
    ck_assert_int_eq(shmview_detach(seg), 0);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
    objects_close();
}
END_TEST

UNIT_MAIN("client_depth", UNIT_TEST(two_to_the_31_times))
