# SPDX-License-Identifier: Apache-2.0
"""Writes the number of the round into all elements of an array, ten times a second."""
import time

import shmview


def connect():
    """Returns a connection, as soon as the daemon's container has started."""
    while True:
        try:
            return shmview.connect()
        except shmview.NoDaemon:
            time.sleep(0.1)


try:
    view = shmview.zeros(1000, "i8", name="rounds", lifetime="manual", connection=connect())
except shmview.Exists:
    view = shmview.attach_array("rounds", connection=connect())
segment = view.segment
print("producer: begins after round", view[0], flush=True)
while True:
    with segment.locked():
        view[:] = view[0] + 1
        segment.notify()
    time.sleep(0.1)
