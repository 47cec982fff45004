/* SPDX-License-Identifier: Apache-2.0 */
/* locks - the ways to take the lock of a segment, and what follows the death of its holder.
 *
 * A segment holds two numbers whose sum must be 100. Writers move an amount from one to the other
 * under the exclusive lock. Readers check the sum under the shared lock, or without the lock. Then
 * a child process dies between the two stores, and the parent learns of it and repairs the sum.
 *
 * Build with: cc locks.c $(pkg-config --cflags --libs shmview) */
#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmview/shmview.h>

#define SECOND INT64_C(1000000000) /* in nanoseconds */
#define TOTAL  100

/* The segment, and the two numbers in it. */
static struct shmview_segment *segment;
static int64_t *numbers;

static int must(int result, const char *what)
{
    if (result < 0)
        errx(1, "%s: %s", what, shmview_error_text());
    return result;
}

static void expect(const char *what, int64_t found, int64_t wanted)
{
    if (found != wanted)
        errx(1, "%s is %" PRId64 ", not %" PRId64, what, found, wanted);
}

/* --- Writers ------------------------------------------------------------- */

/* The end of the block releases the lock, also by return. */
static int64_t move_amount(int64_t amount)
{
    SHMVIEW_LOCKED(segment, result);
    must(result, "lock");
    if (numbers[0] < amount)
        return 0;
    numbers[0] -= amount;
    numbers[1] += amount;
    return amount;
}

/* --- Readers ------------------------------------------------------------- */

/* Any number of readers share the lock. A deadline limits the wait for a writer. */
static int64_t sum_shared(void)
{
    must(shmview_lock_shared_until(segment, shmview_deadline(SECOND)), "shared lock");
    int64_t sum = numbers[0] + numbers[1];
    must(shmview_unlock(segment), "unlock");
    return sum;
}

/* Reads without the lock: copies first, and uses the copy only if no writer was inside. If that
 * fails too often, or a writer has died inside, the lock decides. */
static int64_t sum_without_lock(void)
{
    for (int attempt = 0; attempt < 10; attempt++) {
        uint64_t version;
        int64_t copy[2];
        int result = shmview_read_begin(segment, &version);
        if (result == -SHMVIEW_ERR_BUSY)
            break;
        must(result, "read");
        memcpy(copy, numbers, sizeof copy);
        if (shmview_read_validate(segment, version))
            return copy[0] + copy[1];
    }
    return sum_shared();
}

/* --- Without waiting ----------------------------------------------------- */

/* Two handles of one process are two holders: while one has the lock, the other gets it neither
 * exclusively nor shared. */
static void show_refusals(struct shmview_connection *connection)
{
    struct shmview_segment *other;
    struct shmview_lock_status status;
    struct shmview_lock_party party;
    must(shmview_attach(connection, shmview_name(segment), SHMVIEW_READ, 0, &other), "attach");
    must(shmview_lock_until(segment, shmview_deadline(SECOND)), "lock");
    expect("a try", shmview_trylock(other), -SHMVIEW_ERR_TIMED_OUT);
    expect("a shared try", shmview_trylock_shared(other), -SHMVIEW_ERR_TIMED_OUT);
    must(shmview_lock_query(other, &status, &party, 1), "query");
    expect("the pid of the holder", party.pid, getpid());
    printf("held exclusively by %s\n", party.command);
    must(shmview_unlock(segment), "unlock");

    must(shmview_lock_shared(segment), "shared lock");
    must(shmview_trylock_shared(other), "a second reader");
    must(shmview_unlock(other), "unlock");
    must(shmview_unlock(segment), "unlock");
    must(shmview_detach(other), "detach");
}

/* --- A death ------------------------------------------------------------- */

/* Dies between the two stores, as a program with a fault might. */
static void die_inside(void)
{
    must(shmview_lock(segment), "lock in the child");
    numbers[0] -= 10;
    raise(SIGKILL);
}

/* Takes the lock after the death. The first owner cannot repair the numbers, and passes that on;
 * the second one repairs them. */
static void repair(pid_t child)
{
    struct shmview_death death;
    expect("the lock after a death", shmview_lock(segment), SHMVIEW_OWNER_DIED);
    must(shmview_unlock_not_repaired(segment), "unlock");

    expect("the lock after that", shmview_lock(segment), SHMVIEW_OWNER_DIED);
    must(shmview_owner_died(segment, &death), "the death");
    expect("the pid of the dead owner", death.pid, child);
    printf("%s died inside; the sum was %" PRId64 "\n", death.command, numbers[0] + numbers[1]);
    numbers[1] = TOTAL - numbers[0];
    must(shmview_unlock(segment), "unlock");
    expect("the lock after the repair", shmview_lock(segment), 0);
    must(shmview_unlock(segment), "unlock");
}

static void show_death(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        err(1, "fork");
    if (child == 0)
        die_inside();
    if (waitpid(child, NULL, 0) != child)
        err(1, "waitpid");
    repair(child);
}

int main(void)
{
    struct shmview_connection *connection;
    char name[32];
    snprintf(name, sizeof name, "locks-%d", getpid());
    must(shmview_connect(NULL, 0, &connection), "connect");
    must(shmview_create(connection, name, 2 * sizeof *numbers, NULL, &segment), "create");
    numbers = shmview_data(segment);
    numbers[0] = TOTAL;

    expect("the amount", move_amount(30), 30);
    expect("too large an amount", move_amount(1000), 0);
    expect("the sum under the lock", sum_shared(), TOTAL);
    expect("the sum without the lock", sum_without_lock(), TOTAL);
    show_refusals(connection);
    show_death();
    expect("the sum at the end", sum_without_lock(), TOTAL);
    printf("the sum is %d again\n", TOTAL);
    must(shmview_detach(segment), "detach");
    must(shmview_disconnect(connection), "disconnect");
    return 0;
}
