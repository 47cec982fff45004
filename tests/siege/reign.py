# SPDX-License-Identifier: Apache-2.0
"""The part of a siege that concerns the daemon: its life, its configuration, the bystanders."""

import json
import os
import signal
import time

import oracle
from model import Config, Who
from server import Broken

BYSTANDER = Who(65510, 65510)


class Reign:
    def begin(self):
        """Starts the first daemon with its first configuration."""
        self.model.config = Config()
        self.server.configure(json.dumps(self.model.config.as_json()))
        self.server.start()
        self.model.bystanders.append(os.getuid())
        if self.is_root:
            self.model.bystanders.append(BYSTANDER.uid)
            self.bystander = self.make_agent(-1, BYSTANDER)
        self.ping()
        interface = {"interface": "io.shmview"}
        text = self.auditor.call("GetInterfaceDescription", interface, service=True)["description"]
        self.model.has_bell = "bell: ?bool" in text
        self.baseline = self.server.descriptors()
        self.own_objects = len(self.server.objects())
        self.note(f"the daemon of uid {self.server.uid} starts", "*")

    def ping(self):
        """Checks that both bystanders get their replies in bounded time."""
        self.server.check()
        if not self.server.pid or self.server.stopped:
            return
        self.auditor.call("Ping")
        if not self.bystander:
            return
        b = self.bystander
        if b.next_conn == 0 and b.do("connect", 0, self.server.socket):
            raise Broken("a bystander cannot connect")
        b.next_conn = 1
        began = time.monotonic()
        sent, texts, _, ended = b.do("exchange", 0, [b'{"method":"io.shmview.Ping"}\0'], [], 1, self.options.patience)
        self.auditor.worst = max(self.auditor.worst, time.monotonic() - began)
        self.server.check()
        if texts != [b'{"parameters":{}}']:
            raise Broken(f"a bystander has no answer: {texts}, sent {sent}, ended {ended}")

    def end_daemon(self, number):
        self.note(f"the daemon ends by signal {number}", "*")
        self.server.end(number)
        self.model.daemon_ended()
        self.auditor.close()
        if self.bystander:
            self.bystander.do("close", 0)
            self.bystander.next_conn = 0

    def start_daemon(self):
        self.note("another daemon starts", "*")
        self.server.start()
        self.expect_declared()
        self.ping()
        oracle.settle(self)

    def new_config(self):
        """Writes another configuration, and sends SIGHUP."""
        rng, old = self.rng, self.model.config
        user = {k: v for k, v in (("bytes", rng.choice([16, 256, 2048, 65536]) << 10),
                                  ("segments", rng.choice([3, 6, 20])),
                                  ("attachments", rng.choice([5, 20, 100])),
                                  ("connections", rng.choice([4, 8, 30])))
                if rng.random() < 0.5}
        total = {k: v for k, v in (("bytes", rng.choice([16, 64]) << 20), ("segments", rng.choice([8, 30])),
                                   ("attachments", rng.choice([20, 100]))) if rng.random() < 0.25}
        if rng.random() < 0.1:
            user |= {"requests_per_second": 3000, "burst": rng.choice([10, 3000])}
        config = Config(old.serial + 1, user, total)
        config.create = rng.choice([["*"], ["*"], ["*"], ["user:65501"], ["group:65521", "user:65503"], []])
        config.mode = rng.choice([0o600, 0o600, 0o640, 0o660, 0o644, 0o666])
        config.admin_group = rng.choice([-1, -1, 65522])
        names = rng.sample(["declared1", "declared2", "declared3", "a"], rng.randrange(4))
        config.segments = [{"name": n, "size": rng.choice([1, 4096, 1 << 20, 8 << 20]),
                            "owner": rng.choice(self.users).uid, "mode": "0660"} for n in names]
        self.model.config = config
        self.admins |= {u.uid for u in self.users if config.is_admin(u)}
        self.note(f"SIGHUP: {json.dumps(config.as_json())}", "*")
        self.expect_declared()
        self.server.configure(json.dumps(config.as_json()))
        os.kill(self.server.pid, signal.SIGHUP)

    def expect_declared(self):
        """Notes the names that must exist soon, or may exist because a client's segment may have
        them."""
        model = self.model
        for spec in model.config.segments:
            if not model.has_name(spec["name"]):
                sure = not any(s.name == spec["name"] for s in model.segments.values())
                _, certain = model.named(spec["name"])
                entry = model.declared.setdefault(spec["name"], {"sure": False, "specs": []})
                removing = any(op.changes_name(spec["name"]) for op in model.open_ops())
                entry["sure"] |= sure and certain and not removing
                entry["specs"].append(spec)

    def check_declared(self, s, told):
        specs = self.model.declared[s.name]["specs"]
        access = told["owner"], told["mode"]
        changed = any(op.method == "io.shmview.SetAccess" for op in self.model.open_ops()) or "named" not in told
        if not any(told["size"] == spec["size"] and told["lifetime"] == "manual"
                   and (changed or access == (spec["owner"], 0o660)) for spec in specs):
            raise Broken(f"declared as {specs}, created as {told}")

    def await_reload(self, before):
        """Waits until the daemon has logged the result of a SIGHUP."""
        until = time.monotonic() + 20
        while self.server.reloads() == before:
            self.server.check()
            if time.monotonic() > until:
                raise Broken("the daemon does not obey SIGHUP")
            time.sleep(0.001)

    def await_config(self):
        """Waits until the configuration is in force, which its own limit shows."""
        until = time.monotonic() + 20
        while True:
            quotas = self.auditor.call("Stats")["instance"]["quotas"]
            limit = next(q for q in quotas if q["what"] == "connections")["total_limit"]
            if limit == 100000 + self.model.config.serial:
                return
            if time.monotonic() > until:
                raise Broken(f"configuration {self.model.config.serial} does not come into force")
            time.sleep(0.002)

    def note_seen(self):
        """Notes which users can see which segments now."""
        for s in self.model.segments.values():
            s.had |= {s.access, *s.access_maybe}
            seen = self.seen.setdefault(s.id, set())
            seen |= {u.uid for u in self.users for x in [s.access] + s.access_maybe if x.may_see(u, self.model.config)}
