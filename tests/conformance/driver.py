#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The conformance driver in Python: a program that uses `import shmview` only. It reads requests
from standard input and writes the answers, one line of JSON each. peers.py describes the
requests and how values are written."""

import json
import math
import os
import signal
import sys

import numpy

import shmview
from streams import Streams

INT64_MAX = 2**63 - 1


class Driver(Streams):
    def __init__(self):
        super().__init__()
        self.segments, self.views, self.recoveries = {}, {}, {}
        shmview.connect(start=False)

    def segment(self, request):
        return self.segments[request["seg"]]

    def keep(self, request, view):
        self.views[request["view"]] = view

    # --- Segments

    def do_hello(self, request):
        return {"language": "Python", "pid": os.getpid(), "streams": hasattr(shmview, "create_stream")}

    def do_errors(self, request):
        classes = (getattr(shmview, name) for name in dir(shmview))
        return {c.code: c.__name__ for c in classes
                if isinstance(c, type) and issubclass(c, shmview.Error) and c.code}

    def do_create(self, request):
        self.segments[request["seg"]] = shmview.create(request["name"], request["size"],
                                                       lock=request.get("lock", True))

    def do_attach(self, request):
        access = request.get("access", "write")
        self.segments[request["seg"]] = shmview.attach(request["name"], access=access)

    def do_close(self, request):
        segment = self.segment(request)
        self.views = {name: v for name, v in self.views.items() if v.segment is not segment}
        segment.close()
        del self.segments[request["seg"]]

    def do_remove(self, request):
        shmview.remove(request["name"])

    def do_put(self, request):
        new, offset = bytes.fromhex(request["hex"]), request.get("offset", 0)
        self.segment(request).buf[offset:offset + len(new)] = new

    def do_dump(self, request):
        return self.segment(request).buf.tobytes().hex()

    def do_die(self, request):
        os.kill(os.getpid(), signal.SIGKILL)

    def do_held(self, request):
        shmview.trim()
        names = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        with open("/proc/self/maps") as maps:
            return {"sockets": sum(os.path.islink(fd) and os.readlink(fd).startswith("socket:") for fd in names),
                    "mappings": sum("/shmview." in line for line in maps)}

    # --- Views

    def do_define(self, request):
        names = [v["name"] for v in request["views"]]
        views = {v["name"]: {key: v[key] for key in v if key != "name"} for v in request["views"]}
        assert len(views) == len(names)
        self.segment(request).define({request["layout"]: views})

    def do_view(self, request):
        spec = {key: request[key] for key in ("shape", "offset", "strides", "suboffsets", "readonly")
                if key in request}
        self.keep(request, self.segment(request).cast(request["format"], **spec))

    def do_open(self, request):
        self.keep(request, self.segment(request).view(request["name"], request["layout"]))

    def do_slice(self, request):
        part = slice(request.get("start"), request.get("stop"), request.get("step"))
        self.keep(request, self.views[request["of"]][(slice(None),) * request["dimension"] + (part,)])

    def do_row(self, request):
        self.keep(request, self.views[request["of"]][request["index"]])

    def do_transpose(self, request):
        self.keep(request, self.views[request["of"]].T)

    def do_reshape(self, request):
        self.keep(request, self.views[request["of"]].reshape(request["shape"]))

    def do_broadcast(self, request):
        self.keep(request, self.views[request["of"]].broadcast(request["shape"]))

    def do_field(self, request):
        self.keep(request, self.views[request["of"]].field(request.get("name")))

    def do_recast(self, request):
        self.keep(request, self.views[request["of"]].cast(request["format"]))

    def do_facts(self, request):
        v = self.views[request["view"]]
        return {"format": v.format, "itemsize": v.itemsize, "nbytes": v.nbytes,
                "shape": list(v.shape), "strides": list(v.strides),
                "suboffsets": list(v.suboffsets), "readonly": v.readonly, "offset": v.offset,
                "c_contiguous": v.c_contiguous, "f_contiguous": v.f_contiguous, "stale": v.stale}

    # --- Elements

    def do_kind(self, request):
        view = self.views[request["view"]]
        there = of_numpy(view)
        return {"value": type(view[(0,) * view.ndim]).__name__,
                "other": "" if there is None else there.dtype.name}

    def do_get(self, request):
        return told(self.views[request["view"]][tuple(request["index"])])

    def do_set(self, request):
        self.views[request["view"]][tuple(request["index"])] = meant(request["value"])

    def do_values(self, request):
        return told(self.views[request["view"]].tolist())

    def do_assign(self, request):
        assign(self.views[request["view"]], request["values"])

    def do_other(self, request):
        there = as_array(self.views[request["view"]])
        return None if there is None else told(there.tolist())

    def do_copy(self, request):
        self.views[request["view"]][...] = self.views[request["from"]]

    # --- The lock

    def do_lock(self, request):
        timeout = request.get("timeout_ms")
        try:
            self.segment(request).lock(None if timeout is None else timeout / 1000,
                                       shared=request.get("shared", False))
        except shmview.OwnerDied as died:
            return told_death(died)

    def do_trylock(self, request):
        try:
            return self.segment(request).trylock(shared=request.get("shared", False))
        except shmview.OwnerDied as died:
            return told_death(died)

    def do_recover(self, request):
        recovery = self.segment(request).recover()
        died = recovery.__enter__()
        self.recoveries[request["seg"]] = recovery
        return died and told_death(died)

    def do_unlock(self, request):
        self.recoveries.pop(request["seg"], None)
        self.segment(request).unlock(repaired=request.get("repaired", True))

    def do_status(self, request):
        status = self.segment(request).lock_status()
        return {"held": status.held, "owner_is_dead": status.owner_is_dead, "dirty": status.dirty,
                "parties": [[party.role, party.pid] for party in status.parties]}

    # --- Phases and changes

    def do_switch(self, request):
        self.segment(request).switch(request["layout"])

    def do_phase(self, request):
        return {"generation": self.segment(request).generation,
                "phase": self.segment(request).phase}

    def do_wait_phase(self, request):
        return self.wait(request, phase=request.get("layout"), generation=request.get("after"))

    def do_change(self, request):
        return self.segment(request).change

    def do_notify(self, request):
        self.segment(request).notify()

    def do_wait_change(self, request):
        return self.wait(request, change=request["seen"])

    def wait(self, request, **what):
        timeout = request.get("timeout_ms")
        return self.segment(request).wait(timeout=None if timeout is None else timeout / 1000, **what)


def assign(view, values):
    """Assigns by indices; a view of one dimension as a whole."""
    if view.ndim == 0:
        view[()] = meant(values)
    elif view.ndim == 1:
        view[:] = [meant(value) for value in values]
    else:
        for i, row in enumerate(values):
            assign(view[i], row)


def of_numpy(view):
    """Returns numpy's array of the view; None if numpy lacks the type, or does not follow
    suboffsets."""
    try:
        return numpy.asarray(view)
    except (ValueError, BufferError):
        return None


def as_array(view):
    """Like of_numpy(), but also None if an element is more than one value."""
    there = of_numpy(view)
    if there is None or there.dtype.kind == "V" or there.ndim != view.ndim:
        return None
    return there.view(f"V{there.itemsize}") if there.dtype.kind == "S" else there  # numpy cuts zeros off the end of S


def told_death(died):
    return {"name": died.name, "pid": died.pid, "command": died.command, "phase": died.phase,
            "generation": died.generation, "when_ns": round(died.when * 1e9)}


def told(value):
    """Returns a value in the form that JSON has."""
    if isinstance(value, (bool, type(None))):
        return value
    if isinstance(value, int):
        return value if value <= INT64_MAX else {"int": str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, complex):
        return {"complex": [told(value.real), told(value.imag)]}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, numpy.generic):  # a long double
        return told(float(value))
    return [told(one) for one in value]


def meant(value):
    """Returns the value that the JSON stands for; an array is the parts of a struct."""
    if isinstance(value, list):
        return tuple(meant(one) for one in value)
    if not isinstance(value, dict):
        return value
    (kind, text), = value.items()
    if kind == "complex":
        return complex(meant(text[0]), meant(text[1]))
    return {"int": int, "float": float, "hex": bytes.fromhex}[kind](text)


def main():
    driver = Driver()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"ok": getattr(driver, "do_" + request["do"])(request)}
        except shmview.Error as error:
            assert error.code, repr(error)
            reply = {"error": error.code, "class": type(error).__name__, "text": error.args[-1]}
        print(json.dumps(reply), flush=True)
    assert not driver.segments and not driver.streams, f"left attached: {driver.segments} {driver.streams}"


main()
