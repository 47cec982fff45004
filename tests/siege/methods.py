# SPDX-License-Identifier: Apache-2.0
"""The methods of the daemon: one class for each, in TABLE.

A class has the plausible parameters of a request, the errors that the model predicts for it, and
the changes that a success makes to the model. A new method needs a class and a row; without
predict() and done() it is still sent with whole and broken parameters.
"""

from method import Method
from method_attachments import Attach, Claim, Detach, Watch
from method_segments import Create, DefineLayout, Describe, Entrust, List, Remove, SetAccess


class Ping(Method):
    pass


class Stats(Method):
    def plausible(self, siege, conn):
        rng = siege.rng
        kind = rng.randrange(3)
        if kind == 0:
            return {}
        if kind == 1:
            return {"names": [siege.pick_name() for _ in range(rng.randrange(5))]}
        return {"after": rng.choice([0, 0, 3, 50]), "limit": rng.choice([0, 1, 100, 100])}

    def done(self, siege, op, reply, fds):
        siege.figures = reply["instance"]
        for s in reply["segments"]:
            siege.check_may_see(op, siege.known(s))


class Monitor(Method):
    """Without "more" only, because the siege opens monitors in a step of its own."""

    def predict(self, model, op):
        return ({"ExpectedMore"}, set()) if not op.more else (set(), {"LimitExceeded", "QuotaExceeded"})


class GetInfo(Method):
    pass


class GetInterfaceDescription(Method):
    def plausible(self, siege, conn):
        return {"interface": siege.rng.choice(["io.shmview", "org.varlink.service", "io.shmview"])}


class Unknown(Method):
    def predict(self, model, op):
        return {"MethodNotFound", "InterfaceNotFound"}, set()


# method: (its class, how often the driver chooses it)
TABLE = {
    "io.shmview.Ping": (Ping(), 2),
    "io.shmview.Claim": (Claim(), 4),
    "io.shmview.Create": (Create(), 22),
    "io.shmview.Attach": (Attach(), 30),
    "io.shmview.Detach": (Detach(), 12),
    "io.shmview.Remove": (Remove(), 6),
    "io.shmview.Entrust": (Entrust(), 3),
    "io.shmview.SetAccess": (SetAccess(), 8),
    "io.shmview.Watch": (Watch(), 6),
    "io.shmview.List": (List(), 5),
    "io.shmview.Describe": (Describe(), 5),
    "io.shmview.DefineLayout": (DefineLayout(), 8),
    "io.shmview.Stats": (Stats(), 4),
    "io.shmview.Monitor": (Monitor(), 1),
    "org.varlink.service.GetInfo": (GetInfo(), 1),
    "org.varlink.service.GetInterfaceDescription": (GetInterfaceDescription(), 1),
    "io.shmview.Nothing": (Unknown(), 1),
    "com.example.Ping": (Unknown(), 1),
}
