/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <stdio.h>
#include <string.h>

#define MAX_PARTIES 16
#define NS_PER_MS   1000000

static int64_t deadline_of(const json_t *request)
{
    int64_t ms = number_of(request, "timeout_ms", -1);
    return ms < 0 ? SHMVIEW_FOREVER : shmview_deadline(ms * NS_PER_MS);
}

/* --- The lock --------------------------------------------------------------- */

static int told_death(struct shmview_segment *segment, json_t **ret_value)
{
    struct shmview_death death;
    struct shmview_phase phase;
    int r = shmview_owner_died(segment, &death);
    if (r == 0)
        r = shmview_phase_get(segment, &phase);
    if (r < 0)
        return r;
    bool is_current = death.phase && death.phase == phase.generation;
    *ret_value = json_pack("{s:s, s:I, s:s, s:I, s:o, s:I}", "name", shmview_name(segment), "pid",
                           (json_int_t)death.pid, "command", death.command, "generation",
                           (json_int_t)death.phase, "phase",
                           is_current ? json_string(phase.name) : json_null(), "when_ns",
                           (json_int_t)death.when_ns);
    return 0;
}

/* Ends a request that takes the lock. If the lock reports a death, answers with it and releases
 * the lock unrepaired, so that the next owner gets the report too. */
static int end_of_taking(struct shmview_segment *segment, int r, json_t **ret_value)
{
    if (r != SHMVIEW_OWNER_DIED)
        return r;
    r = told_death(segment, ret_value);
    int unlocked = shmview_unlock_not_repaired(segment);
    return r < 0 ? r : unlocked;
}

static int run_lock(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_segment *segment = segment_of(driver, request);
    int64_t deadline = deadline_of(request);
    int r = truth_of(request, "shared", false) ? shmview_lock_shared_until(segment, deadline)
                                               : shmview_lock_until(segment, deadline);
    return end_of_taking(segment, r, ret_value);
}

static int run_trylock(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_segment *segment = segment_of(driver, request);
    int r = truth_of(request, "shared", false) ? shmview_trylock_shared(segment)
                                               : shmview_trylock(segment);
    if (r == 0 || r == -SHMVIEW_ERR_TIMED_OUT) {
        *ret_value = json_boolean(r == 0);
        return 0;
    }
    return end_of_taking(segment, r, ret_value);
}

/* Takes the lock in any case, and answers with the death if there is one. */
static int run_recover(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_segment *segment = segment_of(driver, request);
    int r = shmview_lock(segment);
    return r == SHMVIEW_OWNER_DIED ? told_death(segment, ret_value) : r;
}

static int run_unlock(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_segment *segment = segment_of(driver, request);
    (void)ret_value;
    return truth_of(request, "repaired", true) ? shmview_unlock(segment)
                                               : shmview_unlock_not_repaired(segment);
}

static int run_status(struct driver *driver, const json_t *request, json_t **ret_value)
{
    static const char *const roles[] = {
        [SHMVIEW_HOLDS] = "holds",
        [SHMVIEW_HOLDS_SHARED] = "holds shared",
        [SHMVIEW_WAITS] = "waits",
        [SHMVIEW_WAITS_TO_SHARE] = "waits to share",
    };
    struct shmview_lock_party parties[MAX_PARTIES];
    struct shmview_lock_status status;
    int r = shmview_lock_query(segment_of(driver, request), &status, parties, MAX_PARTIES);
    if (r < 0)
        return r;
    json_t *told = json_array();
    for (size_t i = 0; i < status.n_parties && i < MAX_PARTIES; i++)
        json_array_append_new(
            told, json_pack("[s, I]", roles[parties[i].role], (json_int_t)parties[i].pid));
    *ret_value = json_pack("{s:b, s:b, s:b, s:o}", "held", status.is_held, "owner_is_dead",
                           status.owner_is_dead, "dirty", status.is_dirty, "parties", told);
    return 0;
}

/* --- Phases and changes ----------------------------------------------------- */

static int run_switch(struct driver *driver, const json_t *request, json_t **ret_value)
{
    (void)ret_value;
    return shmview_switch(segment_of(driver, request), text_of(request, "layout"));
}

static int run_phase(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_phase phase;
    int r = shmview_phase_get(segment_of(driver, request), &phase);
    if (r == 0)
        *ret_value = json_pack("{s:I, s:o}", "generation", (json_int_t)phase.generation, "phase",
                               phase.generation ? json_string(phase.name) : json_null());
    return r;
}

static int run_wait_phase(struct driver *driver, const json_t *request, json_t **ret_value)
{
    struct shmview_phase phase;
    int r =
        shmview_wait_phase(segment_of(driver, request), text_of(request, "layout"),
                           (uint32_t)number_of(request, "after", 0), deadline_of(request), &phase);
    if (r == 0)
        *ret_value = json_integer(phase.generation);
    return r;
}

static int run_change(struct driver *driver, const json_t *request, json_t **ret_value)
{
    *ret_value = json_integer(shmview_change(segment_of(driver, request)));
    return 0;
}

static int run_notify(struct driver *driver, const json_t *request, json_t **ret_value)
{
    (void)ret_value;
    return shmview_notify(segment_of(driver, request));
}

static int run_wait_change(struct driver *driver, const json_t *request, json_t **ret_value)
{
    uint32_t change;
    int r =
        shmview_wait_change(segment_of(driver, request), (uint32_t)number_of(request, "seen", 0),
                            deadline_of(request), &change);
    if (r == 0)
        *ret_value = json_integer(change);
    return r;
}

const struct operation_row lock_operations[] = {
    {"lock", run_lock},     {"trylock", run_trylock},         {"recover", run_recover},
    {"unlock", run_unlock}, {"status", run_status},           {"switch", run_switch},
    {"phase", run_phase},   {"wait_phase", run_wait_phase},   {"change", run_change},
    {"notify", run_notify}, {"wait_change", run_wait_change}, {NULL, NULL},
};
