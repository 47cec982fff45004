/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/reload.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/base/notify.h"
#include "daemon/memory/pool.h"
#include "daemon/requests/declared.h"

/* Keeps an error that was found on the thread, because only the loop may log. */
static void keep_line(void *arg, const char *line)
{
    struct reload *reload = arg;
    char *copy = reload->n_said < ARRAY_LEN(reload->said) ? strdup(line) : NULL;
    if (copy)
        reload->said[reload->n_said++] = copy;
}

/* Runs on a thread of the pool. */
static void read_files(uv_work_t *work)
{
    struct reload *reload = work->data;
    bool may_pass;
    reload->config = config_read(reload->file, reload->required, keep_line, reload, &may_pass);
}

/* Reports to systemd that the reload is over, unless another one follows. */
static void finish(struct reload *reload)
{
    if (!reload->again)
        notify_ready();
    reload_open(reload);
}

/* All declared segments exist, or their errors are logged. */
static void on_declared(struct state *state)
{
    struct reload *reload = state->declared.arg;
    if (!reload || atomic_load(&state->declared.cancel)) /* at the start or the end of the daemon */
        return;
    log_event(LOG_INFO, &(struct log_event){.kind = LOG_RELOAD},
              "the configuration was read again and is in force");
    finish(reload);
}

/* Runs on the loop after read_files(). Puts the configuration into force if it has no error. If the
 * daemon is ending, drops it. */
static void was_read(uv_work_t *work, int status)
{
    struct reload *reload = work->data;
    struct state *state = reload->state;
    (void)status;
    state->n_jobs--;
    for (size_t i = 0; i < reload->n_said; i++) {
        log_error("%s", reload->said[i]);
        free(reload->said[i]);
    }
    reload->n_said = 0;
    if (atomic_load(&state->declared.cancel)) {
        reload->config = config_free(reload->config);
    } else if (reload->config) {
        config_free(state->config);
        state->config = STEAL(reload->config);
        state->quota.limits = &state->config->limits;
        log_set_level(state->config->log_level);
        pool_limit(state->config->pool_bytes);
        state->declared.arg = reload;
        declared_start(state);
    } else {
        log_event(LOG_ERROR, &(struct log_event){.kind = LOG_RELOAD, .reason = "errors"},
                  "the configuration was not replaced: the one in force stays");
        finish(reload);
    }
    state->job_done(state);
}

void reload_init(struct reload *reload, struct state *state, const char *file, bool required)
{
    *reload = (struct reload){.state = state, .file = file, .required = required, .active = true};
    reload->work.data = reload;
    state->declared.done = on_declared;
}

void reload_open(struct reload *reload)
{
    reload->active = false;
    if (reload->again) {
        reload->again = false;
        reload_start(reload);
    }
}

void reload_start(struct reload *reload)
{
    if (reload->active) {
        reload->again = true;
        return;
    }
    reload->active = true;
    notify_reloading();
    reload->state->n_jobs++;
    /* fails only without a callback */
    uv_queue_work(reload->state->loop, &reload->work, read_files, was_read);
}
