# SPDX-License-Identifier: Apache-2.0
"""Compares the daemon's state with the model's, until they agree or a bound has passed."""

import os
import signal
import struct
import time

import method
from model import ENDING, LIVE, MAYBE, NAMED, UNNAMED, Attachment, Segment
from server import DEAD, GENERATIONS_AT, SLOTS, Broken

SETTLE_S = 30
MOST_TOLD = 64  # attachments of one segment that Stats lists


def settle(siege):
    """Waits until every consequence has occurred, and checks that nothing else has."""
    if siege.server.stopped or not siege.server.pid:
        return
    until = time.monotonic() + SETTLE_S
    pause = 0.001
    while True:
        siege.server.check()
        looked, instance = siege.auditor.look()
        waits = compare(siege, looked, instance)
        if not waits:
            waits = compare_objects(siege, looked) + compare_sizes(siege)
        if not waits:
            break
        if time.monotonic() > until:
            raise Broken(f"after {SETTLE_S} s still: " + "; ".join(waits[:8]))
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    adopt(siege, looked)


# --- Segments and attachments ---------------------------------------------------------------


def compare(siege, looked, instance):
    """Raises Broken if the state is impossible. Returns what must still occur."""
    model, waits = siege.model, []
    for i, told in looked.items():
        if i not in model.segments:
            adopt_segment(siege, told)
        s = model.segments[i]
        compare_segment(model, s, told, waits)
        for t in told["attached"]:
            compare_attachment(siege, s, t, waits)
        if told["attachments"] != len(told["attached"]) and told["attachments"] < MOST_TOLD:
            raise Broken(f"{s.name}: {told['attachments']} attachments, {len(told['attached'])} are told")
    here = {t["attachment"] for told in looked.values() for t in told["attached"]}
    for a in list(model.attachments.values()):
        if a.id not in here and a.segment.id in looked and looked[a.segment.id]["attachments"] > MOST_TOLD:
            continue
        if a.id not in here:
            gone_attachment(siege, a)
    for s in list(model.segments.values()):
        if s.id not in looked:
            gone_segment(siege, s)
    for name in list(model.declared):
        if any(told["name"] == name and told["named"] for told in looked.values()):
            del model.declared[name]
        elif model.declared[name]["sure"]:
            waits.append(f"declared segment {name} is not there")
    if not waits:
        compare_totals(siege, instance, waits)
    return waits


def compare_segment(model, s, told, waits):
    for what, value in (("name", s.name), ("size", s.size), ("lock", s.lock), ("lifetime", s.lifetime)):
        if told[what] != value:
            raise Broken(f"segment {s.id} has {what} {told[what]} instead of {value}")
    options = [s.access] + s.access_maybe
    if not any((x.owner, x.group, x.mode) == (told["owner"], told["group"], told["mode"]) for x in options):
        raise Broken(f"{s.name}: owner {told['owner']}, group {told['group']}, mode {told['mode']:o}: not {s.access}")
    if s.name_state == NAMED and not told["named"]:
        raise Broken(f"{s.name} ({s.id}) has lost its name")
    if s.name_state == UNNAMED and told["named"]:
        raise Broken(f"{s.name} ({s.id}) was removed and has its name again")
    if s.name_state == ENDING:
        if told["named"]:
            waits.append(f"{s.name} ({s.id}) has its name, but its creator has ended")
        else:
            s.name_state = UNNAMED
    if model.presence_of(s) == ENDING:
        waits.append(f"{s.name} ({s.id}) is there, {s.lifetime}, {s.name_state}, with nobody attached")


def compare_attachment(siege, s, told, waits):
    model = siege.model
    a = model.attachments.get(told["attachment"])
    if not a:
        a = adopt_attachment(siege, s, told)
    party = told["pid"], told.get("uid")
    if a.segment is not s or a.access != told["access"] or party != (a.agent.pid, a.agent.who.uid):
        raise Broken(f"attachment {a.id} of {a.agent} (pid {a.agent.pid}) to {a.segment.name} is told as {told}")
    if a.state == ENDING:
        waits.append(f"attachment {a.id} of {a.agent} to {s.name} is there, but has ended")


def gone_attachment(siege, a):
    if a.state == LIVE and not (a.conn and a.conn.may_close):
        raise Broken(f"attachment {a.id} of {a.agent} (connection {a.conn}) to {a.segment.name} is gone")
    if a.state != MAYBE or quiet(siege.model):
        siege.forget(a)


def gone_segment(siege, s):
    if siege.model.presence_of(s) == LIVE:
        raise Broken(f"{s.name} ({s.id}), {s.lifetime}, {s.name_state}, is gone")
    for a in siege.model.of_segment(s):
        siege.forget(a)
    siege.note(f"{s.name} ({s.id}) is gone", s.name)
    siege.model.past[s.id] = siege.model.segments.pop(s.id)


def quiet(model):
    """Returns whether no request is under way: the daemon has read all of them, or they are
    lost."""
    return not any(c.ops for c in model.conns)


# --- Without a reply ---------------------------------------------------------------------


def candidates(model, names):
    return [op for op in model.open_ops() if op.method in names]


def adopt_segment(siege, told):
    """Adds a segment that the model does not know. A request without a reply has created it, or
    the configuration declares it. Otherwise raises Broken."""
    model = siege.model
    s = Segment(told["id"], told["name"], told["size"], told["lock"], told["lifetime"], method.access_of(told))
    for op in candidates(model, ("io.shmview.Create",)):
        p = op.params
        if (p.get("name"), p.get("size"), p.get("lock", True)) == (s.name, s.size, s.lock):
            if not any(c.may_create(op.who) for c in (model.config, op.old_config)):
                raise Broken(f"{op}: uid {op.who.uid} may not create")
            if s.lifetime == "creator":
                s.client = op.conn.client
                s.creator = op.conn if op.conn.open else (op.conn.agent, s.client)
                s.name_state = NAMED if op.conn.open else ENDING if op.conn.agent.gone else MAYBE
            if op.conn.open is False and s.name_state == NAMED:
                s.name_state = MAYBE
            break
    else:
        if s.name not in model.declared:
            raise Broken(f"a segment that nobody asked for: {told}")
        siege.check_declared(s, told)
    siege.note(f"{s.name} ({s.id}) was created", s.name)
    now = siege.auditor.call("Describe", {"name": s.name, "id": s.id}, may_fail=True)
    if now:
        s.access = method.access_of(now["segment"])
        s.access_maybe = [method.access_of(told)]
        s.layouts = [layout["name"] for layout in now["layouts"]]
    if "named" not in told or not told["named"]:
        s.name_state = UNNAMED if "named" in told else MAYBE
    s.adopted = s.late = True
    model.segments[s.id] = s
    method.newly_known(model, s)
    return s


def adopt_attachment(siege, s, told):
    """Like adopt_segment(), but for an attachment. If two requests explain it, its connection is
    unknown."""
    model = siege.model
    ops = [op for op in candidates(model, ("io.shmview.Create", "io.shmview.Attach")) if may_have_made(op, s, told)]
    if not ops:
        raise Broken(f"an attachment to {s.name} that nobody asked for: {told}")
    op = ops[0]
    if op.method == "io.shmview.Attach" and not model.may_have_attached(s, op, told["access"]):
        raise Broken(f"{op}: uid {op.who.uid} has no right to {s.name}, which is {s.access}")
    a = Attachment(told["attachment"], s, op.conn.agent, op.conn if op.conn.open else None, op.conn.client,
                   told["access"], adopted=True)
    if told.get("slot") is not None:
        a.slot = told["slot"]
    if op.client != op.conn.client:
        a.client = 0
    if any(o.conn is not op.conn for o in ops) or not (a.client or op.conn.open):
        a.conn, a.loose, a.state, a.client = None, True, MAYBE, 0
    elif not op.conn.open:
        a.state = ENDING if op.conn.agent.gone else MAYBE
    elif op.conn.ops:
        a.state = MAYBE
    model.attachments[a.id] = a
    return a


def may_have_made(op, s, told):
    p = op.params
    if op.conn.agent.pid != told["pid"] or p.get("access") != told["access"]:
        return False
    return p["id"] == s.id if "id" in p and op.method == "io.shmview.Attach" else p.get("name") == s.name


def adopt_attachments(siege, conn, wanted):
    """Returns the attachment with that id, which only the reply to Claim has named."""
    for told in siege.auditor.look()[0].values():
        for t in told["attached"]:
            if t["attachment"] == wanted and wanted not in siege.model.attachments:
                adopt_attachment(siege, siege.known(told), t)
    found = siege.model.attachments.get(wanted)
    ops = candidates(siege.model, ("io.shmview.Create", "io.shmview.Attach"))
    if not found and not any(op.conn is conn for op in ops):
        raise Broken(f"{conn}: Claim tells of attachment {wanted}, which it cannot have")
    return found


def adopt(siege, looked):
    """Replaces every uncertainty by the daemon's state. No request may be under way."""
    model = siege.model
    if not quiet(model):
        return
    model.unresolved.clear()
    model.declared.clear()
    model.lag = False
    for a in model.attachments.values():
        if a.state == MAYBE and not a.loose and a.conn:
            a.state = LIVE
    for s in model.segments.values():
        doubtful = s.access_maybe or s.layouts_maybe
        if s.name_state == MAYBE:
            kept = s.creator in model.conns and not s.creator.may_close
            sure = s.lifetime != "creator" or (kept and not s.entrusted)
            s.name_state = UNNAMED if not looked[s.id]["named"] else NAMED if sure else MAYBE
        if doubtful:
            told = siege.auditor.call("Describe", {"name": s.name, "id": s.id})
            s.access, s.access_maybe = method.access_of(told["segment"]), []
            siege.check_layouts(s, [layout["name"] for layout in told["layouts"]])
            s.layouts, s.layouts_maybe = [layout["name"] for layout in told["layouts"]], set()


# --- Figures --------------------------------------------------------------------------------


def compare_totals(siege, instance, waits):
    model = siege.model
    used = model.used(None)
    told = {q["what"]: q["total_used"] for q in instance["quotas"]}
    told["connections"] = instance["connections"]
    if not quiet(model):
        return
    closed = sum(c.may_close for c in model.conns)
    told["charged connections"] = next(q["total_used"] for q in instance["quotas"] if q["what"] == "connections")
    used["charged connections"] = used["connections"]
    for what, n in used.items():
        least = n - closed if "connections" in what else n
        if not least <= told[what] <= n:
            waits.append(f"{told[what]} {what}, and there are {n}")


def check_users(siege):
    """Asks as each user what that user is charged for. Valid only when everything has settled."""
    if not siege.model.settled():
        return
    asked = set()
    for conn in siege.conns():
        who = conn.agent.who
        if who.uid in asked:
            continue
        asked.add(who.uid)
        op = siege.make_op(conn, "io.shmview.Stats", wild=False)
        op.raw = op.params = {}
        op.oneway = False
        siege.launch(op)
        siege.figures = None
        siege.exchange(conn, [op], [op.data()])
        if not siege.figures:
            continue  # another connection of the client has ended this one
        told = {q["what"]: q["used"] for q in siege.figures["quotas"]}
        used = siege.model.used(who.uid)
        for what, n in used.items():
            if told[what] != n and not (what == "connections" and any(c.may_close for c in siege.model.conns)):
                raise Broken(f"uid {who.uid} is charged for {told[what]} {what}, and has {n}")


# --- Objects --------------------------------------------------------------------------------


def compare_objects(siege, looked):
    """Checks that /dev/shm holds what segments need and nothing else, and that a slot is alive
    exactly if its holder is."""
    model, waits = siege.model, []
    if not quiet(model):
        return waits
    objects = siege.server.objects()
    kinds = {"control": set(), "liveness": set()}
    for o in objects:
        if o.segment is not None:
            kinds[o.kind].add(o.segment)
    locks = {s.id for s in model.segments.values() if s.lock}
    spoiled = any(s.control_spoiled for s in model.segments.values())
    for kind, ids in kinds.items():
        if ids - locks and not (spoiled and kind == "control"):
            waits.append(f"{kind} objects of no segment: {ids - locks}")
        if locks - ids and not (spoiled and kind == "control"):
            if any(model.presence_of(model.segments[i]) == LIVE for i in locks - ids):
                raise Broken(f"segments without their {kind} object: {locks - ids}")
            waits.append(f"segments without their {kind} object: {locks - ids}")
    if not spoiled:
        others = sum(o.kind == "other" for o in objects) - len(looked) - siege.own_objects
        if others:
            waits.append(f"{others} objects of no segment: " + " ".join(o.path for o in objects))
    presences = sum(o.kind == "presence" for o in objects)
    if presences > len(siege.claimants()):
        waits.append(f"{presences} presence files of {len(siege.claimants())} clients")
    for o in objects:
        if o.kind == "liveness" and o.segment in locks:
            compare_slots(siege, model.segments[o.segment], o.path, waits)
    return waits


def compare_sizes(siege):
    """Checks that the daemon restores the size of a data object that a client has truncated or
    enlarged."""
    waits = []
    for a in siege.model.attachments.values():
        s = a.segment
        if s.data_spoiled and a.agent.lives and a.fds:
            size = a.agent.do("size", a.fds["data"])
            if size == s.size:
                s.data_spoiled = False
            else:
                waits.append(f"the data of {s.name} has {size} bytes, and had {s.size}")
    return waits


def compare_slots(siege, s, path, waits):
    try:
        f = open(path, "rb")
    except FileNotFoundError:
        waits.append(f"the liveness object of {s.name} goes")
        return
    with f:
        f.seek(GENERATIONS_AT)
        words = struct.unpack(f"={SLOTS}I", f.read(4 * SLOTS).ljust(4 * SLOTS, b"\0"))
    alive = {i: w for i, w in enumerate(words) if w and not w & DEAD}
    own = [a for a in siege.model.of_segment(s) if a.slot >= 0]
    for a in own:
        if a.state == LIVE and a.slot not in alive:
            raise Broken(f"slot {a.slot} of {s.name}, of the living {a.agent}, is dead")
        if a.state == LIVE and a.generation and alive[a.slot] != a.generation:
            raise Broken(f"slot {a.slot} of {s.name} has generation {alive[a.slot]}, {a.agent} has {a.generation}")
    extra = set(alive) - {a.slot for a in own}
    if extra and any(a.state == LIVE for a in own):
        waits.append(f"slots {sorted(extra)} of {s.name} are alive, and nobody has them")


# --- The end --------------------------------------------------------------------------------


def finish(siege):
    """Ends all clients. Then nothing may be left, and the daemon must exit in order."""
    server, model = siege.server, siege.model
    server.resume()
    if not server.pid:
        siege.start_daemon()
    for a in reversed(siege.agents):
        if not a.gone:
            siege.end_agent(a)
    settle(siege)
    for s in list(model.segments.values()):
        if s.name_state == NAMED:
            siege.auditor.call("Remove", {"name": s.name})
            s.name_state = UNNAMED
    settle(siege)
    if model.segments or model.attachments:
        raise Broken(f"{len(model.segments)} segments and {len(model.attachments)} attachments are left")
    await_descriptors(siege)
    siege.auditor.close()
    server.end(signal.SIGINT)
    left = server.objects()
    if left:
        raise Broken("the daemon has left " + " ".join(o.path for o in left))
    if os.path.exists(server.socket):
        raise Broken("the daemon has left its socket")


def start_over(siege):
    """After the daemon may have lost anything: ends all clients and removes all segments. Then
    nothing may be left."""
    model = siege.model
    for a in reversed(siege.agents):
        if not a.gone:
            siege.end_agent(a)
    until = time.monotonic() + SETTLE_S
    while True:
        siege.server.check()
        looked, instance = siege.auditor.look()
        for told in looked.values():
            if told["named"]:
                siege.auditor.call("Remove", {"name": told["name"]}, may_fail=True)
        used = {q["what"]: q["total_used"] for q in instance["quotas"]}
        others = len(siege.server.objects()) - siege.own_objects
        nothing = {"bytes": 0, "segments": 0, "attachments": 0, "connections": len(model.bystanders),
                   "layout_bytes": 0}
        if used == nothing and not looked and not others:
            break
        if time.monotonic() > until:
            raise Broken(f"after {SETTLE_S} s without clients there are {looked} and {others} objects; "
                         f"charged are {used}")
        time.sleep(0.005)
    siege.agents.clear()
    siege.seen.clear()
    model.forget_all()


def await_descriptors(siege):
    until = time.monotonic() + SETTLE_S
    while siege.server.descriptors() > siege.baseline:
        if time.monotonic() > until:
            raise Broken(f"the daemon has {siege.server.descriptors()} descriptors, "
                         f"and had {siege.baseline} at first:\n" + siege.server.list_descriptors())
        time.sleep(0.01)
