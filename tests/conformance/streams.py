# SPDX-License-Identifier: Apache-2.0
"""The requests about streams, for the driver in Python."""

import shmview


class Streams:
    """Has a method for each request about a stream."""

    def __init__(self):
        self.streams, self.frames = {}, {}

    def do_stream_create(self, request):
        views = {v["name"]: {key: v[key] for key in v if key != "name"} for v in request["views"]}
        options = {key: request[key] for key in ("lossless", "slots", "history", "stages") if key in request}
        self.streams[request["stream"]] = shmview.create_stream(request["name"], views, **options)

    def do_stream_open(self, request):
        self.streams[request["stream"]] = shmview.open_stream(request["name"], request.get("access", "read"))

    def do_stream_close(self, request):
        self.streams[request["stream"]].close()
        del self.streams[request["stream"]]

    def do_stream_info(self, request):
        info = self.streams[request["stream"]].info._asdict()
        del info["many_writers"]
        return info

    def do_stream_join(self, request):
        self.streams[request["stream"]].join()

    def do_stream_finish(self, request):
        self.streams[request["stream"]].end()

    def do_stream_status(self, request):
        status = self.streams[request["stream"]].status()
        return {"published": status.published, "writer": status.writer_pid, "deaths": status.deaths,
                "slots": [slot.state for slot in status.slots],
                "readers": [[r.pid, r.stage, r.next, r.lag, r.missed] for r in status.readers]}

    def do_stream_wait(self, request):
        among = [self.streams[name] for name in request["streams"]]
        return among.index(shmview.wait_any(among, seconds(request)))

    def do_loan(self, request):
        self.frames[request["frame"]] = self.streams[request["stream"]].loan(seconds(request))

    def do_take(self, request):
        stream = self.streams[request["stream"]]
        try:
            frame = (stream.latest if request.get("latest") else stream.take)(seconds(request))
        except shmview.StreamEnded:
            return "ended"
        except shmview.WriterDied as died:
            return {"pid": died.pid, "command": died.command, "when_ns": round(died.when * 1e9)}
        self.frames[request["frame"]] = frame
        return {"sequence": frame.sequence, "missed": frame.missed, "time_ns": frame.time_ns, "user": frame.user.hex()}

    def do_frame_set(self, request):
        frame = self.frames[request["frame"]]
        if "time_ns" in request:
            frame.time_ns = request["time_ns"]
        if "user" in request:
            frame.user = bytes.fromhex(request["user"])
        for name, length in zip(frame.stream.views, request.get("lengths", ())):
            frame.set_length(name, length)

    def do_frame_view(self, request):
        self.views[f"{request['frame']}.{request['name']}"] = self.frames[request["frame"]][request["name"]]

    def do_publish(self, request):
        number = self.frames[request["frame"]].publish()
        self.forget(request)
        return number

    def do_discard(self, request):
        self.frames[request["frame"]].discard()
        self.forget(request)

    def do_release(self, request):
        self.frames[request["frame"]].release()
        self.forget(request)

    def do_pass(self, request):
        return self.frames[request["frame"]].pass_on(request["stage"])

    def forget(self, request):
        """Forgets a frame that is over, and its views."""
        del self.frames[request["frame"]]
        for name in [name for name in self.views if name.startswith(request["frame"] + ".")]:
            del self.views[name]


def seconds(request):
    timeout = request.get("timeout_ms")
    return None if timeout is None else timeout / 1000
