# SPDX-License-Identifier: Apache-2.0
"""Steps: requests, whole and broken, and what comes back."""

import json
import socket

from server import Broken

MOST_CONNS = 16
BAGGAGE = ["file", "memfd", "pipe", "pair", "linger", "1", "30", "200"]
PING = b'{"method":"io.shmview.Ping"}\0'


def some_conn(siege):
    """Returns a connection that can send requests: a new one if there is none, or by chance."""
    rng, conns = siege.rng, siege.conns()
    if conns and (rng.random() < 0.9 or len(siege.model.conns) >= MOST_CONNS):
        return rng.choice(conns)
    living = siege.living()
    if not living:
        living = [siege.add_agent()]
    return siege.connect(rng.choice(living))



def one_call(siege):
    conn = some_conn(siege)
    if conn:
        siege.call(siege.make_op(conn))


def split_call(siege):
    """Sends one request in pieces."""
    conn = some_conn(siege)
    if not conn:
        return
    op = siege.make_op(conn)
    siege.call(op, cut(siege.rng, op.data(), siege.rng.choice([2, 3, 10])))


def cut(rng, data, n):
    places = sorted(rng.randrange(len(data) + 1) for _ in range(n - 1))
    return [c for c in (data[i:j] for i, j in zip([0] + places, places + [len(data)])) if c]


def burst(siege):
    """Sends several requests together, cut into pieces at random places."""
    conn = some_conn(siege)
    if not conn:
        return
    ops = [siege.make_op(conn) for _ in range(siege.rng.choice([2, 3, 5, 20]))]
    for op in ops:
        siege.launch(op)
        op.strict = False
    ops.append(last_op(siege, conn))
    data = b"".join(op.data() for op in ops)
    siege.exchange(conn, ops, cut(siege.rng, data, siege.rng.choice([1, 1, 2, 7])))


def attach_often(siege):
    """One client attaches one segment many times, so that the lock needs more slots than it had."""
    conn, segment = some_conn(siege), siege.pick_segment()
    if not conn or not segment:
        return
    access = siege.rng.choice(["peek", "read", "write"])
    ops = []
    for _ in range(siege.rng.choice([10, 30])):
        op = siege.make_op(conn, "io.shmview.Attach", wild=False)
        op.raw = op.params = {"name": segment.name, "access": access}
        op.oneway = False
        siege.launch(op)
        op.strict = False
        ops.append(op)
    siege.exchange(conn, ops, [b"".join(op.data() for op in ops)])


def last_op(siege, conn):
    """Sends a Ping, whose reply shows that everything before it was done."""
    op = siege.make_op(conn, "io.shmview.Ping", wild=False)
    op.oneway = False
    siege.launch(op)
    return op


def unread_calls(siege):
    """Sends requests whose replies are not read now."""
    conn = some_conn(siege)
    if not conn:
        return
    n = siege.rng.choice([1, 2, 5, 200])
    ops = [siege.make_op(conn, siege.rng.choice(["io.shmview.List", "io.shmview.Stats",
                                                 "org.varlink.service.GetInterfaceDescription"]) if n > 5 else None)
           for _ in range(n)]
    conn.unread = True
    for op in ops:
        siege.launch(op)
        op.strict = False
        sent = conn.agent.do("send", conn.number, [op.data()], [], 0.02)
        if sent < len(op.data()):
            conn.half_sent = True
            break


def read_late(siege):
    """A client reads the replies that it left unread."""
    conns = [c for c in siege.conns(can_ask=False) if c.unread]
    if not conns:
        return
    conn = siege.rng.choice(conns)
    if conn.half_sent:  # a request was cut, so that nothing can follow it
        close(siege, conn)
        return
    due = sum(not op.oneway for op in conn.ops)
    texts, fds, ended = conn.agent.do("receive", conn.number, due, siege.options.patience)
    siege.server.check()
    if len(texts) < due and not ended:
        raise Broken(f"{conn}: {due - len(texts)} of {due} replies are missing")
    conn.unread = False
    siege.note(f"{conn} reads {len(texts)} replies", conn.agent, conn)
    siege.take(conn, texts, fds, ended)
    siege.model.unresolved += conn.ops
    conn.ops = []


def broken_bytes(siege):
    """Sends bytes that are not a request. The daemon must hang up, or reply with an error."""
    conn, rng = some_conn(siege), siege.rng
    if not conn:
        return
    op = siege.make_op(conn, rng.choice(["io.shmview.Ping", "io.shmview.List", "io.shmview.Stats"]))
    op.oneway = False
    data = bytearray(op.data())
    kind = rng.randrange(8)
    if kind == 0:
        for _ in range(rng.choice([1, 2, 9])):
            data[rng.randrange(len(data) - 1)] = rng.choice(b"{}[]\",:0-\\\x01\xff ")
    elif kind == 1:
        data = b'{"method":"io.shmview.Ping","method":"io.shmview.Ping"}\0'
    elif kind == 2:
        data = b"x" * ((1 << 20) + 10) + b"\0"
    elif kind == 3:
        data = b'{"method":"io.shmview.Ping","parameters":' + b"[" * rng.choice([9, 3000, 100000]) + b"\0"
    elif kind == 4:
        data = rng.choice([b"\0", b"\0\0\0", b"{}\0", b"[]\0", b"null\0", b'{"method":5}\0', b'{"parameters":{}}\0'])
    elif kind == 5:
        data = rng.choice([b'{"method":"io.shmview.Ping","upgrade":true}\0',
                           b'{"method":"io.shmview.Remove","parameters":{"name":"a\\u0000b"}}\0'])
    elif kind == 6:
        data = b'{"method":"io.shmview.Ping","parameters":{"\xff\xfe":1}}\0'
    else:
        data = rng.randbytes(rng.choice([1, 50, 5000])) + b"\0"
    siege.note(f"{conn} sends what is no request: {bytes(data[:120])!r} ({len(data)} bytes)", conn.agent, conn)
    expect_error_or_end(siege, conn, [bytes(data)], [])


def expect_error_or_end(siege, conn, chunks, baggage):
    """Sends the chunks. The daemon must end the connection, or answer a Ping that follows."""
    chunks = chunks if baggage else chunks + [PING]
    n = sum(c.count(0) for c in chunks)
    sent, texts, fds, ended = conn.agent.do("exchange", conn.number, chunks, baggage, n, siege.options.patience)
    siege.server.check()
    siege.drop(conn.agent, fds)
    if ended or sent < 0:
        siege.hung_up_on(conn)
    elif len(texts) < n:
        raise Broken(f"{conn}: neither an answer nor the end of the connection")


def descriptors(siege):
    """Sends descriptors with a request, which is a violation."""
    conn = some_conn(siege)
    if not conn:
        return
    baggage = siege.rng.sample(BAGGAGE, siege.rng.choice([1, 1, 2]))
    siege.note(f"{conn} sends descriptors: {baggage}", conn.agent, conn)
    # the daemon is busy with the first requests while the client closes its copies
    pings = [PING * siege.rng.choice([1, 100]), PING]
    expect_error_or_end(siege, conn, pings, baggage)


def monitor(siege):
    """Opens a connection that monitors events, and does not read them at once."""
    conn, rng = some_conn(siege), siege.rng
    if not conn or siege.model.of_conn(conn):
        return
    parameters = rng.choice([{}, {"after": 0}, {"kinds": ["created", "died"]}, {"names": ["a", "b"]}])
    text = json.dumps({"method": "io.shmview.Monitor", "parameters": parameters, "more": True}).encode() + b"\0"
    sent, texts, _, ended = conn.agent.do("exchange", conn.number, [text], [], 1, siege.options.patience)
    siege.server.check()
    siege.note(f"{conn} monitors: {texts[:1]}", conn.agent, conn)
    if ended and conn.may_close:
        siege.hung_up_on(conn)
        return
    if not texts or ended:
        raise Broken(f"{conn}: no answer to Monitor")
    if b'"error"' in texts[0]:
        return
    conn.monitors = True
    check_events(siege, conn, texts)


def read_events(siege):
    conns = [c for c in siege.model.conns if c.monitors and c.agent.lives and c.agent in c.holders]
    if conns:
        conn = siege.rng.choice(conns)
        texts, _, ended = conn.agent.do("receive", conn.number, 100, 0.001)
        siege.server.check()
        check_events(siege, conn, texts)
        if ended and not conn.may_close:
            raise Broken(f"{conn}: the daemon hung up on a monitor")
        if ended:
            siege.hung_up_on(conn)


def check_events(siege, conn, texts):
    """Checks that a user receives only events of segments that it could see at some time, and of
    its own."""
    who = conn.agent.who
    for text in texts:
        event = siege._parse(conn, text)["parameters"].get("event", {})
        i = event.get("id")
        if i is None or who.uid in siege.admins or event.get("uid") == who.uid:
            continue
        if i in siege.seen and who.uid not in siege.seen[i]:
            raise Broken(f"{conn}: uid {who.uid} hears of a segment it could never see: {event}")


def close(siege, conn, agent=None):
    agent = agent or conn.agent
    siege.note(f"{agent} closes {conn}", conn.agent, conn)
    agent.do("close", conn.number)
    conn.holders.discard(agent)
    if not conn.holders:
        siege.model.lose_conn(conn)
    elif agent is conn.agent:
        siege.model.lag = True


def send_some(siege, conn):
    ops = [siege.make_op(conn) for _ in range(siege.rng.randrange(1, 4))]
    for op in ops:
        siege.launch(op)
        op.strict = False
    data = b"".join(op.data() for op in ops)
    if siege.rng.random() < 0.4:
        data = data[:siege.rng.randrange(len(data))]
        conn.half_sent = True
    conn.agent.do("send", conn.number, [data], [], 0.05)
    conn.unread = True


def half_close(siege):
    """A client shuts down its side for good after requests; the replies must still come."""
    conns = siege.conns()
    if not conns:
        return
    conn = siege.rng.choice(conns)
    ops = [siege.make_op(conn) for _ in range(siege.rng.randrange(0, 4))]
    for op in ops:
        siege.launch(op)
        op.strict = False
    conn.agent.do("send", conn.number, [op.data() for op in ops], [], 5)
    conn.agent.do("shutdown", conn.number, socket.SHUT_WR)
    siege.note(f"{conn} shuts down its side", conn.agent, conn)
    due = sum(not op.oneway for op in ops)
    texts, fds, ended = conn.agent.do("receive", conn.number, due + 1, siege.options.patience)
    siege.server.check()
    if (len(texts) < due and not conn.may_close) or not ended:
        raise Broken(f"{conn}: {len(texts)} of {due} answers after it shut down its side, ended: {ended}")
    siege.take(conn, texts, fds, ended, may_end=True)
