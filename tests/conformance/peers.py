# SPDX-License-Identifier: Apache-2.0
"""Drivers: processes that carry out requests through the interface of their language.

A request is a line of JSON, {"do": "lock", "seg": "s"}; so is its answer, {"ok": value} or
{"error": SHMVIEW_ERR_*, "class": its name in that language, "text": its message}. The names "seg"
and "view" of segments and views are valid within one driver only.

    hello, errors                   language, pid, and whether it has streams; the names of all errors, by their numbers
    create, attach                  seg: a name for it; name, size, lock; name, access
    close, remove                   seg; name
    put, dump                       bytes of seg, in hexadecimal
    define                          seg, layout, views: descriptions, each with a name
    view                            seg, view: a name for it, and a description: format, shape,
                                    strides, suboffsets, offset, readonly
    open                            seg, view, layout, name
    slice, row, transpose, reshape, broadcast, field, recast
                                    of: a view; view: a name for the new view
    facts                           the members of a view
    kind                            the language's types: of a value, and by its other way; "" if
                                    there is none
    get, set                        one element; index, value
    values, assign                  all of them, nested by dimensions
    other                           all of them, by the language's other way to the same bytes:
                                    pointers in C, numpy in Python, Fiddle in Ruby; null where
                                    it has none for the type
    copy                            view, from
    lock, trylock, recover, unlock  seg, shared, timeout_ms, repaired. After lock or trylock has
                                    reported a death, the driver holds nothing; recover holds
                                    the lock in any case
    status                          of the lock
    switch, phase, wait_phase       seg, layout, after, timeout_ms
    change, notify, wait_change     seg, seen, timeout_ms
    stream_create, stream_open      stream: a name for it; name, views, lossless, slots, history, stages; name, access
    stream_close, stream_join, stream_finish, stream_info, stream_status
                                    stream
    stream_wait                     streams: answers the place of the first one that has a frame; timeout_ms
    loan, take                      stream; frame: a name for the frame; timeout_ms; latest. take answers the
                                    members of the frame, "ended", or the death of a writer
    frame_set                       frame, user, time_ns, lengths: of its views
    frame_view                      frame, name: the view gets the name "FRAME.NAME"
    publish, discard, release, pass frame; stage. They end the frame and its views, but for pass
    die                             kill -9 to itself
    held                            how many sockets, and mappings of segments

Values are those of JSON, but integers and floats differ. {"int": "18446744073709551615"} stands
for an integer above 2^63 - 1, {"float": "nan"}, {"complex": [re, im]}, {"hex": "616263"} for bytes, and an
array for a struct, an array within an element, and a dimension."""

import json
import os
import select
import signal
import subprocess
import time

PATIENCE_S = 120
PLACE = os.path.dirname(os.path.abspath(__file__))


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, answer):
        super().__init__(answer["text"])
        self.code, self.name, self.text = answer["error"], answer["class"], answer["text"]


def await_(condition, what):
    """Waits until condition() is true."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{what} has not come in {PATIENCE_S} s"
        time.sleep(0.002)


def built():
    """Returns drivers.json, which the build has written."""
    with open(os.environ["SHMVIEW_CONFORMANCE"]) as file:
        return json.load(file)


DRIVERS = built()["drivers"]  # by language


class Peer:
    """A driver in a process of its own. ask() sends a request and waits for the answer; tell()
    only sends it, and answer() waits later."""

    def __init__(self, language, socket):
        driver = DRIVERS[language]
        self.process = subprocess.Popen(driver["run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, **driver["environment"], "SHMVIEW_SOCKET": socket})
        self.language, self.pid, self.rest = language, self.process.pid, b""
        said = self.ask("hello")
        assert said["pid"] == self.pid
        self.has_streams = said["streams"]

    def tell(self, do, **request):
        request["do"] = do
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        end = time.monotonic() + PATIENCE_S
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            assert ready, f"{self.language} does not answer"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, f"{self.language} has ended with status {self.process.wait(PATIENCE_S)}"
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer)
        return answer["ok"]

    def ask(self, do, **request):
        self.tell(do, **request)
        return self.answer()

    def die(self):
        self.tell("die")
        assert self.process.wait(PATIENCE_S) == -signal.SIGKILL
        self.forget()

    def end(self):
        """Ends its input, after which it must exit in order."""
        self.process.stdin.close()
        status = self.process.wait(PATIENCE_S)
        self.forget()
        assert status == 0, f"{self.language} ends with status {status}"

    def forget(self):
        self.process.stdin.close()
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.forget()


class Crowd:
    """The drivers, by language and place. Those that do not run are started when a test needs
    them."""

    def __init__(self, socket):
        self.socket, self.peers = socket, {}

    def get(self, language, place):
        peer = self.peers.get((language, place))
        if peer is None or peer.process.poll() is not None:
            peer = self.peers[language, place] = Peer(language, self.socket)
        return peer

    def of(self, languages):
        """Returns a driver for each language; a language that occurs twice has two."""
        return [self.get(language, place) for place, language in enumerate(languages)]

    def alive(self):
        return [peer for peer in self.peers.values() if peer.process.poll() is None]

    def end(self):
        for peer in self.alive():
            peer.end()
