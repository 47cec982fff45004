# SPDX-License-Identifier: Apache-2.0
"""A client process of the siege.

The driver forks one agent for each client. An agent does what the driver's Agent object asks
over a socket, one operation at a time: it connects, sends bytes, receives replies, uses the
descriptors that it was given, forks, replaces its program. It decides nothing itself.
"""

import array
import ctypes
import errno
import fcntl
import mmap
import os
import pickle
import signal
import socket
import struct
import threading
import time
import traceback

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
MADV_DONTFORK = 10
LENGTH = struct.Struct("=I")
DESCRIPTORS = 64


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def close_all_but(keep):
    """Closes every descriptor from 3 on except those in keep."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd not in keep:
            try:
                os.close(fd)
            except OSError:
                pass  # the descriptor that listed the directory


def map_presence(fd):
    """Maps a page as libshmview does: the mapping keeps the lock of the file, and a child does
    not inherit it."""
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    at = LIBC.mmap(None, mmap.PAGESIZE, 0, mmap.MAP_SHARED, fd, 0)
    if at in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap")
    LIBC.madvise(at, mmap.PAGESIZE, MADV_DONTFORK)
    os.close(fd)
    return at


class Channel:
    """Sends and receives pickled objects over a stream socket, and descriptors on single bytes."""

    def __init__(self, sock):
        self.sock = sock

    def put(self, what):
        data = pickle.dumps(what)
        self.sock.sendall(LENGTH.pack(len(data)) + data)

    def _exactly(self, n):
        data = bytearray()
        while len(data) < n:
            got = self.sock.recv(n - len(data))
            if not got:
                raise EOFError
            data += got
        return bytes(data)

    def get(self):
        return pickle.loads(self._exactly(LENGTH.unpack(self._exactly(4))[0]))

    def put_fd(self, fd):
        socket.send_fds(self.sock, [b"."], [fd])

    def get_fd(self):
        _, fds, _, _ = socket.recv_fds(self.sock, 1, 1)
        return fds[0]


class Link:
    """One connection to the daemon: the bytes that came, and the descriptors that came with
    them."""

    def __init__(self, sock):
        self.sock = sock
        self.bytes = bytearray()
        self.fds = []
        self.ended = False

    def receive(self, until):
        """Receives once, waiting at most until that time. Returns whether anything came."""
        left = until - time.monotonic()
        self.sock.settimeout(max(left, 0.0001))
        try:
            data, ancillary, _, _ = self.sock.recvmsg(1 << 18, socket.CMSG_SPACE(DESCRIPTORS * 4))
        except (TimeoutError, BlockingIOError):
            return False
        except OSError as e:
            if e.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
                raise
            data, ancillary = b"", []
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds = array.array("i")
                fds.frombytes(content[: len(content) - len(content) % 4])
                self.fds += fds
        self.ended = not data
        self.bytes += data
        return True

    def take(self):
        """Returns one whole message, or None."""
        at = self.bytes.find(0)
        if at < 0:
            return None
        text = bytes(self.bytes[:at])
        del self.bytes[: at + 1]
        return text

    def close(self):
        self.sock.close()
        for fd in self.fds:
            os.close(fd)


class Baggage:
    """Descriptors that a client sends along with a request, although no request takes any."""

    @staticmethod
    def make(kind):
        if kind == "file":
            return [os.open("/dev/null", os.O_RDWR)]
        if kind == "memfd":
            return [os.memfd_create("baggage")]
        if kind == "pipe":
            return list(os.pipe())
        if kind == "pair":
            ends = socket.socketpair()
            ends[0].setblocking(False)
            try:
                while ends[0].send(b"x" * 4096):
                    pass
            except BlockingIOError:
                pass
            fds = [end.detach() for end in ends]
            return fds
        if kind == "linger":
            return Baggage._linger()
        return [os.open("/dev/null", os.O_RDONLY) for _ in range(int(kind))]

    @staticmethod
    def _linger():
        """Returns a TCP socket whose last close() blocks, because its peer reads nothing."""
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", 0))
        server.listen()
        client = socket.socket()
        client.connect(server.getsockname())
        peer, _ = server.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
        client.setblocking(False)
        try:
            while client.send(b"x" * 65536):
                pass
        except BlockingIOError:
            pass
        server.close()
        Baggage.kept = peer  # if the peer ended, the wait would end too
        return [client.detach()]


class Worker:
    """The operations of an agent. Each takes plain values and returns one."""

    def __init__(self, channel):
        self.channel = channel
        self.links = {}
        self.fds = {}
        self.next_fd = 1
        self.presence = []

    # --- Connections ---

    def connect(self, number, path):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(20)
        try:
            sock.connect(path)
        except OSError as e:
            sock.close()
            return e.errno
        self.links[number] = Link(sock)
        return 0

    def send(self, number, chunks, baggage, patience):
        """Sends the chunks one by one, and the baggage with the last. Returns how many bytes the
        kernel took, or -1 if the daemon has hung up."""
        link, sent = self.links[number], 0
        until = time.monotonic() + patience
        waiting = [fd for kind in baggage for fd in Baggage.make(kind)]
        for i, chunk in enumerate(chunks):
            view = memoryview(chunk)
            while view:
                link.sock.settimeout(max(until - time.monotonic(), 0.0001))
                fds = []
                if i == len(chunks) - 1:
                    fds, waiting = waiting, []
                try:
                    n = socket.send_fds(link.sock, [view], fds, socket.MSG_NOSIGNAL) if fds else link.sock.send(view)
                except (TimeoutError, BlockingIOError):
                    return sent
                except OSError as e:
                    if fds and e.errno in (errno.EPERM, errno.ETOOMANYREFS):
                        continue  # the kernel refuses the descriptors: the bytes go alone
                    return -1 if e.errno in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN) else -e.errno
                finally:
                    # in a thread, because the last close of a socket that lingers blocks
                    if fds:
                        threading.Thread(target=lambda fds=fds: [os.close(fd) for fd in fds], daemon=True).start()
                sent += n
                view = view[n:]
        return sent

    def receive(self, number, count, patience):
        """Receives up to count messages. Returns (messages, numbers of descriptors, whether the
        connection ended)."""
        link, texts = self.links[number], []
        until = time.monotonic() + patience
        while len(texts) < count:
            text = link.take()
            if text is not None:
                texts.append(text)
            elif link.ended or (not link.receive(until) and time.monotonic() >= until):
                break
        fds, link.fds = link.fds, []
        return texts, [self._keep(fd) for fd in fds], link.ended and not link.bytes

    def exchange(self, number, chunks, baggage, count, patience):
        sent = self.send(number, chunks, baggage, patience)
        return (sent, *self.receive(number, count, patience))

    def close(self, number):
        link = self.links.pop(number, None)
        if link:
            link.close()

    def shutdown(self, number, how):
        try:
            self.links[number].sock.shutdown(how)
        except OSError as e:
            if e.errno != errno.ENOTCONN:
                raise

    # --- Descriptors ---

    def _keep(self, fd):
        number = self.next_fd
        self.next_fd += 1
        self.fds[number] = fd
        return number

    def drop(self, numbers):
        for number in numbers:
            if number in self.fds:
                os.close(self.fds.pop(number))

    def map_presence(self, number):
        self.presence.append(map_presence(self.fds.pop(number)))

    def _try(self, call, *arguments):
        try:
            return call(*arguments)
        except OSError as e:
            return -e.errno

    def truncate(self, number, size):
        return self._try(os.ftruncate, self.fds[number], size) or 0

    def size(self, number):
        return os.fstat(self.fds[number]).st_size

    def write(self, number, offset, data):
        return self._try(os.pwrite, self.fds[number], data, offset)

    def read(self, number, offset, n):
        return self._try(os.pread, self.fds[number], n, offset)

    def access(self, number):
        return fcntl.fcntl(self.fds[number], fcntl.F_GETFL) & os.O_ACCMODE

    def send_on(self, number, data):
        """Sends one message on a descriptor that is a socket."""
        sock = socket.socket(fileno=os.dup(self.fds[number]))
        try:
            return sock.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError as e:
            return -e.errno
        finally:
            sock.close()

    # --- Processes ---

    def fork(self, keeps_links):
        """Starts another agent. It has copies of all descriptors; of links only if keeps_links."""
        ours, childs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            self.channel.sock.close()
            self.presence = []
            if not keeps_links:
                for number in list(self.links):
                    self.close(number)
            self.channel = Channel(childs)
            try:
                self.serve()
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        childs.close()
        self.channel.put(pid)
        self.channel.put_fd(ours.fileno())
        ours.close()
        return None

    def exec(self):
        """Replaces this process by another program, which keeps none of our descriptors."""
        self.channel.put(True)
        os.execv("/bin/sleep", ["sleep", "100000"])

    def exit(self):
        os._exit(0)

    def serve(self):
        while True:
            try:
                name, arguments = self.channel.get()
            except (EOFError, OSError):
                os._exit(0)
            answer = getattr(self, name)(*arguments)
            if name != "fork":
                self.channel.put(answer)


def become(uid, gid, groups):
    if os.getuid() == 0 and uid != 0:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def start(uid, gid, groups):
    """Forks an agent of that user. Returns its pid and the driver's end of its channel."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, Channel(ours)
    try:
        close_all_but({theirs.fileno()})
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for grandchildren
        become(uid, gid, groups)
        die_with_parent()
        Worker(Channel(theirs)).serve()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)
