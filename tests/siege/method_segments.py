# SPDX-License-Identifier: Apache-2.0
"""Methods that concern segments."""

from method import DENIED, INVALID, Method, access_of, acl_of, find, need, newly_known, take_attachment
from model import ENDING, LIVE, MAYBE, NAMED, UNNAMED, Access, Segment, pages


class Create(Method):
    def plausible(self, siege, conn):
        rng = siege.rng
        p = {"name": siege.pick_name(), "size": siege.pick_size()}
        access = rng.choice([None, "peek", "read", "write", "write"])
        if access:
            p["access"] = access
        if rng.random() < 0.5:
            p["lifetime"] = rng.choice(["attached", "manual", "creator"] if access else ["manual", "manual", "creator"])
        if rng.random() < 0.2:
            p["lock"] = rng.random() < 0.5
        siege.pick_grant(p, conn)
        return p

    def _access(self, model, op):
        p, who = op.params, op.who
        return Access(p.get("owner", who.uid), p.get("group", who.gid), p.get("mode", model.config.mode),
                      acl_of(p.get("acl", [])))

    def predict(self, model, op):
        p, who, config = op.params, op.who, model.config
        may, must = {"NoSpace"}, set()
        if not config.may_create(who):
            return {DENIED}, may
        if p.get("lifetime") == "attached" and "access" not in p:
            must.add(INVALID)
        found, sure = model.named(p["name"])
        if found:
            must.add("SegmentExists")
        if not sure:
            may.add("SegmentExists")
        access = self._access(model, op)
        is_admin = config.is_admin(who)
        default = Access(who.uid, who.gid, config.mode)
        if not default.may_become(access, who, config):
            must.add(DENIED)
        pays = access.owner == 0 or (access.owner == who.uid and is_admin)
        if model.excess(access.owner, pays, {"segments": 1, "bytes": pages(p["size"])}):
            must.add("QuotaExceeded")
        if "access" in p and model.excess(who.uid, is_admin, {"attachments": 1}):
            must.add("QuotaExceeded")
        if p["size"] > 1 << 35:
            must |= {"NoSpace", "QuotaExceeded"}
        return must, may

    def done(self, siege, op, reply, fds):
        model, p, who = siege.model, op.params, op.who
        got, access = reply["segment"], self._access(model, op)
        lifetime = p.get("lifetime") or ("attached" if p.get("access") else "manual")
        need(model.config.may_create(who) or op.old_config.may_create(who), f"uid {who.uid} may not create")
        known = model.segments.get(got["id"])
        need(not known or known.adopted, f"id {got['id']} is given twice")
        need(got["name"] == p["name"] and got["size"] == p["size"] and got["lifetime"] == lifetime
             and got["lock"] == p.get("lock", True) and got["owner"] == access.owner and got["group"] == access.group,
             f"not what was asked for: {got}")
        access = access_of(got)
        need(Access(who.uid, who.gid, 0).may_become(access, who, model.config) or model.config != op.old_config,
             f"uid {who.uid} may not give a segment to {access}")
        s = known or Segment(got["id"], p["name"], p["size"], p.get("lock", True), lifetime, access)
        s.adopted = False
        model.segments[s.id] = s
        newly_known(model, s)
        if op.removed and s.name_state == NAMED:
            s.name_state = MAYBE
        if lifetime == "creator":
            s.creator, s.client = op.conn, op.conn.client
        if "attachment" in reply and reply["attachment"]:
            take_attachment(siege, op, s, reply["attachment"], fds, p["access"])


class Remove(Method):
    def plausible(self, siege, conn):
        segment = siege.pick_segment()
        return {"name": segment.name if segment and siege.rng.random() < 0.9 else siege.pick_name()}

    def predict(self, model, op):
        s, sure, errors = find(model, op)
        if errors:
            return errors
        must = set() if s.access.manages(op.who, model.config) else {DENIED}
        return must, set() if sure else {"SegmentNotFound"}

    def changes(self, op, segment):
        return op.params.get("name") == segment.name

    def sent(self, model, op):
        for s in model.segments.values():
            may = not op.strict or s.access.manages(op.who, model.config)  # others may change that first
            if self.changes(op, s) and s.name_state == NAMED and may:
                s.name_state = MAYBE

    def done(self, siege, op, reply, fds):
        model = siege.model
        named = [s for s in model.segments.values() if s.name == op.params["name"] and s.name_state != UNNAMED]
        made = [o.params.get("name") for o in model.open_ops() if o.method == "io.shmview.Create"]
        for o in model.open_ops():
            o.removed |= o.method == "io.shmview.Create" and o.params.get("name") == op.params["name"]
        if not named and op.params["name"] in made + [s.name for s in model.past.values()]:
            return  # it had gone before any reply named it, or before this reply was read
        need(named, f"{op}: removed what is not there")
        need(any(s.access.manages(op.who, c) for s in named for c in (model.config, op.old_config))
             or any(s.access_maybe for s in named) or op.params["name"] in made,
             f"{op}: uid {op.who.uid} may not remove it")
        for s in named:
            s.name_state = UNNAMED if op.strict else MAYBE

    def refused(self, siege, op, error):
        for s in siege.model.segments.values():
            if self.changes(op, s) and s.name_state == MAYBE and op.strict:
                s.name_state = NAMED


class Entrust(Method):
    def plausible(self, siege, conn):
        rng, model = siege.rng, siege.model
        own = [s.name for s in model.segments.values() if s.creator is conn]
        agents = [conn.agent] + ([conn.agent.parent] if conn.agent.parent else []) + siege.living()
        return {"name": rng.choice(own) if own and rng.random() < 0.9 else siege.pick_name(),
                "pid": rng.choice(agents).pid if rng.random() < 0.9 else rng.randrange(1, 1 << 22)}

    @staticmethod
    def _of(model, op):
        return next((s for s in model.segments.values() if s.name == op.params["name"] and s.creator is op.conn), None)

    def predict(self, model, op):
        s = self._of(model, op)
        if not s:
            return {DENIED, "SegmentNotFound"}, set()
        _, _, errors = find(model, op)
        if errors:  # it now belongs to another owner
            return errors
        agent = op.conn.agent
        while agent and agent.pid != op.params["pid"]:
            agent = agent.parent
        if not agent or not agent.lives:
            return {DENIED}, set()
        return set(), {DENIED}  # an ancestor has replaced its program, or the chain of ancestors is cut

    def sent(self, model, op):
        s = self._of(model, op)
        if s and not op.strict:
            heir = next((a for a in op.siege.agents if a.pid == op.params.get("pid")), None)
            s.entrusted = heir if heir and heir.who.uid == op.who.uid else s.entrusted

    def done(self, siege, op, reply, fds):
        s = self._of(siege.model, op)
        if not s and not op.strict:
            return
        need(s, f"{op}: entrusted what it did not create")
        s.creator = next((a for a in siege.agents if a.pid == op.params["pid"]), None)
        need(s.creator and s.creator.who.uid == op.who.uid, f"{op}: entrusted to a process of another user")
        if s.creator.gone:
            s.name_state = ENDING


class SetAccess(Method):
    def plausible(self, siege, conn):
        s = siege.pick_segment()
        p = {"name": s.name if s else siege.pick_name()}
        if s and siege.rng.random() < 0.2:
            p["id"] = s.id
        siege.pick_grant(p, conn)
        return p

    @staticmethod
    def _new(op, old):
        p = op.params
        if any(type(p.get(what, 0)) is not int for what in ("owner", "group", "mode")):
            raise TypeError  # only in a distorted request, which the daemon must refuse
        return Access(p.get("owner", old.owner), p.get("group", old.group), p.get("mode", old.mode),
                      acl_of(p["acl"]) if "acl" in p else old.acl)

    def predict(self, model, op):
        s, sure, errors = find(model, op)
        if errors:
            return errors
        may = set() if sure else {"SegmentNotFound"}
        if not s.access.manages(op.who, model.config):
            return {DENIED}, may
        new, must = self._new(op, s.access), set()
        if not s.access.may_become(new, op.who, model.config):
            must.add(DENIED)
        if new.owner != s.access.owner:
            pays = new.owner == 0 or (new.owner == op.who.uid and model.config.is_admin(op.who))
            if model.excess(new.owner, pays, {"segments": 1, "bytes": pages(s.size)}):
                may.add("QuotaExceeded")
        return must, may

    def _targets(self, model, op):
        p = op.params
        if "id" in p:
            return [s for s in model.segments.values() if s.id == p["id"]]
        return [s for s in model.segments.values() if s.name == p.get("name") and s.name_state != UNNAMED]

    def sent(self, model, op):
        for s in self._targets(model, op):
            options = [s.access] + s.access_maybe
            s.had |= set(options)
            s.access_maybe = list(dict.fromkeys(options + [self._new(op, x) for x in options]))

    def done(self, siege, op, reply, fds):
        s = siege.known(reply["segment"])
        need(s.id == op.params["id"] if "id" in op.params else s.name == op.params["name"],
             f"{op}: changed something else: {reply}")
        configs = siege.model.config, op.old_config
        need(any(a.manages(op.who, c) for a in [s.access] + s.access_maybe for c in configs),
             f"{op}: uid {op.who.uid} may not change it")
        new = access_of(reply["segment"])
        need(any(a.may_become(new, op.who, c) for a in [s.access] + s.access_maybe for c in configs),
             f"{op}: uid {op.who.uid} may not make it {new}")
        if op.strict:
            s.access, s.access_maybe = new, []
        else:  # others may have changed it since
            s.access_maybe = list(dict.fromkeys(s.access_maybe + [s.access, new]))

    def refused(self, siege, op, error):
        if op.strict:
            for s in self._targets(siege.model, op):
                s.access_maybe = []


class List(Method):
    def done(self, siege, op, reply, fds):
        if "next" not in reply:  # otherwise it is not the last reply
            siege.check_visible(op, {s["id"]: s for s in reply["segments"]})


class Describe(Method):
    def plausible(self, siege, conn):
        s = siege.pick_segment()
        p = {"name": s.name if s else siege.pick_name()}
        if s and siege.rng.random() < 0.2:
            p["id"] = s.id
        return p

    def predict(self, model, op):
        _, sure, errors = find(model, op)
        return errors or (set(), set() if sure else {"SegmentNotFound"})

    def done(self, siege, op, reply, fds):
        s = siege.known(reply["segment"])
        siege.check_may_see(op, s)
        siege.check_layouts(s, [layout["name"] for layout in reply["layouts"]], op.strict)


class DefineLayout(Method):
    has_effect = True
    errors = {"InvalidFormat", "MisalignedView", "IllSizedView", "ViewOutOfBounds", "ViewOverflow"}

    def plausible(self, siege, conn):
        rng = siege.rng
        own = [a for a in siege.model.of_conn(conn) if a.access == "write"]
        s = rng.choice(own).segment if own and rng.random() < 0.9 else siege.pick_segment()
        item, size = rng.choice([("B", 1), ("f", 4), ("d", 8), ("<i", 4), ("T{<i:a:<f:b:}", 8)])
        n = max((s.size if s else 100) // size, 1)
        views = [{"name": f"v{i}", "format": item, "shape": [rng.randint(1, n)]} for i in range(rng.choice([1, 1, 3]))]
        p = {"name": s.name if s else siege.pick_name(), "layout": {"name": f"l{rng.randrange(12)}", "views": views}}
        if s:
            p["id"] = s.id
        return p

    def predict(self, model, op):
        s, sure, errors = find(model, op)
        if errors:
            return errors
        must, may = set(), set(self.errors) | (set() if sure else {"SegmentNotFound"})
        own = [a for a in model.of_conn(op.conn) if a.segment is s and a.access == "write"]
        if not s.access.may_attach(op.who, model.config, "write") or not own:
            must.add(DENIED)
        elif any(a.state != LIVE for a in own):
            may.add(DENIED)
        if op.params["layout"]["name"] in s.layouts:
            must.add("LayoutExists")
        if len(s.layouts) >= 64:
            must.add("LimitExceeded")
        return must, may

    @staticmethod
    def _targets(model, op):
        if "id" in op.params:
            return [s for s in model.segments.values() if s.id == op.params["id"]]
        return [s for s in model.segments.values() if s.name == op.params.get("name") and s.name_state != UNNAMED]

    def sent(self, model, op):
        layout = op.params.get("layout")
        if isinstance(layout, dict):
            for s in self._targets(model, op):
                if layout.get("name") not in s.layouts:
                    s.layouts_maybe.add(layout.get("name"))

    def done(self, siege, op, reply, fds):
        name = op.params["layout"]["name"]
        targets = self._targets(siege.model, op)
        for s in targets:
            if name in s.layouts:
                continue
            if len(targets) == 1 and (op.strict or "id" in op.params):
                s.layouts_maybe.discard(name)
                s.layouts.append(name)
            else:  # another segment may have had the name
                s.layouts_maybe.add(name)

    def refused(self, siege, op, error):
        if op.strict:
            for s in self._targets(siege.model, op):
                s.layouts_maybe.clear()
