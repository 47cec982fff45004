# SPDX-License-Identifier: Apache-2.0
"""Steps: connections and processes of clients, and what they do to shared memory."""

import struct

from model import LIVE
from server import Broken
from step_requests import MOST_CONNS, close, send_some

MOST_AGENTS = 8


def open_conn(siege):
    living = siege.living()
    if living and len(siege.model.conns) < MOST_CONNS:
        siege.connect(siege.rng.choice(living))


def holders(conn):
    return sorted((a for a in conn.holders if a.lives), key=lambda a: a.number)


def hang_up(siege):
    """A client closes its socket without notice, perhaps with requests or replies under way."""
    conns = [c for c in siege.model.conns if any(a.lives for a in c.holders)]
    if not conns:
        return
    conn = siege.rng.choice(conns)
    if conn in siege.conns() and siege.rng.random() < 0.5:
        send_some(siege, conn)
    close(siege, conn, siege.rng.choice(holders(conn)))


def claim(siege):
    """A client claims what it has, on a new connection after it lost its old ones."""
    living = [a for a in siege.living()]
    if not living:
        return
    a = siege.rng.choice(living)
    others = [c for c in siege.model.conns if c.agent is a and c.client == a.client]
    for c in others:
        if siege.rng.random() < 0.9:
            if a in c.holders:
                close(siege, c, a)
    if any(c in siege.model.conns for c in others) and siege.rng.random() < 0.9:
        return
    conn = siege.connect(a)
    if conn:
        op = siege.make_op(conn, "io.shmview.Claim", wild=False)
        op.oneway = False
        siege.call(op)


def start_client(siege):
    if len(siege.living()) < MOST_AGENTS:
        siege.add_agent()


def kill_client(siege):
    living = siege.living()
    if len(living) > 2:
        a = siege.rng.choice(living)
        conns = [c for c in siege.conns() if c.agent is a]
        if conns and siege.rng.random() < 0.4:
            send_some(siege, siege.rng.choice(conns))
        siege.end_agent(a, siege.rng.choice(["kill", "kill", "exit"]))


def fork_client(siege):
    living = siege.living()
    if living and len(living) < MOST_AGENTS:
        siege.fork_agent(siege.rng.choice(living), siege.rng.random() < 0.3)


def exec_client(siege):
    """A client becomes another program, unless a child holds one of its sockets: the daemon
    would not notice it, because no socket hangs up."""
    living = [a for a in siege.living() if all(c.holders == {a} for c in siege.model.conns if c.agent is a)]
    if len(living) > 2:
        siege.exec_agent(siege.rng.choice(living))


def reap_programs(siege):
    """Ends the processes that have replaced their program."""
    for a in siege.agents:
        if not a.lives and not a.gone:
            siege.end_agent(a)
            return


def kill_client_quietly(siege):
    living = siege.living()
    if len(living) > 2:
        siege.end_agent(siege.rng.choice(living))


# --- Memory ---------------------------------------------------------------------------------



def some_attachment(siege, accesses, lock=False):
    found = [a for a in siege.model.attachments.values()
             if a.access in accesses and a.agent.lives and a.fds and a.state == LIVE and (not lock or a.slot >= 0)]
    return siege.rng.choice(found) if found else None


def write_data(siege):
    a, rng = some_attachment(siege, ("write",)), siege.rng
    if not a:
        return
    content = siege.content(a.segment)
    at = rng.randrange(len(content))
    data = rng.randbytes(rng.randint(1, min(64, len(content) - at)))
    if a.agent.do("write", a.fds["data"], at, data) != len(data):
        raise Broken(f"{a.agent} cannot write to {a.segment.name}")
    content[at:at + len(data)] = data
    siege.note(f"{a.agent} writes {len(data)} bytes to {a.segment.name} at {at}", a.agent, a.segment.name)


def read_data(siege):
    for _ in range(4):
        a = some_attachment(siege, ("peek", "read", "write"))
        if a:
            siege.check_data(a)


def cut_data(siege):
    """A client truncates or enlarges a data object, or empties the control object."""
    rng = siege.rng
    a = some_attachment(siege, ("write",))
    if not a or rng.random() > siege.options.spoil:
        return
    s = a.segment
    size = rng.choice([0, 1, s.size // 2, s.size + 1, s.size * 2, s.size + (1 << 20)])
    r = a.agent.do("truncate", a.fds["data"], size)
    siege.note(f"{a.agent} sets the size of the data of {s.name} to {size}: {r}", a.agent, s.name)
    if r == 0:
        content = siege.content(s)
        s.data_spoiled = True
        content[size:] = bytes(len(content) - min(size, len(content)))


def spoil_control(siege):
    rng = siege.rng
    a = some_attachment(siege, ("read", "write"), lock=True)
    if not a or rng.random() > siege.options.spoil:
        return
    s, fd = a.segment, a.fds["control"]
    s.control_spoiled = True
    kind = rng.randrange(4)
    if kind == 0:
        r = a.agent.do("truncate", fd, rng.choice([0, 100, 4095, 4096, 8192, 1 << 20]))
    elif kind == 1:
        r = a.agent.do("write", fd, rng.choice([0, 8, 32, 128, 512, 1024, 1536, 1536 + 128 * max(a.slot, 0)]),
                       rng.randbytes(rng.choice([4, 8, 64])))
    elif kind == 2:
        r = a.agent.do("write", fd, 0, rng.randbytes(4096))
    else:
        r = a.agent.do("write", fd, 0, bytes(4096))
    siege.note(f"{a.agent} spoils the control object of {s.name} ({kind}): {r}", a.agent, s.name)


def lock_word(siege):
    """A client takes the exclusive lock by writing its id, as the library would, or releases it."""
    a = some_attachment(siege, ("read", "write"), lock=True)
    if not a or a.segment.control_spoiled or not a.generation:
        return
    do, fd = a.agent.do, a.fds["control"]
    identity = a.generation << 10 | a.slot
    word, inside = struct.unpack("=I4xQ", do("read", fd, 128, 16))
    if word & 0x3FFFFFFF == identity:
        do("write", fd, 136, struct.pack("=Q", (inside & ~0x3FFFFFFF) + 0x40000000))
        do("write", fd, 128, struct.pack("=I", 0))
        siege.note(f"{a.agent} unlocks {a.segment.name}", a.agent, a.segment.name)
    elif word == 0:
        slot = 1536 + 128 * a.slot
        do("write", fd, slot, struct.pack("=IIII16s", a.generation << 12, identity, a.agent.pid, 0, b"siege"))
        do("write", fd, 128, struct.pack("=I", identity))
        do("write", fd, 136, struct.pack("=Q", (inside & ~0x3FFFFFFF) | identity))
        siege.note(f"{a.agent} locks {a.segment.name}", a.agent, a.segment.name)


def ring_bell(siege):
    """A client sends messages on the bell, valid and invalid ones."""
    conns = [c for c in siege.model.conns if c.bell and c.agent.lives]
    if not conns:
        return
    conn, rng = siege.rng.choice(conns), siege.rng
    for _ in range(rng.choice([1, 3, 500])):
        i = rng.choice(list(siege.model.attachments) or [0])
        data = rng.choice([struct.pack("=Q", i), struct.pack("=Q", rng.getrandbits(64)), b"", b"x", b"y" * 70,
                           rng.randbytes(8)])
        conn.agent.do("send_on", conn.bell, data)
    siege.note(f"{conn} rings its bell", conn.agent, conn)
