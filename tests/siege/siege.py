# SPDX-License-Identifier: Apache-2.0
"""One siege: a daemon, its clients, the model, and the requests between them."""

import json
import os
import random
import re
import signal
import socket
import time
from pathlib import Path

import agent as agents
import methods
from look import Look
from method import ERRORS, short
from model import ENDING, Conn, Model, Who
from reign import Reign
from server import Auditor, Broken, Server

NAMES = ["a", "b", "c", "d.e", "f-1", "g_2", "H", "declared1", "declared2", "x" * 128]
USERS = [Who(65501, 65501, (65521,)), Who(65502, 65502, (65521, 65522)), Who(65503, 65503), Who(0, 0)]
DAEMONS = [0, 65500]


class Agent:
    """The driver's side of a client process."""

    def __init__(self, siege, number, who, pid, channel, parent=None):
        self.siege, self.number, self.who, self.pid, self.channel = siege, number, who, pid, channel
        self.parent = parent
        self.lives = True  # it runs, and has not replaced its program
        self.gone = False  # it has ended
        self.client = siege.rng.getrandbits(62) + 1
        self.answered = {}  # client number: the last Claim that was answered
        self.numbers = set()  # client numbers that it has sent
        self.mapped = set()  # client numbers whose presence it has mapped
        self.next_conn = 0

    def __str__(self):
        return f"a{self.number}"

    def do(self, name, *arguments):
        try:
            self.channel.put((name, arguments))
            return self.channel.get()
        except (EOFError, OSError) as e:
            raise RuntimeError(f"agent {self} failed at {name}: {e!r}") from e


class Op:
    """One request."""

    def __init__(self, siege, conn, method, params, **flags):
        self.siege, self.method, self.conn, self.who = siege, method, conn, conn.agent.who
        self.raw = params
        self.params = {k: v for k, v in params.items() if v is not None} if isinstance(params, dict) else {}
        self.oneway = flags.get("oneway", False)
        self.more = flags.get("more", False)
        self.wild = flags.get("wild", False)
        self.strict = False
        self.removed = False  # a Remove of that name was answered before this Create
        self.table = methods.TABLE[method][0] if method in methods.TABLE else methods.Unknown()
        self.old_config = siege.model.config
        self.client = conn.client

    def __str__(self):
        flags = " oneway" * self.oneway + " more" * self.more + " wild" * self.wild
        text = json.dumps(self.raw)
        return f"{self.conn} {short(self.method)} {text if len(text) < 300 else text[:300] + '...'}{flags}"

    def data(self):
        what = {"method": self.method, "parameters": self.raw}
        if self.oneway:
            what["oneway"] = True
        if self.more:
            what["more"] = True
        return json.dumps(what).encode() + b"\0"

    def changes_name(self, name):
        return self.method == "io.shmview.Remove" and self.params.get("name") == name

    def changes(self, segment):
        return self.table.changes(self, segment)


class Siege(Reign, Look):
    def __init__(self, seed, options):
        self.seed, self.options = seed, options
        self.rng = random.Random(seed)
        self.model = Model()
        self.agents = []
        self.history = []
        self.step = 0
        self.is_root = os.getuid() == 0
        me = Who(os.getuid(), os.getgid(), tuple(os.getgroups()))
        self.users = USERS if self.is_root else [me]
        uid = self.rng.choice(DAEMONS) if self.is_root else os.getuid()
        self.server = Server(options.daemon, uid, options.log)
        self.auditor = Auditor(self.server.socket, options.patience)
        self.baseline = 0  # how many descriptors the daemon has without clients
        self.own_objects = 0  # how many objects it has without clients
        self.n_forgotten = 0  # attachments
        self.figures = None
        self.seen = {}  # segment: uids that could see it at some time
        self.admins = {0}  # uids that could see all segments at some time, including ended ones
        self.bystander = None

    # --- History ---

    def note(self, text, *subjects):
        self.history.append((self.step, text, {str(s) for s in subjects}))
        if self.options.verbose:
            print(f"{self.step:5} {text}", flush=True)

    def shortened(self, text, most=60):
        """Shortens the history to the steps that concern the clients and segments in the text of
        a failure."""
        last = self.history[-1][2] if self.history else set()

        def concerns(subject):
            return subject in last | {"*"} or re.search(rf"(?<![\w.-]){re.escape(subject)}(?![\w-])", text)

        told = [(s, t) for s, t, subjects in self.history if any(map(concerns, subjects))]
        return "\n".join(f"  {s:5} {t}" for s, t in told[-most:])

    # --- Clients ---

    def living(self):
        return [a for a in self.agents if a.lives]

    def add_agent(self, who=None):
        who = who or self.rng.choice(self.users)
        a = self.make_agent(len(self.agents), who)
        self.agents.append(a)
        self.note(f"{a} starts: pid {a.pid}, uid {who.uid}", a)
        return a

    def make_agent(self, number, who):
        pid, channel = agents.start(who.uid, who.gid, list(who.groups))
        return Agent(self, number, who, pid, channel)

    def end_agent(self, a, how="kill"):
        """Ends the process; returns when it is gone."""
        self.note(f"{a} ends by {how}", a)
        if how == "exit" and a.lives:
            a.channel.put(("exit", ()))
        else:
            os.kill(a.pid, signal.SIGKILL)
        a.gone = True
        self._await_end(a)
        a.channel.sock.close()
        a.lives = False
        self.model.lag = True
        self.model.agent_ended(a)

    def fork_agent(self, a, keeps_links):
        pid = a.do("fork", keeps_links)
        channel = agents.Channel(socket.socket(fileno=a.channel.get_fd()))
        child = Agent(self, len(self.agents), a.who, pid, channel, parent=a)
        child.next_conn = a.next_conn
        self.agents.append(child)
        if keeps_links:
            for conn in self.model.conns:
                if a in conn.holders:
                    conn.holders.add(child)
        self.note(f"{a} forks {child}: pid {pid}{', which keeps its sockets' * keeps_links}", a, child)

    def exec_agent(self, a):
        self.note(f"{a} replaces its program", a)
        a.do("exec")
        until = time.monotonic() + 20
        while Path(f"/proc/{a.pid}/comm").read_text() != "sleep\n":
            if time.monotonic() > until:
                raise RuntimeError(f"agent {a} does not become another program")
            time.sleep(0.001)
        a.lives = False
        self.model.lag = True
        self.model.agent_ended(a, gone=False)

    def claimants(self):
        """Returns the clients that may have a presence: processes and the numbers that they
        claimed."""
        return [(a, number) for a in self.agents if not a.gone for number in a.numbers]

    def _await_end(self, a):
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                if os.waitpid(a.pid, os.WNOHANG)[0]:
                    return
            except ChildProcessError:  # another agent's child, for which this process cannot wait
                if not os.path.exists(f"/proc/{a.pid}"):
                    return
            time.sleep(0.001)
        raise RuntimeError(f"agent {a} does not end")

    def conns(self, can_ask=True):
        """Returns the connections of living agents that their agents can use."""
        return [c for c in self.model.conns
                if c.agent.lives and c.agent in c.holders and not c.monitors
                and not (can_ask and (c.half or c.unread or c.ops))]

    def connect(self, a):
        """Opens a connection. Returns it, or None if a quota makes the daemon refuse it."""
        settled = self.model.settled()
        is_admin = self.model.config.is_admin(a.who)
        over = self.model.excess(a.who.uid, is_admin, {"connections": 1})
        conn = Conn(a, a.next_conn)
        a.next_conn += 1
        error = a.do("connect", conn.number, self.server.socket)
        if error:
            raise Broken(f"{conn} cannot connect: {os.strerror(error)}")
        self.model.conns.append(conn)
        self.note(f"{conn} connects", a, conn)
        conn.doubtful = True
        op = Op(self, conn, "io.shmview.Ping", {})
        conn.ops.append(op)
        refused = self.exchange(conn, [op], [op.data()])
        if refused and settled and not over:
            raise Broken(f"{conn} was refused, within its quota")
        if over and settled and not refused:
            raise Broken(f"{conn} was let in beyond its quota")
        conn.doubtful = False
        return None if refused else conn

    def end(self):
        """Ends all processes and removes all files, whatever happened before."""
        for a in self.agents + ([self.bystander] if self.bystander else []):
            if not a.gone:
                os.kill(a.pid, signal.SIGKILL)
                a.gone = True
                self._await_end(a)
            a.channel.sock.close()
        self.auditor.close()
        self.server.remove()

    # --- Requests ---

    def make_op(self, conn, method=None, wild=None):
        rng = self.rng
        if method is None:
            table = methods.TABLE
            method = rng.choices(list(table), [w for _, w in table.values()])[0]
        params = methods.TABLE[method][0].plausible(self, conn)
        wild = rng.random() < 0.12 if wild is None else wild
        if wild:
            params = self.distort(params)
        return Op(self, conn, method, params, wild=wild, oneway=rng.random() < 0.06)

    def distort(self, params):
        """Drops one parameter, adds one, or replaces the value of one; sometimes changes nothing."""
        rng = self.rng
        params = dict(params)
        kind = rng.randrange(8)
        if kind == 0 and params:
            del params[rng.choice(list(params))]
        elif kind == 1:
            params[rng.choice(["nobody", "", "id", "name", "x" * 300])] = self.junk()
        elif params:
            params[rng.choice(list(params))] = self.junk()
        return params

    def junk(self, depth=0):
        rng = self.rng
        kind = rng.randrange(14 if depth < 3 else 9)
        if kind < 4:
            return rng.choice([0, 1, -1, 2, 7, 1 << 31, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, -(1 << 63), 1 << 56,
                               rng.getrandbits(62)])
        if kind < 7:
            return rng.choice(["", "a", ".", "..", "../x", "/", "x" * 129, "x" * (3000 if depth else 70000), "é",
                               "\ud7ff", "write", "none", "a b", "%s%n"])
        if kind < 9:
            return rng.choice([None, True, False, 1.5, 1e300])
        if kind < 12:
            return [self.junk(depth + 1) for _ in range(rng.choice([0, 1, 2, 9, 40]))]
        return {rng.choice(["user", "right", "name", "views", "attachment", "z"]): self.junk(depth + 1)
                for _ in range(rng.randrange(4))}

    def launch(self, op):
        """Predicts the result, and notes that the request is under way."""
        model = self.model
        op.strict = not op.wild and not op.oneway and model.settled()
        op.prediction = op.table.predict(model, op) if op.strict else None
        self.unless_wild(op, op.table.sent, model, op)
        op.conn.ops.append(op)
        self.note(str(op), op.conn.agent, op.conn)

    @staticmethod
    def unless_wild(op, function, *arguments):
        """Calls the function unless the parameters are invalid: then they concern nothing in the
        model."""
        try:
            function(*arguments)
        except (KeyError, TypeError, AttributeError, ValueError):
            if not op.wild:
                raise

    def call(self, op, chunks=None):
        """Sends one request and takes its reply."""
        self.launch(op)
        self.exchange(op.conn, [op], chunks or [op.data()])

    def exchange(self, conn, ops, chunks, baggage=()):
        """Sends, receives as many replies as are due, and takes them. Returns whether the daemon
        refused the connection."""
        due = sum(not op.oneway for op in ops)
        patience = self.options.patience
        sent, texts, fds, ended = conn.agent.do("exchange", conn.number, chunks, list(baggage), due, patience)
        self.server.check()
        if sent >= 0 and len(texts) < due and not ended:
            raise Broken(f"{conn} waits for an answer for more than {patience} s; the last request: {ops[-1]}")
        return self.take(conn, texts, fds, ended or sent < 0)

    def take(self, conn, texts, fds, ended, may_end=False):
        """Takes replies that came. Returns whether the daemon refused the connection."""
        refused = False
        for text in texts:
            reply = self._parse(conn, text)
            if reply.get("error") == "io.shmview.QuotaExceeded" and conn.doubtful:
                refused = ended = True
                break
            while conn.ops and conn.ops[0].oneway:
                self.model.unresolved.append(conn.ops.pop(0))
            if not conn.ops:
                raise Broken(f"{conn}: a reply without a request: {text[:300]!r}")
            self._take_reply(conn, conn.ops.pop(0), reply, fds)
        if fds:
            raise Broken(f"{conn}: {len(fds)} descriptors came that no reply announced")
        if ended:
            if not (refused or may_end or conn.doubtful or conn.may_close):
                raise Broken(f"{conn}: the daemon hung up")
            self.hung_up_on(conn)
        return refused

    def hung_up_on(self, conn):
        self.note(f"{conn}: the daemon has hung up", conn.agent, conn)
        self.model.lose_conn(conn)
        conn.agent.do("close", conn.number)

    def _parse(self, conn, text):
        try:
            reply = json.loads(text)
        except ValueError as e:
            raise Broken(f"{conn}: no JSON in a reply: {e}: {text[:300]!r}") from None
        if not isinstance(reply, dict) or not isinstance(reply.get("parameters"), dict):
            raise Broken(f"{conn}: a reply of another form: {text[:300]!r}")
        return reply

    def _take_reply(self, conn, op, reply, fds):
        parameters, error = reply["parameters"], reply.get("error")
        if error:
            self.note(f"    {short(error)}: {parameters.get('reason', '')}", conn.agent, conn)
            if error not in ERRORS:
                raise Broken(f"{op}: an unknown error: {error}")
            if op.strict:
                self._judge(op, short(error), parameters)
            self.unless_wild(op, op.table.refused, self, op, error)
            return
        if op.strict:
            self._judge(op, None, parameters)
        n = (parameters.get("attachment") or parameters).get("descriptors", 0)
        mine, fds[:n] = fds[:n], []
        self.note(f"    done: {json.dumps(parameters)[:160]}", conn.agent, conn)
        op.table.done(self, op, parameters, mine)

    def _judge(self, op, error, parameters):
        if op.prediction is None:
            return
        must, may = op.prediction
        if must and error not in must | may:
            raise Broken(f"{op}: expected one of {sorted(must)}, got {error or 'success'}: "
                         + json.dumps(parameters)[:600])
        if error and error not in must | may:
            raise Broken(f"{op}: refused with {error}: {json.dumps(parameters)[:600]}")

    # --- What methods ask for ---

    def pick_name(self):
        return self.rng.choice(NAMES)

    def pick_size(self):
        rng = self.rng
        if rng.random() < 0.02:
            return 48 << 20
        return rng.choice([1, 100, 4096, 5000, 70000, 1 << 20, 3 << 20, rng.randrange(1, 1 << 22), 1 << 55])

    def pick_segment(self):
        segments = list(self.model.segments.values())
        return self.rng.choice(segments) if segments and self.rng.random() < 0.95 else None

    def pick_id(self):
        """The id of a segment that exists, has ended, or has never been."""
        return self.rng.choice([1, *self.model.segments, *self.model.past])

    def pick_grant(self, p, conn):
        rng = self.rng
        if rng.random() < 0.6:
            p["mode"] = rng.choice([0o600, 0o640, 0o660, 0o644, 0o666, 0o400, 0, 0o060])
        if rng.random() < 0.15:
            p["owner"] = rng.choice(self.users).uid
        if rng.random() < 0.2:
            p["group"] = rng.choice([u.gid for u in self.users] + [65521, 65522])
        if rng.random() < 0.3:
            entries = {}
            for _ in range(rng.randrange(4)):
                kind, number = rng.choice([("user", u.uid) for u in self.users] + [("group", 65521), ("group", 65522)])
                entries[kind, number] = rng.choice(["none", "read", "write"])
            p["acl"] = [{kind: number, "right": right} for (kind, number), right in entries.items()]

    def drop(self, a, fds):
        if a.lives and fds:
            a.do("drop", fds)

    def forget(self, attachment):
        """Removes an attachment that has ended."""
        self.model.attachments.pop(attachment.id, None)
        self.n_forgotten += 1
        if attachment.agent.lives and self.n_forgotten % 3:
            self.drop(attachment.agent, list(attachment.fds.values()))

    def take_presence(self, op, reply, fds):
        """Maps the presence that came with the reply to Claim, and keeps the bell. The daemon
        counts the presence only if the mapping existed before the next request."""
        conn, wanted = op.conn, op.params.get("presence")
        if "presence" in reply:
            conn.agent.do("map_presence", fds[reply["presence"]])
            conn.agent.mapped.add(conn.client)
            conn.presence = "maybe" if conn.ops or op.wild else "held"
        elif wanted == "kept" and not op.wild:
            conn.presence = "maybe" if conn.ops else "held"
        else:
            conn.presence = "none" if not wanted else "maybe"
        if "bell" in reply:
            conn.bell = fds[reply["bell"]]

    def replace_conn(self, old, new):
        """The daemon has closed a connection of a client, because the client claims on another
        one."""
        for s in self.model.segments.values():
            if s.creator is old:
                s.creator = new
        for a in self.model.of_conn(old):
            a.conn = None
            if not a.loose:
                a.state = ENDING
        self.note(f"{old} is replaced by {new}", old.agent, old, new)
        self.model.lose_conn(old)
        for holder in sorted((a for a in old.holders if a.lives), key=lambda a: a.number):
            holder.do("close", old.number)
