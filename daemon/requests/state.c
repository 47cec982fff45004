/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/state.h"

#include "common/base/util.h"

void state_init(struct state *state, uv_loop_t *loop, struct turns *turns, struct config *config)
{
    home_init(&state->registry.home);
    ringing_init(&state->registry.home.ringing, turns);
    state->tally = (struct tally){
        .started_ns = now_ns(),
        .events = &state->registry.home.events,
    };
    state->config = config;
    quota_init(&state->quota, &config->limits);
    state->loop = loop;
    state->turns = turns;
    departures_init(state);
}
