# SPDX-License-Identifier: Apache-2.0
"""What a siege does, one step at a time, and how often it takes each step."""

import step_clients
import step_daemon
import step_requests

# step: how often
TABLE = {
    step_requests.one_call: 60,
    step_requests.split_call: 5,
    step_requests.burst: 8,
    step_requests.attach_often: 0.5,
    step_requests.unread_calls: 3,
    step_requests.read_late: 3,
    step_requests.broken_bytes: 3,
    step_requests.descriptors: 2,
    step_requests.monitor: 1,
    step_requests.read_events: 2,
    step_clients.open_conn: 3,
    step_clients.hang_up: 4,
    step_requests.half_close: 2,
    step_clients.claim: 5,
    step_clients.start_client: 3,
    step_clients.kill_client: 3,
    step_clients.fork_client: 2,
    step_clients.exec_client: 1,
    step_clients.reap_programs: 1,
    step_clients.write_data: 10,
    step_clients.read_data: 6,
    step_clients.cut_data: 1,
    step_clients.spoil_control: 1,
    step_clients.lock_word: 5,
    step_clients.ring_bell: 1,
    step_daemon.reload: 2,
    step_daemon.end_daemon: 2,
    step_daemon.damage_registry: 0.4,
    step_daemon.stop_daemon: 1,
    step_daemon.check: 12,
}
