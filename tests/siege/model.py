# SPDX-License-Identifier: Apache-2.0
"""The state that the daemon should have: segments, attachments, connections and rights.

States of an attachment:

  LIVE    acknowledged and nothing has ended it: it must be there at every look
  MAYBE   a request about it was not answered, or its end is not promised: it may be there
  ENDING  its end was acknowledged or caused: it must be gone in a bounded time

A segment's name has a similar state; whether a segment is there follows from its name, its
lifetime and its attachments.
"""

from dataclasses import dataclass, field

LIVE, MAYBE, ENDING = "live", "maybe", "ending"
NAMED, UNNAMED = "named", "unnamed"
READ, WRITE = 4, 2
UNLIMITED = 1 << 62
PAGE = 4096


def pages(size):
    return (size + PAGE - 1) // PAGE * PAGE


@dataclass(frozen=True)
class Who:
    """A user as the kernel describes the peer of a connection."""

    uid: int
    gid: int
    groups: tuple = ()

    def is_in(self, group):
        return group == self.gid or group in self.groups


@dataclass
class Config:
    """A configuration of the daemon; as_json() is its file."""

    serial: int = 0  # quotas.total.connections, which shows whether this configuration is in force
    user: dict = field(default_factory=dict)
    total: dict = field(default_factory=dict)
    create: list = field(default_factory=lambda: ["*"])
    mode: int = 0o600
    admin_group: int = -1
    segments: list = field(default_factory=list)

    def as_json(self):
        total = dict(self.total, connections=100000 + self.serial)
        what = {"quotas": {"user": self.user, "total": total}, "create": self.create,
                "defaults": {"mode": f"{self.mode:04o}"}, "segments": self.segments}
        if self.admin_group >= 0:
            what["admin_group"] = str(self.admin_group)
        return what

    def is_admin(self, who):
        return who.uid == 0 or (self.admin_group >= 0 and who.is_in(self.admin_group))

    def may_create(self, who):
        if "*" in self.create or self.is_admin(who):
            return True
        return any(entry == f"user:{who.uid}" or (entry.startswith("group:") and who.is_in(int(entry[6:])))
                   for entry in self.create)

    def limit(self, what, is_admin):
        """Returns (limit of one user, limit of all together)."""
        total = 100000 + self.serial if what == "connections" else self.total.get(what, UNLIMITED)
        return UNLIMITED if is_admin else self.user.get(what, UNLIMITED), total


@dataclass(frozen=True)
class Access:
    """Who may use a segment. acl: tuples ("user" or "group", number, rights)."""

    owner: int
    group: int
    mode: int
    acl: tuple = ()

    def rights(self, who, config):
        perms = self._perms(who, config)
        return perms if perms & READ else 0

    def _perms(self, who, config):
        if config.is_admin(who):
            return READ | WRITE
        if who.uid == self.owner:
            return self.mode >> 6 & 6
        for kind, number, perms in self.acl:
            if kind == "user" and number == who.uid:
                return perms
        groups = [perms for kind, number, perms in self.acl if kind == "group" and who.is_in(number)]
        if who.is_in(self.group):
            groups.append(self.mode >> 3 & 6)
        if groups:
            return max(groups) if len(groups) == 1 else self._or(groups)
        return self.mode & 6

    @staticmethod
    def _or(all_perms):
        perms = 0
        for p in all_perms:
            perms |= p
        return perms

    def manages(self, who, config):
        return config.is_admin(who) or who.uid == self.owner

    def may_see(self, who, config):
        return self.manages(who, config) or self.rights(who, config) != 0

    def may_attach(self, who, config, access):
        need = READ | WRITE if access == "write" else READ
        return self.rights(who, config) & need == need

    def may_become(self, other, who, config):
        """Returns whether who may replace this access by other."""
        if config.is_admin(who):
            return True
        return who.uid == self.owner == other.owner and (other.group == self.group or who.is_in(other.group))


@dataclass(eq=False)
class Segment:
    id: int
    name: str
    size: int
    lock: bool
    lifetime: str
    access: Access
    name_state: str = NAMED  # NAMED, UNNAMED, MAYBE, ENDING
    creator: object = None  # a Conn, an (agent, client) of a lost connection, or an Agent to which it was entrusted
    entrusted: object = None  # an Agent to which a request without a reply may have entrusted it
    client: int = 0  # the client number that the creator had claimed by then
    layouts: list = field(default_factory=list)
    layouts_maybe: set = field(default_factory=set)
    access_maybe: list = field(default_factory=list)
    bytes: object = None  # the first bytes of its data, as they were written
    data_spoiled: bool = False  # a client has truncated or enlarged the data object
    control_spoiled: bool = False  # a client has written to the control object, or changed its size
    had: set = field(default_factory=set)  # all accesses that it may have had
    late: bool = False  # its first access is unknown, because the reply to its creation is missing
    adopted: bool = False  # known from replies to others; its creator has no reply yet
    kept_by: str = "none"  # the presence of the creator when its connection was lost


@dataclass(eq=False)
class Attachment:
    id: int
    segment: Segment
    agent: object
    conn: object  # None: the process has it without a connection
    client: int
    access: str
    slot: int = -1
    generation: int = 0
    fds: dict = field(default_factory=dict)  # "data", "control", "liveness": numbers of the agent
    watch: int = 0
    state: str = LIVE
    loose: bool = False  # its connection and the client number are unknown
    adopted: bool = False  # known from replies to others; its own reply was not read yet
    kept_by: str = "none"  # the presence when its connection was lost


class Conn:
    """A connection as both sides should see it."""

    def __init__(self, agent, number):
        self.agent = agent
        self.number = number
        self.client = 0
        self.presence = "none"  # of its client: "held" while the process lives, "none", "maybe"
        self.loose_client = False  # a Claim has no reply yet
        self.may_close = False  # another connection of the client has a Claim under way, which ends this one
        self.holders = {agent}  # processes that have its socket
        self.open = True  # the daemon has not closed it, as far as is known
        self.ops = []  # requests without a reply
        self.unread = False  # there may be unread replies
        self.half_sent = False  # the last request was cut, so that nothing can follow it
        self.monitors = False
        self.half = False  # the client has shut down its side
        self.bell = 0
        self.doubtful = False  # the daemon may have refused it

    def __str__(self):
        return f"{self.agent}.{self.number}"

    def kept_by(self, client):
        """Returns what is known of the presence that keeps what was made under that client
        number."""
        if self.may_close or self.loose_client:
            return "maybe"  # a Claim without a reply may have ended the presence, or begun another
        return self.presence if client == self.client else "none"

    def fate(self, client, daemon_died):
        """Returns the state of what was made under that client number, after the connection has
        ended."""
        if not self.agent.lives:
            return ENDING
        if self.loose_client or self.may_close or (client != self.client and (daemon_died or self.presence != "none")):
            return MAYBE
        if daemon_died:
            return MAYBE if not client or self.presence == "maybe" else LIVE
        return {"held": LIVE, "maybe": MAYBE, "none": ENDING}[self.presence]


class Model:
    def __init__(self):
        self.config = Config()
        self.segments = {}
        self.past = {}  # segments that have ended
        self.attachments = {}
        self.conns = []
        self.unresolved = []  # requests that were sent, and may or may not have been carried out
        self.bystanders = []  # the uids of the driver's own connections
        self.has_bell = False  # what Claim offers
        self.lag = False  # something has ended, and the daemon may not have noticed it yet
        self.declared = {}  # names that the configuration declares and that the daemon may create now

    def forget_all(self):
        for what in (self.segments, self.past, self.attachments, self.conns, self.unresolved, self.declared):
            what.clear()
        self.lag = False

    # --- Finding ---

    def named(self, name):
        """Returns (segment or None, whether that is certain)."""
        doubt = any(op.method == "io.shmview.Create" and op.params.get("name") == name for op in self.open_ops())
        found = None
        for s in self.segments.values():
            if s.name != name or s.name_state == UNNAMED:
                continue
            if s.name_state == NAMED and self.presence_of(s) == LIVE:
                found = s
            else:
                doubt = True
        return found, not doubt

    def has_name(self, name):
        """Returns whether a segment certainly has that name and keeps it."""
        return any(s.name == name and s.name_state == NAMED and self.presence_of(s) == LIVE
                   for s in self.segments.values())

    def open_ops(self):
        for conn in self.conns:
            yield from conn.ops
        yield from self.unresolved

    def of_segment(self, segment):
        return [a for a in self.attachments.values() if a.segment is segment]

    def of_conn(self, conn):
        return [a for a in self.attachments.values() if a.conn is conn]

    def of_agent(self, agent):
        return [a for a in self.attachments.values() if a.agent is agent]

    def may_have_attached(self, s, op, access):
        """Returns whether the right may have existed when the daemon read that request."""
        options = [s.access] + s.access_maybe + ([] if op.strict else list(s.had))
        configs = (self.config, op.old_config)
        return (s.late and not op.strict) or any(x.may_attach(op.who, c, access) for x in options for c in configs)

    # --- What must be there ---

    def presence_of(self, s):
        """Returns whether a segment must exist (LIVE), may exist (MAYBE), or must end (ENDING)."""
        states = {MAYBE if a.state == LIVE and a.conn and a.conn.may_close else a.state for a in self.of_segment(s)}
        if LIVE in states:
            return LIVE
        keeps = s.lifetime != "attached"
        if s.name_state == NAMED and keeps:
            # an unread Claim of another connection may take the segment over, and end with that
            # connection
            return MAYBE if s.lifetime == "creator" and getattr(s.creator, "may_close", False) else LIVE
        if MAYBE in states or (s.name_state == MAYBE and keeps):
            return MAYBE
        if s.name_state == ENDING and keeps:
            return ENDING
        if any(op.changes(s) for op in self.open_ops()):
            return MAYBE
        return ENDING

    def settled(self):
        """Returns whether no request is under way, so that every outcome can be predicted."""
        return (not self.lag and not self.declared and not any(True for _ in self.open_ops())
                and all(a.state == LIVE for a in self.attachments.values())
                and all(s.name_state in (NAMED, UNNAMED) and self.presence_of(s) == LIVE and not s.access_maybe
                        for s in self.segments.values())
                and not any(c.doubtful or c.may_close for c in self.conns))

    def used(self, uid):
        """Returns what a user is charged for."""
        own = [s for s in self.segments.values() if uid in (None, s.access.owner)]
        return {"bytes": sum(pages(s.size) for s in own),
                "segments": len(own),
                "attachments": sum(uid in (None, a.agent.who.uid) for a in self.attachments.values()),
                "connections": (sum(uid in (None, c.agent.who.uid) for c in self.conns)
                                + sum(uid in (None, b) for b in self.bystanders))}

    def excess(self, uid, is_admin, charges):
        """Returns whether these further charges would exceed a quota."""
        mine, all_ = self.used(uid), self.used(None)
        for what, amount in charges.items():
            limit, total = self.config.limit(what, is_admin)
            if mine[what] + amount > limit or all_[what] + amount > total:
                return True
        return False

    # --- What happens ---

    def lose_conn(self, conn, daemon_died=False):
        """The connection has ended, or no process has its socket any longer."""
        if conn not in self.conns:
            return
        conn.open = False
        self.lag = True
        self.conns.remove(conn)
        self.unresolved += conn.ops
        conn.ops = []
        for a in self.of_conn(conn):
            a.conn, a.kept_by = None, conn.kept_by(a.client)
            fate = conn.fate(a.client, daemon_died)
            if a.loose or (fate == MAYBE and a.state != ENDING):
                a.state, a.loose = MAYBE, True
            elif fate == ENDING:
                a.state = ENDING
        for s in self.segments.values():
            if s.creator is conn:
                s.creator, s.kept_by = (conn.agent, s.client), conn.kept_by(s.client)
                fate = conn.fate(s.client, daemon_died)
                if fate == ENDING:
                    self.lose_creator(s)
                elif fate == MAYBE and s.name_state == NAMED:
                    s.name_state = MAYBE

    @staticmethod
    def lose_creator(s):
        if s.name_state != UNNAMED:
            s.name_state = ENDING
        s.creator = None
        if s.entrusted and not s.entrusted.gone:
            s.creator, s.name_state = s.entrusted, MAYBE

    def agent_ended(self, agent, gone=True):
        """A process died or, if it is not gone, replaced its program. The daemon does not notice
        a new program if no socket hangs up and no presence ends."""
        for a in self.of_agent(agent):
            a.state = ENDING if gone or a.conn or a.kept_by == "held" else MAYBE
        for s in self.segments.values():
            c = s.creator
            if isinstance(c, tuple) and c[0] is agent and not gone and s.kept_by != "held":
                if s.name_state == NAMED:
                    s.name_state = MAYBE
            elif isinstance(c, tuple) and c[0] is agent or isinstance(c, Conn) and c.agent is agent:
                self.lose_creator(s)
            elif gone and c is agent:
                self.lose_creator(s)
            elif gone and s.entrusted is agent and s.name_state == NAMED:
                s.name_state = MAYBE
        for conn in [c for c in self.conns if c.agent is agent]:
            self.lose_conn(conn)
        for conn in list(self.conns):
            conn.holders.discard(agent)
            if not conn.holders:
                self.lose_conn(conn)

    def daemon_ended(self):
        """A request that was under way may have been carried out or not. The daemon may have
        lost the news of an end."""
        for conn in list(self.conns):
            self.lose_conn(conn, daemon_died=True)
        for a in self.attachments.values():
            if a.state == ENDING and not a.agent.gone and (a.agent.lives or a.kept_by != "held"):
                a.state = MAYBE
        for s in self.segments.values():
            if s.name_state == ENDING:
                s.name_state = MAYBE
