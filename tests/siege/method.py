# SPDX-License-Identifier: Apache-2.0
"""What the methods of the daemon have in common. methods.py has the table of them."""

from model import LIVE, Access, Attachment
from server import Broken

ERRORS = {"io.shmview." + e for e in (
    "SegmentNotFound", "SegmentExists", "NoSpace", "QuotaExceeded", "LimitExceeded", "LayoutNotFound", "LayoutExists",
    "SlotsExhausted", "NotAttached", "InvalidFormat", "MisalignedView", "IllSizedView", "ViewOutOfBounds",
    "ViewOverflow", "Failed")} | {"org.varlink.service." + e for e in (
        "InterfaceNotFound", "MethodNotFound", "MethodNotImplemented", "InvalidParameter", "PermissionDenied",
        "ExpectedMore")}
INVALID, DENIED = "InvalidParameter", "PermissionDenied"
RIGHTS = {"none": 0, "read": 4, "write": 6}


def need(condition, text):
    if not condition:
        raise Broken(text)


def short(error):
    return error.rsplit(".", 1)[-1]


class Method:
    """A request without effect, whose errors the model does not predict."""

    def plausible(self, siege, conn):
        return {}

    def predict(self, model, op):
        """Returns (errors of which one must come, errors that may come); None: any result is
        permitted."""
        return set(), set()

    def changes(self, op, segment):
        """Returns whether the request, while it is under way, may end or change the segment."""
        return False

    def sent(self, model, op):
        """The request is under way: from now on the state of what it concerns is uncertain."""

    def done(self, siege, op, reply, fds):
        """The request succeeded. fds: numbers of the agent's descriptors."""

    def refused(self, siege, op, error):
        """The request was refused: the segment or attachment that was uncertain is as before."""


def acl_of(entries):
    return tuple(("user", e["user"], RIGHTS[e["right"]]) if e.get("user") is not None
                 else ("group", e["group"], RIGHTS[e["right"]]) for e in entries)


def access_of(segment):
    return Access(segment["owner"], segment["group"], segment["mode"], acl_of(segment.get("acl", [])))


def newly_known(model, s):
    """Marks requests that were sent before the reply about its creation: they may concern this
    segment too."""
    for op in model.open_ops():
        if op.method.endswith((".Remove", ".SetAccess", ".DefineLayout", ".Entrust")):
            op.siege.unless_wild(op, op.table.sent, model, op)


def find(model, op):
    """Returns (segment, whether it certainly exists, errors to predict or None)."""
    p, who = op.params, op.who
    if "id" in p:
        s = model.segments.get(p["id"])
        sure = s is None or model.presence_of(s) == LIVE
    else:
        s, sure = model.named(p["name"])
    if s is None:
        return None, sure, (({"SegmentNotFound"}, set()) if sure else (set(), {"SegmentNotFound"} | ERRORS_SHORT))
    own = [a for a in model.of_conn(op.conn) if a.segment is s]
    if not s.access.may_see(who, model.config) and not own:
        return s, sure, ({"SegmentNotFound"}, set())
    return s, sure, None


ERRORS_SHORT = {short(e) for e in ERRORS}


def take_attachment(siege, op, s, got, fds, access):
    """Adds the attachment of a reply to the model, and checks its descriptors."""
    model, who, agent = siege.model, op.who, op.conn.agent
    known = model.attachments.get(got["id"])
    need(not known or known.adopted and known.agent is agent, f"attachment {got['id']} is given twice")
    need(got["access"] == access, f"{op}: access {got['access']}")
    need(len(fds) == got["descriptors"], f"{op}: {len(fds)} descriptors, {got['descriptors']} were announced")
    need(op.method == "io.shmview.Create"
         or model.may_have_attached(s, op, access),
         f"{op}: uid {who.uid} has no right to {access} {s.name}, which is {s.access}")
    a = known or Attachment(got["id"], s, agent, op.conn, op.conn.client, access)
    a.adopted = a.loose = False
    a.conn, a.client = op.conn, op.conn.client
    has_lock = s.lock and access != "peek"
    need(("slot" in got and got["slot"] is not None) == has_lock, f"{op}: slot {got.get('slot')}")
    a.fds["data"] = fds[got["data"]]
    if has_lock:
        a.slot, a.generation = got["slot"], got["generation"]
        a.fds["control"], a.fds["liveness"] = fds[got["control"]], fds[got["liveness"]]
        same = [b for b in model.of_segment(s)
                if b is not a and b.state == LIVE and (b.slot, b.generation) == (a.slot, a.generation)]
        need(not same, f"{op}: slot {a.slot} of {s.name} is given twice")
    siege.check_descriptors(a, op.strict)
    model.attachments[a.id] = a
    siege.check_layouts(s, [layout["name"] for layout in got["layouts"]], op.strict)
