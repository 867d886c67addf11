"""A small client of the studio: HTTP and WebSocket over sockets of the standard library."""
import base64
import hashlib
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import time


class Studio:
    """A running `selkie studio`."""

    def __init__(self, command, *arguments, environment=None):
        self.process = subprocess.Popen([command, "studio", "--no-browser", *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=environment)
        self.link = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})", self.link)
        if not found:
            self.process.kill()
            raise RuntimeError(f"no link: {self.link!r} {self.process.stderr.read()}")
        self.port, self.token = int(found.group(1)), found.group(2)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return self.process.returncode

    def connect(self):
        made = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def http(self, path, method="GET", host=None, headers=()):
        """Status, headers and body of an answer; status 0 where the connection was closed without one."""
        with self.connect() as made:
            lines = [f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{self.port}'}", "Connection: close"]
            made.sendall(("\r\n".join([*lines, *headers]) + "\r\n\r\n").encode())
            answer = b""
            try:
                while piece := made.recv(65536):
                    answer += piece
            except OSError:
                pass
        head, _, body = answer.partition(b"\r\n\r\n")
        status = re.match(rb"HTTP/1\.\d (\d+)", head)
        return int(status.group(1)) if status else 0, head.decode("latin-1").lower(), body

    def live(self, **options):
        return Live(self, **options)


class Socket:
    """A WebSocket. `status` is that of the handshake: 101 where it is open."""

    def __init__(self, port, path, host=None, origin=None, protocol=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{port}'}",
                 "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        if protocol:
            lines.append(f"Sec-WebSocket-Protocol: {protocol}")
        if origin:
            lines.append(f"Origin: {origin}")
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = b""
        try:
            while b"\r\n\r\n" not in answer:
                piece = self.socket.recv(4096)
                if not piece:
                    break
                answer += piece
        except OSError:
            pass
        head, _, self.rest = answer.partition(b"\r\n\r\n")
        found = re.match(rb"HTTP/1\.\d (\d+)", head)
        self.status = int(found.group(1)) if found else 0
        self.close_code = None
        if self.status == 101:
            accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
            assert accept.lower() in head.lower(), head

    def close(self):
        self.socket.close()

    def send_bytes(self, payload, opcode=1, last=True):
        mask = os.urandom(4)
        first = bytes([(0x80 if last else 0) | opcode])
        size = len(payload)
        if size < 126:
            length = bytes([0x80 | size])
        elif size < 65536:
            length = bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            length = bytes([0x80 | 127]) + struct.pack(">Q", size)
        repeated = (mask * (size // 4 + 1))[:size]
        masked = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big") if size else b""
        self.socket.sendall(first + length + mask + masked)

    def send(self, **message):
        self.send_bytes(json.dumps(message).encode())

    def take(self, count):
        while len(self.rest) < count:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise ConnectionError("closed")
            self.rest += piece
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def receive(self):
        """The next message: bytes, or a dictionary; None where the other side closed."""
        payload, kind = b"", None
        while True:
            try:
                first, second = self.take(2)
                size = second & 127
                if size == 126:
                    size, = struct.unpack(">H", self.take(2))
                elif size == 127:
                    size, = struct.unpack(">Q", self.take(8))
                piece = self.take(size)
            except (ConnectionError, OSError) as error:
                if isinstance(error, (socket.timeout, TimeoutError)):
                    raise
                return None
            opcode = first & 15
            if opcode == 8:
                self.close_code = struct.unpack(">H", piece[:2])[0] if len(piece) > 1 else 1005
                return None
            if opcode in (9, 10):
                if opcode == 9:
                    self.send_bytes(piece, 10)
                continue
            kind = opcode or kind
            payload += piece
            if first & 0x80:
                break
        return payload if kind == 2 else json.loads(payload)


class Live(Socket):
    """A live connection of the studio."""

    def __init__(self, studio, token=None, path="/api/live", protocol="selkie-studio", **options):
        super().__init__(studio.port, f"{path}?token={studio.token if token is None else token}", protocol=protocol, **options)
        self.frames, self.answers, self.unanswered = 0, True, 0  # whether frames count as seen
        self.state, self.frame, self.scene, self.solids, self.role = {}, None, None, None, None

    def do(self, verb, **rest):
        self.send(**{"do": verb, **rest})

    def note(self, message):
        if isinstance(message, bytes):
            if message[:4] == b"SKF1":
                self.frame = Frame(message)
                self.frames += 1
                if self.answers:
                    self.do("seen", frame=self.frame.number)
                else:
                    self.unanswered += 1
            elif message[:4] == b"SKG1":
                self.solids = message
        elif message:
            if message["is"] in ("state", "scene", "role"):
                setattr(self, message["is"], message)

    def until(self, test, seconds=20):
        """Receives until test(message) holds for one; returns it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.socket.settimeout(max(end - time.monotonic(), 0.01))
            try:
                message = self.receive()
            except (socket.timeout, TimeoutError):
                break
            if message is None:
                raise ConnectionError(f"closed with {self.close_code}")
            self.note(message)
            if test(message):
                return message
        raise TimeoutError(f"waited {seconds} s; last state {self.state}")

    def until_is(self, kind, seconds=20, **values):
        return self.until(lambda m: isinstance(m, dict) and m["is"] == kind
                          and all(m.get(k) == v for k, v in values.items()), seconds)

    def until_frame(self, test=lambda frame: True, seconds=20):
        self.until(lambda m: isinstance(m, bytes) and m[:4] == b"SKF1" and test(self.frame), seconds)
        return self.frame

    def is_closed(self, seconds=10):
        """Whether the other side closes; reads what comes before."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ready, _, _ = select.select([self.socket], [], [], 0.1)
            if (ready or self.rest) and self.receive() is None:
                return True
        return False


class Frame:
    def __init__(self, data):
        (self.count, self.dimension, self.solids, self.number, self.solids_number) = struct.unpack_from("<5I", data, 4)
        self.time, self.step = struct.unpack_from("<2d", data, 24)
        *self.size, self.scale = struct.unpack_from("<4f", data, 40)
        self.scene, = struct.unpack_from("<I", data, 56)
        at = 64 + 48 * self.solids
        self.poses = [struct.unpack_from("<12f", data, 64 + 48 * i) for i in range(self.solids)]
        end = at + 2 * self.dimension * self.count
        flags, = struct.unpack_from("<I", data, 60)
        assert len(data) == end + (2 if flags & 1 else 1) * self.count, (len(data), end, self.count)
        self.data, self.start, self.end = data, at, end

    @property
    def positions(self):
        return struct.unpack_from(f"<{self.dimension * self.count}H", self.data, self.start)

    @property
    def speeds(self):
        return self.data[self.end:self.end + self.count]

    @property
    def materials(self):
        return self.data[self.end + self.count:]
