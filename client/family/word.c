/* SPDX-License-Identifier: Apache-2.0 */
/* Words that threads of a family wait on, and words that name processes.
 *
 * A park is bounded by WAIT_NS, because the thread that should wake another one may be killed
 * first. So a wake-up saves time, and the protocols on these words need none to be correct. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <shmview/family.h>

#include "client/base/error.h"
#include "client/base/wait.h"
#include "client/family/owner.h"
#include "common/base/util.h"

static uint32_t load(const uint32_t *p)
{
    return atomic_load_explicit((const _Atomic uint32_t *)p, memory_order_acquire);
}

/* Spins while the word has the value. Returns whether it has it still. */
static bool spin_for_change(const uint32_t *word, uint32_t value)
{
    for (int n = spins_allowed(); n > 0 && load(word) == value; n--)
        relax();
    return load(word) == value;
}

static int fail_timed_out(void)
{
    return fail(SHMVIEW_ERR_TIMED_OUT, "nobody has changed the word");
}

int shmview_word_wait(const uint32_t *word, uint32_t value, int64_t deadline_ns)
{
    if (load(word) != value)
        return 0;
    int64_t now = now_ns(), left = deadline_ns == NEVER ? NEVER : deadline_ns - now;
    if (has_passed(deadline_ns, now))
        return fail_timed_out();
    NOT_CANCELLED;
    int r = caller_is_known() ? 0 : caller_look_up(); /* wait_ask() needs the process */
    if (r)
        return r;
    if (!spin_for_change(word, value))
        return 0;
    struct timespec t = {.tv_nsec = left < WAIT_NS ? left : WAIT_NS};
    if (syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0) == 0 || errno == EAGAIN)
        return 0;
    bool is_over = errno == ETIMEDOUT && left <= WAIT_NS; /* a signal may have ended the park */
    r = wait_ask();
    return r || !is_over || load(word) != value ? r : fail_timed_out();
}

int shmview_word_wake(const uint32_t *word, int n)
{
    long woken = syscall(SYS_futex, word, FUTEX_WAKE, n > 0 ? n : INT_MAX, NULL, NULL, 0);
    return woken > 0 ? (int)woken : 0;
}

int shmview_process_name(uint64_t *ret_name)
{
    int r = caller_is_known() ? 0 : caller_look_up();
    if (r)
        return r;
    *ret_name = caller.process;
    return 0;
}

int shmview_process_has_ended(uint64_t name)
{
    uint64_t own;
    NOT_CANCELLED;
    if (!(name & SHMVIEW_MUTEX_ID) || shmview_process_name(&own) || name == own)
        return 0;
    int saved = errno;
    bool ended = owner_is_dead(name, false);
    errno = saved;
    return ended;
}
