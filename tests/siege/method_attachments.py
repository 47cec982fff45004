# SPDX-License-Identifier: Apache-2.0
"""Methods that concern attachments and what comes with them."""

import itertools

import oracle
from method import DENIED, Method, find, need, take_attachment
from model import ENDING, LIVE, MAYBE, NAMED

COUNTER = itertools.count(1)  # of requests


class Claim(Method):
    def plausible(self, siege, conn):
        model, rng = siege.model, siege.rng
        client = conn.client or conn.agent.client
        mine = [a for a in model.of_agent(conn.agent) if a.client == client]
        held = [a.id for a in mine if rng.random() < 0.85]
        if rng.random() < 0.1:
            held.append(rng.choice([0, 1, rng.getrandbits(60)] + list(model.attachments)))
        p = {"client": client, "held": list(dict.fromkeys(held))}
        if rng.random() < 0.85:
            p["presence"] = "kept" if client in conn.agent.mapped and rng.random() < 0.7 else "wanted"
        if model.has_bell and rng.random() < 0.5:
            p["bell"] = True
        return p

    def predict(self, model, op):
        conn = op.conn
        if conn.client and conn.client != op.params["client"]:
            return {DENIED}, set()
        return set(), {DENIED} if conn.loose_client else set()

    @staticmethod
    def _rivals(model, op):
        """Returns the other connections of the client, which the daemon closes."""
        client = op.params.get("client")
        others = [c for c in model.conns if c.agent is op.conn.agent and c is not op.conn]
        return [c for c in others if c.client and c.client == client]

    @staticmethod
    def _parties(model, op):
        """Returns the attachments of the process that this request concerns."""
        client, rivals = op.params.get("client"), Claim._rivals(model, op)
        return [a for a in model.of_agent(op.conn.agent)
                if a.conn in rivals or (a.conn is None and a.client == client)]

    @staticmethod
    def _held(op):
        try:
            return set(op.params["held"])
        except (KeyError, TypeError):
            return set()

    def sent(self, model, op):
        op.before, op.number = {}, next(COUNTER)
        op.conn.agent.numbers.add(str(op.params.get("client")))
        op.was_loose, op.conn.loose_client = op.conn.loose_client, True
        for conn in self._rivals(model, op):
            conn.may_close = True
        self._doubt_others(model, op)
        for a in self._parties(model, op):
            op.before[a.id] = a.state
            a.kept_by = "maybe"  # the request may end the presence, or begin another
            if a.state == LIVE:
                a.state, a.loose = MAYBE, True
        op.created = self._created(model, op)
        for s in op.created:
            s.name_state, s.kept_by = MAYBE, "maybe"

    @staticmethod
    def _doubt_others(model, op):
        """A connection whose client number is unknown may belong to this client: marks it as
        uncertain."""
        for conn in model.conns:
            if conn.agent is op.conn.agent and conn is not op.conn and conn.loose_client:
                conn.may_close = True
                for a in model.of_conn(conn):
                    a.state, a.loose = (MAYBE if a.state == LIVE else a.state), True
                for s in model.segments.values():
                    if s.creator is conn and s.name_state == NAMED:
                        s.name_state, s.kept_by = MAYBE, "maybe"

    def _created(self, model, op):
        """Returns the named segments whose lifetime depends on this client."""
        owners = [(op.conn.agent, op.params.get("client")), *self._rivals(model, op)]
        return [s for s in model.segments.values() if s.creator in owners and s.name_state == NAMED]

    @staticmethod
    def _doubt_all(siege, op, fds):
        """A later Claim was answered first, so it is unknown which of both the daemon carried
        out last. Marks everything of the agent as uncertain."""
        for a in siege.model.of_agent(op.conn.agent):
            a.loose, a.state = True, (MAYBE if a.state == LIVE else a.state)
        for conn in siege.model.conns:
            if conn.agent is op.conn.agent:
                conn.may_close = True
        for s in siege.model.segments.values():
            owner = s.creator[0] if isinstance(s.creator, tuple) else getattr(s.creator, "agent", None)
            if owner is op.conn.agent and s.name_state == NAMED:
                s.name_state, s.kept_by = MAYBE, "maybe"
        siege.drop(op.conn.agent, fds)

    def done(self, siege, op, reply, fds):
        model, conn = siege.model, op.conn
        if op.number < conn.agent.answered.get(op.params["client"], 0):
            self._doubt_all(siege, op, fds)
            return
        conn.agent.answered[op.params["client"]] = op.number
        held, got = self._held(op), set(reply["held"])
        for a in self._parties(model, op):
            if a.id in got:
                need(a.id in held or op.before.get(a.id) != LIVE,
                     f"{conn}: Claim gave attachment {a.id}, which was not asked for")
                a.conn, a.loose, a.state = conn, False, op.before.get(a.id, a.state)
            elif op.before.get(a.id) == LIVE:
                need(a.id not in held, f"{conn}: Claim lost attachment {a.id} of a living client")
                a.conn, a.state = None, ENDING
            # otherwise another connection of the client may have claimed it
        for o in conn.ops:
            if o.method == "io.shmview.Detach":  # of an attachment that this connection has now
                siege.unless_wild(o, o.table.sent, model, o)
        self._check_rest(siege, op, got)
        conn.client, conn.loose_client = op.params["client"], False
        for rival in self._rivals(model, op):
            siege.replace_conn(rival, conn)
        conn.may_close |= any(o.method == op.method and o.conn.agent is conn.agent and o.conn is not conn
                              for o in model.open_ops())
        for s in model.segments.values():
            if s.creator == (conn.agent, conn.client):
                s.creator = conn
            if s.creator is conn and s in op.created and not conn.ops:
                s.name_state = NAMED
        siege.take_presence(op, reply, fds)

    @staticmethod
    def _check_rest(siege, op, got):
        """Checks the attachments in the reply that the client did not have without a connection."""
        model, conn = siege.model, op.conn
        own = {a.id for a in model.of_conn(conn)}
        for i in got - own:
            a = oracle.adopt_attachments(siege, conn, i)
            if not a:
                continue  # a request without a reply made it, and it has gone already
            if a.loose and a.agent is conn.agent:
                a.conn, a.loose = conn, False
            need(a.conn is conn, f"{conn}: Claim gave attachment {i}, which is not this client's")
        for a in model.of_conn(conn):
            need(a.id in got or a.state != LIVE, f"{conn}: the reply to Claim lacks attachment {a.id}")
            if a.id in got and a.state == MAYBE and not conn.ops:
                a.state = LIVE

    def refused(self, siege, op, error):
        if not op.strict:
            return
        op.conn.loose_client = op.was_loose
        for conn in self._rivals(siege.model, op):
            conn.may_close = False
        for a in self._parties(siege.model, op):
            if a.loose and op.before.get(a.id) == LIVE:
                a.state, a.loose = LIVE, False
        for s in op.created:
            s.name_state = NAMED


class Attach(Method):
    def plausible(self, siege, conn):
        rng, segment = siege.rng, siege.pick_segment()
        p = {"name": segment.name if segment else siege.pick_name(),
             "access": rng.choice(["peek", "read", "write", "write"])}
        if rng.random() < 0.3:
            p["id"] = segment.id if segment and rng.random() < 0.8 else siege.pick_id()
        return p

    def predict(self, model, op):
        s, sure, errors = find(model, op)
        if errors:
            return errors
        must, may = set(), set() if sure else {"SegmentNotFound"}
        if not s.access.may_attach(op.who, model.config, op.params["access"]):
            must.add(DENIED)
        if model.excess(op.who.uid, model.config.is_admin(op.who), {"attachments": 1}):
            must.add("QuotaExceeded")
        return must, may

    def done(self, siege, op, reply, fds):
        s = siege.known(reply["segment"])
        need(op.params.get("id") in (None, s.id) and ("id" in op.params or s.name == op.params["name"]),
             f"asked for {op.params}, attached to {s.name} ({s.id})")
        take_attachment(siege, op, s, reply["attachment"], fds, op.params["access"])


class Detach(Method):
    def plausible(self, siege, conn):
        ids = [a.id for a in siege.model.of_conn(conn)]
        others = list(siege.model.attachments)
        if ids and siege.rng.random() < 0.85:
            return {"attachment": siege.rng.choice(ids)}
        return {"attachment": siege.rng.choice(others) if others else siege.rng.randrange(100)}

    @staticmethod
    def _of(model, op):
        i = op.params.get("attachment")
        a = model.attachments.get(i) if isinstance(i, int) else None
        own = a and (a.conn is op.conn or a.loose and a.agent is op.conn.agent)
        return a if own else None

    def predict(self, model, op):
        a = self._of(model, op)
        if not a:
            return {"NotAttached"}, set()
        return set(), set() if a.state == LIVE else {"NotAttached"}

    def sent(self, model, op):
        a = self._of(model, op)
        if a and a.state == LIVE:
            a.state = MAYBE

    def done(self, siege, op, reply, fds):
        a = self._of(siege.model, op)
        known = siege.model.attachments.get(op.params["attachment"])
        if not a and not op.strict and (not known or known.agent is op.conn.agent):
            return  # the reply was read late: another connection has claimed the rest since
        need(a, f"{op.conn} detached an attachment that was not its own: {op.params}")
        siege.forget(a)

    def refused(self, siege, op, error):
        a = self._of(siege.model, op)
        need(not a or op.strict is None or not op.strict or a.state != MAYBE, f"{op}: attachment {a and a.id}: {error}")


class Watch(Method):
    def plausible(self, siege, conn):
        return Detach().plausible(siege, conn)

    def predict(self, model, op):
        must, may = Detach().predict(model, op)
        a = Detach._of(model, op)
        if a and a.slot < 0:
            must = {DENIED}
        return must, may | {"LimitExceeded", "QuotaExceeded"}

    def done(self, siege, op, reply, fds):
        need(len(fds) == reply.get("descriptors", 1), f"{op}: {len(fds)} descriptors came: {reply}")
        siege.drop(op.conn.agent, fds)
