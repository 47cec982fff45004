# SPDX-License-Identifier: Apache-2.0
"""The part of a siege that checks single replies and descriptors against the model."""

import os

import oracle
from model import NAMED
from server import Broken

CONTROL_MAGIC = b"SMvc"  # as the bytes lie in memory
LOOK_BYTES = 8192  # how much of a segment's data is compared


class Look:
    def known(self, told):
        """Returns the segment that a reply describes. It may have gone since if the client read
        the reply late."""
        i, model = told["id"], self.model
        return model.segments.get(i) or model.past.get(i) or oracle.adopt_segment(self, told)

    def check_descriptors(self, a, is_recent):
        """Checks that the descriptors of an attachment permit exactly its access, and that the
        data is intact."""
        do, s = a.agent.do, a.segment
        expected = {"data": os.O_RDWR if a.access == "write" else os.O_RDONLY, "control": os.O_RDWR,
                    "liveness": os.O_RDONLY}
        for what, fd in a.fds.items():
            mode = do("access", fd)
            if mode != expected[what]:
                raise Broken(f"{a.agent}: the {what} descriptor of {a.access} to {s.name} has mode {mode}")
        if is_recent and "control" in a.fds and do("read", a.fds["control"], 0, 4) != CONTROL_MAGIC:
            raise Broken(f"{s.name}: attached with a damaged control object")
        size = do("size", a.fds["data"])
        if size != s.size and not s.data_spoiled:
            raise Broken(f"{s.name}: its data has {size} bytes instead of {s.size}")
        self.check_data(a)

    def content(self, s):
        if not s.bytes:
            s.bytes = bytearray(min(s.size, LOOK_BYTES))
        return s.bytes

    def check_data(self, a):
        s = a.segment
        expected = self.content(s)
        got = a.agent.do("read", a.fds["data"], 0, len(expected))
        if isinstance(got, int):
            raise Broken(f"{s.name}: its data cannot be read: {os.strerror(-got)}")
        if got != expected[:len(got)] or (len(got) < len(expected) and not s.data_spoiled):
            at = next((i for i, (x, y) in enumerate(zip(got, expected)) if x != y), len(got))
            raise Broken(f"{s.name} ({s.id}): byte {at} is not the one that was written")

    def check_may_see(self, op, s):
        model = self.model
        own = any(a.segment is s for a in model.of_conn(op.conn))
        if own or any(x.may_see(op.who, c) for x in [s.access] + s.access_maybe for c in (model.config, op.old_config)):
            return
        raise Broken(f"{op}: uid {op.who.uid} is told of {s.name}, which is {s.access}")

    def check_visible(self, op, listed):
        model = self.model
        for told in listed.values():
            self.check_may_see(op, self.known(told))
        if not op.strict:
            return
        for s in model.segments.values():
            sees = s.name_state == NAMED and s.access.may_see(op.who, model.config)
            if sees != (s.id in listed):
                raise Broken(f"{op}: uid {op.who.uid} {'misses' if sees else 'sees'} {s.name} ({s.id}), {s.access}")

    def check_layouts(self, s, names, is_recent=True):
        lacks = [n for n in s.layouts if n not in names and is_recent]
        more = [n for n in names if n not in s.layouts and n not in s.layouts_maybe]
        if lacks or more:
            raise Broken(f"layouts of {s.name}: {lacks} are lost, {more} are from nowhere")
