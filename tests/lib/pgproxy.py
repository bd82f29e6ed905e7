"""A proxy in front of PostgreSQL that breaks connections where it hurts.

It reads enough of the protocol to know which statements a transaction consists of and when its
COMMIT is sent, and asks the test what to do with it:

    proxy = PgProxy(server_address, seed)
    proxy.policy = lambda unit: AFTER if "claim" in unit.text else PASS

A unit is what one COMMIT makes durable: an explicit transaction, or the statements before one Sync.
The policy is asked when the client's COMMIT (or that Sync) has arrived and before it is passed on:

    PASS    nothing happens
    BEFORE  cut; the server never sees it: rolled back
    AFTER   pass it on, wait for the server's answer, cut before the client sees it: committed
    LATE    cut the client at once, pass it on a moment later: it commits while the client asks

Besides: cut_bytes(mean) ends each connection after a random number of bytes in a random direction,
black_hole(seconds) lets nothing through in either direction while all stays connected (new
connections too), delay (seconds a piece), cut_all(), refuse. All of it is chosen by the seed.
"""
import collections
import contextlib
import random
import re
import socket
import struct
import threading
import time

PASS, BEFORE, AFTER, LATE = "pass", "before", "after", "late"
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
PIECE = 65536
COMMIT = re.compile(r"\s*(commit|end)\b", re.I)
BEGIN = re.compile(r"\s*(begin|start\s+transaction)\b", re.I)
RESET = struct.pack("ii", 1, 0)  # close with a reset instead of a goodbye


class Unit:
    """Statements that one commit makes durable."""

    def __init__(self, texts, explicit, application):
        self.texts, self.explicit, self.application = texts, explicit, application
        self.text = "\n".join(texts)


class Messages:
    """Whole messages out of a stream; b"" is the type of those at the beginning that have none."""

    def __init__(self, typed):
        self.typed, self.buffer = typed, b""

    def feed(self, data):
        self.buffer += data
        while True:
            head = 1 if self.typed else 0
            if len(self.buffer) < head + 4:
                return
            size = head + struct.unpack_from("!i", self.buffer, head)[0]
            if len(self.buffer) < size:
                return
            whole, self.buffer = self.buffer[:size], self.buffer[size:]
            yield whole[:head], whole[head + 4:], whole


class Link:
    """One client's connection and its own connection to the server."""

    def __init__(self, proxy, client):
        self.proxy, self.client, self.server = proxy, client, None
        self.names, self.texts, self.application = {}, [], ""
        self.in_transaction = False
        self.holding = None  # a Unit whose answer the client must not see
        self.keep_server = False
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.budget = proxy.next_budget()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        """Its threads only shut sockets down: a descriptor is closed when nobody can use its number
        any more."""
        self.proxy.pass_gate()
        with contextlib.suppress(OSError):
            self.server = self.proxy.connect()
        if self.server and not self.ended.is_set():
            down = threading.Thread(target=self.pump, daemon=True,
                                    args=(self.server, self.client, "down", self.from_server))
            down.start()
            self.pump(self.client, self.server, "up", self.from_client)
            down.join()
        self.cut()
        for s in (self.client, self.server):
            if s:
                s.close()

    def pump(self, source, target, way, handle):
        """Until either end closes. What `handle` returns is sent on."""
        messages = Messages(typed=way == "down")
        try:
            while True:
                data = source.recv(PIECE)
                if not data:
                    break
                self.proxy.pass_gate()
                for kind, body, whole in messages.feed(data):
                    whole = handle(messages, kind, body, whole)
                    if self.ended.is_set():
                        return
                    if whole:
                        self.send(target, whole, way)
        except OSError:
            pass
        finally:
            self.proxy.pass_gate()  # nor does the end of one side reach the other
            self.cut()

    def send(self, target, whole, way):
        if self.proxy.delay:
            time.sleep(self.proxy.delay)
        if self.budget and self.budget[0] == way:
            left = self.budget[1]
            self.budget = (way, left - len(whole))
            if left < len(whole):
                target.sendall(whole[:left])
                self.proxy.count("bytes " + way)
                raise OSError("cut here")
        target.sendall(whole)

    def cut(self):
        """Both ends, for good; a kept server's end is shut down by who keeps it."""
        with self.lock:
            if self.ended.is_set():
                return
            self.ended.set()
        shut(self.client, self.proxy.rng.random() < 0.5)
        if self.server and not self.keep_server:
            shut(self.server, False)
        self.proxy.forget(self)

    # ---- the client's messages ----

    def from_client(self, messages, kind, body, whole):
        if not messages.typed:
            return self.from_client_first(messages, body, whole)
        if kind == b"P":
            name, query = body.split(b"\0")[:2]
            self.names[name] = query.decode("utf-8", "replace")
        elif kind == b"B":
            self.texts.append(self.names.get(body.split(b"\0")[1], ""))
            return self.decide(self.texts[-1], whole)
        elif kind == b"Q":
            self.texts.append(body[:-1].decode("utf-8", "replace"))
            if not self.in_transaction and not BEGIN.match(self.texts[-1]):
                return self.decide_implicit(whole)
            return self.decide(self.texts[-1], whole)
        elif kind == b"S" and self.texts and not self.in_transaction:
            return self.decide_implicit(whole)
        return whole

    def from_client_first(self, messages, body, whole):
        code, = struct.unpack_from("!i", body)
        if code in (SSL_REQUEST, GSS_REQUEST):
            self.client.sendall(b"N")
            return None
        messages.typed = code != CANCEL_REQUEST
        words = body[4:].split(b"\0")
        with contextlib.suppress(ValueError):
            self.application = words[words.index(b"application_name") + 1].decode()
        return whole

    def decide(self, text, whole):
        """Follow BEGIN and COMMIT; ask the policy at the latter."""
        if BEGIN.match(text):
            self.in_transaction = True
        elif re.match(r"\s*rollback\s*;?\s*$", text, re.I):
            self.in_transaction, self.texts = False, []
        elif COMMIT.match(text) and self.in_transaction:
            self.in_transaction = False
            return self.ask(True, whole)
        return whole

    def decide_implicit(self, whole):
        return self.ask(False, whole)

    def ask(self, explicit, whole):
        unit = Unit(self.texts, explicit, self.application)
        self.texts = []
        action = self.proxy.ask(unit)
        if action == BEFORE:
            raise OSError("cut here")
        if action == AFTER:
            self.holding = unit
        if action == LATE:
            self.keep_server = True
            threading.Thread(target=self.deliver_late, args=(whole,), daemon=True).start()
            raise OSError("cut here")
        return whole

    def deliver_late(self, whole):
        self.ended.wait()
        time.sleep(self.proxy.rng.uniform(0.01, 0.3))
        with contextlib.suppress(OSError):
            sync = b"" if whole[:1] in b"QS" else b"E\0\0\0\x09\0\0\0\0\0" + b"S\0\0\0\x04"
            self.server.sendall(whole + sync)
            self.server.settimeout(5)
            self.server.recv(PIECE)
        shut(self.server, False)

    # ---- the server's messages ----

    def from_server(self, _messages, kind, body, whole):
        if not self.holding:
            return whole
        answered = body == b"COMMIT\0" if kind == b"C" and self.holding.explicit else \
            kind == b"Z" and not self.holding.explicit
        if answered or kind == b"E":
            if kind != b"E":
                self.proxy.count("lost answer")
            raise OSError("cut here")
        return whole if self.holding.explicit else None


class PgProxy:
    """Listens on a free port of the loopback; target is (host, port) or the path of a socket."""

    def __init__(self, target, seed=0, listen="127.0.0.1"):
        self.target, self.rng = target, random.Random(seed)
        self.policy, self.delay, self.mean_bytes = None, 0, 0
        self.counts = collections.Counter()
        self.links, self.lock = set(), threading.Lock()
        self.gate = threading.Event()
        self.gate.set()
        self.socket = socket.create_server((listen, 0), backlog=128)
        self.port = self.socket.getsockname()[1]
        self.accepting = True
        self.accepter = threading.Thread(target=self.accept, daemon=True)
        self.accepter.start()

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self.accepting:
                shut(client, True)
                client.close()
                continue
            with self.lock:
                self.links.add(Link(self, client))

    def connect(self):
        if isinstance(self.target, str):
            s = socket.socket(socket.AF_UNIX)
            s.connect(self.target)
        else:
            s = socket.create_connection(self.target, 10)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.settimeout(None)
        return s

    def ask(self, unit):
        policy = self.policy
        action = policy(unit) if policy else PASS
        if action != PASS:
            self.count(action)
        return action

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def forget(self, link):
        with self.lock:
            self.links.discard(link)

    def pass_gate(self):
        self.gate.wait()

    def next_budget(self):
        """(direction, bytes) after which a new connection is cut, or None."""
        if not self.mean_bytes:
            return None
        return self.rng.choice(("up", "down")), int(self.rng.expovariate(1 / self.mean_bytes))

    # ---- what a test does ----

    def cut_bytes(self, mean):
        """Connections made from now on end after so many bytes, on the average; 0: no more."""
        self.mean_bytes = mean

    def cut_all(self):
        with self.lock:
            links = list(self.links)
        for link in links:
            link.cut()
        return len(links)

    def refuse(self, yes):
        """Turn every new connection away."""
        self.accepting = not yes

    def black_hole(self, seconds):
        """Returns when it is over; hole() and light() are its halves."""
        self.hole()
        time.sleep(seconds)
        self.light()

    def hole(self):
        self.count("black hole")
        self.gate.clear()

    def light(self):
        self.gate.set()

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self.accepter.join()
        self.socket.close()
        self.light()
        self.cut_all()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def shut(s, reset):
    """Wake whoever reads it. With `reset` what is still on its way is thrown away."""
    with contextlib.suppress(OSError):
        if reset:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        s.shutdown(socket.SHUT_RDWR)
