# SPDX-License-Identifier: Apache-2.0
"""Waits for each round, and checks that all elements are of the same one."""
import time

import shmview

while True:
    try:
        view = shmview.attach_array("rounds", readonly=True, timeout=60)
        break
    except shmview.NoDaemon:  # its container may start after this one
        time.sleep(0.1)
segment = view.segment
while True:
    seen = segment.change
    with segment.shared():
        first, last = view[0], view[-1]
    if first != last:
        raise SystemExit(f"half a round: {first} and {last}")
    if first % 10 == 0:
        print("consumer: round", first, flush=True)
    segment.wait(change=seen, timeout=10)
