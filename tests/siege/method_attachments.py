# SPDX-License-Identifier: Apache-2.0
"""Methods that concern attachments and what comes with them."""

import oracle
from method import DENIED, FAILED, Method, find, need, take_attachment
from model import ENDING, LIVE, MAYBE


class Claim(Method):
    def plausible(self, siege, conn):
        model, rng = siege.model, siege.rng
        client = conn.client or conn.agent.client
        mine = [a for a in model.of_agent(conn.agent) if a.conn in (None, conn) and a.client == client]
        held = [a.id for a in mine if rng.random() < 0.85]
        if rng.random() < 0.1:
            held.append(rng.choice([0, 1, rng.getrandbits(60)] + list(model.attachments)))
        return {"client": client, "held": [{"attachment": i} for i in dict.fromkeys(held)]}

    @staticmethod
    def _parties(model, op):
        """Attachments of the process without a connection that this request concerns."""
        client = op.params.get("client")
        return [a for a in model.of_agent(op.conn.agent) if a.conn is None and a.client == client]

    def sent(self, model, op):
        op.before = {}
        for a in Claim._parties(model, op):
            op.before[a.id] = a.state
            if a.state == LIVE:
                a.state, a.loose = MAYBE, True

    @staticmethod
    def _held(op):
        try:
            return {h["attachment"] for h in op.params["held"]}
        except (KeyError, TypeError):
            return set()

    def done(self, siege, op, reply, fds):
        model, conn = siege.model, op.conn
        held, got = Claim._held(op), {h["attachment"] for h in reply["held"]}
        for a in Claim._parties(model, op):
            if a.id in got:
                need(a.id in held, f"{conn}: Claim gave attachment {a.id}, which was not asked for")
                a.conn, a.loose = conn, False
                a.state = op.before.get(a.id, a.state)
            elif op.before.get(a.id) == LIVE:
                need(a.id not in held, f"{conn}: Claim lost attachment {a.id} of a living client")
                a.state = ENDING
            # else another connection of the client may have claimed it
        own = {a.id for a in model.of_conn(conn)}
        for i in got - own:
            a = oracle.adopt_attachments(siege, conn, i)
            if not a:
                continue  # made by a request without a reply, and gone already
            if a.loose and a.agent is conn.agent:
                a.conn, a.loose = conn, False
            need(a.conn is conn, f"{conn}: Claim gave attachment {i}, which is not this client's")
        for a in model.of_conn(conn):
            need(a.id in got or a.state != LIVE, f"{conn}: the reply to Claim lacks attachment {a.id}")
            if a.id in got and a.state == MAYBE and not conn.ops:
                a.state = LIVE
        conn.client = op.params["client"]
        for s in model.segments.values():
            if s.creator == (conn.agent, conn.client):
                s.creator = conn
        siege.take_presence(conn, reply, fds)

    def refused(self, siege, op, error):
        for a in Claim._parties(siege.model, op):
            if a.loose and op.before.get(a.id) == LIVE:
                a.state, a.loose = LIVE, False


class Attach(Method):
    def plausible(self, siege, conn):
        rng, segment = siege.rng, siege.pick_segment()
        p = {"name": segment.name if segment else siege.pick_name(),
             "access": rng.choice(["peek", "read", "write", "write"])}
        if rng.random() < 0.3:
            p["id"] = segment.id if segment and rng.random() < 0.8 else rng.randrange(1, 40)
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
        if s.control_spoiled or s.data_spoiled:
            may |= {FAILED, "NoSpace"}
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
