# SPDX-License-Identifier: Apache-2.0
"""Drivers, one process each, that do what they are told through the interface of their language.

A request is a line of JSON, {"do": "lock", "seg": "s"}; so is its answer, {"ok": value} or
{"error": SHMVIEW_ERR_*, "class": its name in that language, "text": what it says}. Segments and
views have names that are good within one driver.

    hello, errors                   language and pid; the names of all errors, by their numbers
    create, attach                  seg: a name for it; name, size, lock; name, access
    close, remove                   seg; name
    put, dump                       bytes of seg, in hexadecimal
    define                          seg, layout, views: descriptions, each with a name
    view                            seg, view: a name for it, and a description: format, shape,
                                    strides, suboffsets, offset, readonly
    open                            seg, view, layout, name
    slice, row, transpose, reshape, broadcast, field, recast
                                    of: a view; view: a name for the one that is made
    facts                           what a view says about itself
    kind                            the language's types: of a value, and by its other way, "":
                                    none
    get, set                        one element; index, value
    values, assign                  all of them, nested by dimensions
    other                           all of them, by the language's other way to the same bytes:
                                    pointers in C, numpy in Python, Fiddle in Ruby; null where
                                    it has none for the type
    copy                            view, from
    lock, trylock, recover, unlock  seg, shared, timeout_ms, repaired. Who is told of a death by
                                    lock or trylock holds nothing; recover takes it in any case
    status                          of the lock
    switch, phase, wait_phase       seg, layout, after, timeout_ms
    change, notify, wait_change     seg, seen, timeout_ms
    die                             kill -9 to itself
    held                            how many sockets, and mappings of segments

Values are JSON's, integers and floats apart; {"int": "18446744073709551615"} where an integer is
more than 2^63 - 1, {"float": "nan"}, {"complex": [re, im]}, {"hex": "616263"} for bytes, and an
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
    """drivers.json, which the build has written."""
    with open(os.environ["SHMVIEW_CONFORMANCE"]) as file:
        return json.load(file)


DRIVERS = built()["drivers"]  # by language


class Peer:
    """One driver. ask() asks and waits; tell() asks, and answer() has its answer later."""

    def __init__(self, language, socket):
        driver = DRIVERS[language]
        self.process = subprocess.Popen(driver["run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, **driver["environment"], "SHMVIEW_SOCKET": socket})
        self.language, self.pid, self.rest = language, self.process.pid, b""
        said = self.ask("hello")
        assert said["pid"] == self.pid

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
        """Nothing left to do: it leaves in order."""
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
    """Drivers that are there when they are asked for, by language and place; those that died are
    made anew."""

    def __init__(self, socket):
        self.socket, self.peers = socket, {}

    def get(self, language, place):
        peer = self.peers.get((language, place))
        if peer is None or peer.process.poll() is not None:
            peer = self.peers[language, place] = Peer(language, self.socket)
        return peer

    def of(self, languages):
        """One for each, so that one language may be there more than once."""
        return [self.get(language, place) for place, language in enumerate(languages)]

    def alive(self):
        return [peer for peer in self.peers.values() if peer.process.poll() is None]

    def end(self):
        for peer in self.alive():
            peer.end()
