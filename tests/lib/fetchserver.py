#!/usr/bin/python3
"""A web server on loopback that does what its paths say, good or bad, the same each time.

    tests/lib/fetchserver.py --port-file FILE [--tls] [--hosts N] [--with-parent]

writes "http PORT" (with --tls also "good PORT", "self-signed PORT", "expired PORT", "wrong-host
PORT", "ca FILE") to FILE once it listens, and serves until SIGTERM; --with-parent: or until standard
input ends. As a module: `with FetchServer() as s: s.url("/ok")`. Nginx below serves a folder over
HTTP/2.

Values in brackets are what a parameter is when it is not given.

    /ok?size=N&seed=S&type=T&status=N      body_of(S [path], N [1024]), type T [text/plain]
    /gzip, /deflate                        the same, coded
    /bomb?mb=N                             gzip of N [1024] MiB of zeros, about 1 KiB for each
    /slow?bps=N&size=N                     N [10] bytes a second
    /endless                               a body without an end
    /length?say=N&send=N                   Content-Length that lies; then the connection is closed
    /close?after=N                         no answer; after=N: that many bytes of a body, then closed
    /reset?after=N                         the same with a TCP reset
    /garbage                               no HTTP
    /nobody/204, /nobody/304               no body by their status; ?send=N: sends some all the same
    /chain/N                               N redirects, then /ok
    /loop, /pingpong                       redirects to itself, and to /loop by way of another
    /to?url=U&status=N                     redirect [302] to U
    /headers?bytes=N&as=K                  N [10 MiB] of header lines, line, 1xx answers, trailers
    /throttle?status=N&after=N&date=N      429, Retry-After in seconds or as a date so far ahead
    /storm?n=N&status=N&after=N            503 the first N [3] times, then /ok
    /flaky?n=N&status=N                    the same with 500
    /cond/NAME?with=etag|date|both         304 while the version is the one the client has
    /sleep?s=N                             /ok after N [1] seconds
    /blocked                               200, and a page that says no
    /status/N?body=B&type=T                that status; Retry-After with after=N
    /echo                                  the request as JSON
    /robots.txt                            by the Host asked for, see robots(); [404]
    /__log?since=N                         requests so far as JSON; /__stats: counts
    /__set?cond=NAME&version=V             gives /cond/NAME another version
    /__set?robots=HOST&as=KIND&…           see robots()
"""
import argparse
import asyncio
import collections
import contextlib
import email.utils
import gzip
import hashlib
import json
import os
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import zlib

LOGGED = 200_000
MIB = 1 << 20
LAST_MODIFIED = 1_700_000_000


def body_of(seed, size):
    """Text that depends on the seed alone."""
    out = bytearray()
    count = 0
    while len(out) < size:
        out += hashlib.sha256(f"{seed}/{count}".encode()).hexdigest().encode() + b"\n"
        count += 1
    return bytes(out[:size])


class Gone(Exception):
    """The connection ends here."""


class Request:
    def __init__(self, method, target, headers, body, number):
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.connection = number
        self.path, _, query = target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.head = {name.lower(): value for name, value in headers}
        self.host = self.head.get("host", "").rsplit(":", 1)[0].lower()

    def number(self, name, default):
        return int(float(self.query.get(name, default)))

    def text(self, name, default=""):
        return self.query.get(name, default)


class Answer:
    """What is written back on one connection."""

    def __init__(self, writer, request):
        self.writer, self.request = writer, request

    async def raw(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def begin(self, status, headers=()):
        reason = {200: "OK", 302: "Found", 404: "Not Found"}.get(status, "Status")
        lines = [f"HTTP/1.1 {status} {reason}", f"Date: {email.utils.formatdate(usegmt=True)}"]
        lines += [f"{name}: {value}" for name, value in headers]
        await self.raw(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def whole(self, body=b"", status=200, kind="text/plain", headers=()):
        length = [] if status in (204, 304) else [("Content-Length", len(body))]
        await self.begin(status, [("Content-Type", kind), *length, *headers])
        if self.request.method != "HEAD" and status not in (204, 304):
            await self.raw(body)

    async def chunk(self, data):
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    def reset(self):
        """RST instead of FIN."""
        plain = self.writer.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


# ---- routes: ok, coded ----

async def ok(server, r, a):
    body = body_of(r.text("seed", r.path), r.number("size", 1024))
    await a.whole(body, r.number("status", 200), r.text("type", "text/plain"))


async def coded(server, r, a):
    body = body_of(r.text("seed", r.path), r.number("size", 1024))
    packed = gzip.compress(body, 6, mtime=0) if r.path == "/gzip" else zlib.compress(body)
    await a.whole(packed, 200, r.text("type", "text/plain"), [("Content-Encoding", r.path[1:])])


async def bomb(server, r, a):
    zeros = bytes(MIB)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    await a.begin(200, [("Content-Type", "text/html"), ("Content-Encoding", "gzip"),
                        ("Transfer-Encoding", "chunked")])
    await a.chunk(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03")
    crc, n = 0, r.number("mb", 1024)
    for _ in range(n):
        crc = zlib.crc32(zeros, crc)
        await a.chunk(block)
    await a.chunk(b"\x03\x00" + struct.pack("<II", crc, n * MIB & 0xffffffff))
    await a.raw(b"0\r\n\r\n")


# ---- routes: slow, endless, lying, broken ----

async def slow(server, r, a):
    size = r.number("size", 1 << 20)
    await a.begin(200, [("Content-Type", "text/plain"), ("Content-Length", size)])
    for byte in body_of(r.path, size):
        await a.raw(bytes([byte]))
        await asyncio.sleep(1 / r.number("bps", 10))


async def endless(server, r, a):
    await a.begin(200, [("Content-Type", "text/plain"), ("Connection", "close")])
    block = body_of(r.path, 1 << 16)
    while True:
        await a.raw(block)


async def length(server, r, a):
    await a.begin(200, [("Content-Type", "text/plain"), ("Content-Length", r.number("say", 1000))])
    await a.raw(body_of(r.path, r.number("send", 500)))
    raise Gone


async def part_of_a_body(r, a):
    if "after" in r.query:
        await a.begin(200, [("Content-Type", "text/plain"), ("Transfer-Encoding", "chunked")])
        await a.chunk(body_of(r.path, r.number("after", 1)))


async def close(server, r, a):
    await part_of_a_body(r, a)
    raise Gone


async def reset(server, r, a):
    await part_of_a_body(r, a)
    a.reset()
    raise Gone


async def garbage(server, r, a):
    await a.raw(b"220 mail.example ESMTP ready\r\n" * 3)
    raise Gone


async def nobody(server, r, a):
    status = int(r.path.rsplit("/", 1)[1])
    extra = r.number("send", 0)
    await a.begin(status, [("Content-Length", extra)] if extra else [])
    if extra:
        await a.raw(body_of(r.path, extra))


# ---- routes: redirects ----

async def redirect(a, to, status=302):
    await a.whole(b"elsewhere\n", status, headers=[("Location", to)])


async def chain(server, r, a):
    left = int(r.path.rsplit("/", 1)[1])
    if left:
        await redirect(a, f"/chain/{left - 1}")
    else:
        await ok(server, r, a)


async def loop(server, r, a):
    await redirect(a, "/loop" if r.path == "/loop" else "/chain/../loop")


async def to(server, r, a):
    await redirect(a, r.text("url", "/ok"), r.number("status", 302))


# ---- routes: headers without measure ----

async def headers(server, r, a):
    size, line = r.number("bytes", 10 * MIB), b"X-More: " + b"0123456789abcdef" * 4 + b"\r\n"
    kind = r.text("as", "headers")
    if kind == "1xx":
        line = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
    elif kind == "trailers":
        await a.begin(200, [("Transfer-Encoding", "chunked"), ("Trailer", "X-More")])
        await a.chunk(b"body")
        await a.raw(b"0\r\n")
    else:
        await a.raw(b"HTTP/1.1 200 OK\r\n" + (b"X-Long: " if kind == "line" else b""))
    if kind == "line":
        line = b"0123456789abcdef" * 4
    block = line * (1 + (1 << 16) // len(line))
    for _ in range(1 + size // len(block)):
        await a.raw(block)
    await a.raw(b"\r\n" if kind != "1xx" else b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    raise Gone


# ---- routes: fewer, later, again ----

def retry_after(r):
    if "date" in r.query:
        return [("Retry-After", email.utils.formatdate(time.time() + r.number("date", 0), usegmt=True))]
    return [("Retry-After", r.text("after"))] if "after" in r.query else []


async def throttle(server, r, a):
    await a.whole(b"slow down\n", r.number("status", 429), headers=retry_after(r))


async def storm(server, r, a):
    server.counts[r.target] += 1
    if server.counts[r.target] > r.number("n", 3):
        await ok(server, r, a)
        return
    status = r.number("status", 503 if r.path == "/storm" else 500)
    await a.whole(b"not now\n", status, headers=retry_after(r))


async def cond(server, r, a):
    version = server.versions.get(r.path.partition("/cond/")[2], 1)
    etag = f'"v{version}"'
    date = email.utils.formatdate(LAST_MODIFIED + version, usegmt=True)
    which = r.text("with", "both")
    marks = [("ETag", etag)] * (which != "date") + [("Last-Modified", date)] * (which != "etag")
    same = (r.head.get("if-none-match") == etag if "if-none-match" in r.head
            else r.head.get("if-modified-since") == date)
    if same:
        await a.whole(status=304, headers=marks)
    else:
        await a.whole(body_of(f"{r.path}@{version}", r.number("size", 1024)), headers=marks)


async def sleep(server, r, a):
    await asyncio.sleep(float(r.text("s", "1")))
    await ok(server, r, a)


async def blocked(server, r, a):
    await a.whole(b"<html><title>Just a moment</title>Please confirm that you are human.</html>\n",
                  kind="text/html")


async def status(server, r, a):
    await a.whole(r.text("body").encode(), int(r.path.rsplit("/", 1)[1]), r.text("type", "text/plain"),
                  retry_after(r))


async def echo(server, r, a):
    told = {"method": r.method, "target": r.target, "headers": r.headers,
            "body": r.body.decode("utf-8", "replace")}
    await a.whole(json.dumps(told).encode(), kind="application/json")


# ---- robots.txt ----

async def robots(server, r, a):
    """allow; disallow (path= [/]); delay (delay= [2]); 404; 500; redirect (url=); loop; huge (a rule at
    the start, one past 600 KiB); slow (5 bytes a second); html (a page instead)."""
    rule = server.robots.get(r.host, {"as": "404"})
    kind = rule["as"]
    path, delay = rule.get("path", "/"), rule.get("delay", "2")
    texts = {
        "allow": "User-agent: *\nAllow: /\n",
        "disallow": f"User-agent: *\nDisallow: {path}\n",
        "delay": f"User-agent: *\nCrawl-delay: {delay}\n",
        "huge": "User-agent: *\nDisallow: /first\n" + "# filler line\n" * 45000 + "Disallow: /last\n",
        "html": "<html><body>welcome</body></html>\n",
    }
    if kind in texts:
        await a.whole(texts[kind].encode(), kind="text/html" if kind == "html" else "text/plain")
    elif kind == "redirect":
        await redirect(a, rule.get("url", "/robots-moved.txt"), 301)
    elif kind == "loop":
        await redirect(a, "/robots.txt")
    elif kind == "slow":
        await a.begin(200, [("Content-Length", 1000)])
        for _ in range(1000):
            await a.raw(b"#")
            await asyncio.sleep(0.2)
    else:
        await a.whole(b"no robots.txt\n", int(kind))


# ---- routes: for the tests themselves ----

async def log(server, r, a):
    entries = [e for e in server.entries if e["n"] >= r.number("since", 0)]
    await a.whole(json.dumps(entries).encode(), kind="application/json")


async def stats(server, r, a):
    await a.whole(json.dumps(server.stats()).encode(), kind="application/json")


async def set_(server, r, a):
    if "cond" in r.query:
        server.versions[r.text("cond")] = r.number("version", 2)
    if "robots" in r.query:
        server.robots[r.text("robots")] = dict(r.query)
    await a.whole(b"set\n")


ROUTES = {
    "/ok": ok, "/page": ok, "/gzip": coded, "/deflate": coded, "/bomb": bomb, "/slow": slow,
    "/endless": endless, "/length": length, "/close": close, "/reset": reset, "/garbage": garbage,
    "/nobody": nobody, "/chain": chain, "/loop": loop, "/pingpong": loop, "/to": to,
    "/headers": headers, "/throttle": throttle, "/storm": storm, "/flaky": storm, "/cond": cond,
    "/sleep": sleep, "/blocked": blocked, "/status": status, "/echo": echo, "/robots.txt": robots,
    "/__log": log, "/__stats": stats, "/__set": set_,
}


# ---- certificates ----

def make_certificates(folder):
    """A CA of its own; what it signed for loopback, one for another name, one of the past; and one
    that nobody signed."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE)

    def write(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    here = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:127.0.0.2,IP:127.0.0.3"
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=test CA", "-keyout", "ca.key",
            "-out", "ca.pem")
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=localhost", "-addext", here,
            "-keyout", "self-signed.key", "-out", "self-signed.pem")
    write("index", "")
    write("ca.conf", "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nrand_serial=yes\nnew_certs_dir=.\n"
          "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n"
          f"[good]\n{here}\n[expired]\n{here}\n[wrong-host]\nsubjectAltName=DNS:elsewhere.example\n")
    past = ["-startdate", "20200101000000Z", "-enddate", "20200102000000Z"]
    for name in ("good", "expired", "wrong-host"):
        openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl("ca", "-batch", "-notext", "-config", "ca.conf", "-cert", "ca.pem", "-keyfile", "ca.key",
                "-extensions", name, "-in", f"{name}.csr", "-out", f"{name}.pem",
                *(past if name == "expired" else ["-days", "2"]))


# ---- the server ----

def free_sockets(addresses):
    """Listening sockets at one port that is free at all the addresses."""
    for _ in range(50):
        sockets, port = [], 0
        try:
            for address in addresses:
                s = socket.socket()
                sockets.append(s)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind((address, port))
                s.listen(4096)
                s.setblocking(False)
                port = s.getsockname()[1]
            return sockets, port
        except OSError:
            for s in sockets:
                s.close()
    raise OSError("no port is free at all the addresses")


def raise_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def hosts(n):
    """n loopback addresses besides 127.0.0.1."""
    return [f"127.{1 + i // 62500}.{1 + i // 250 % 250}.{1 + i % 250}" for i in range(n)]


class FetchServer:
    """Serves on a thread of its own between enter and exit."""

    TLS = ("good", "self-signed", "expired", "wrong-host")

    def __init__(self, addresses=(), tls=False):
        for address in addresses:
            assert address.startswith("127."), "loopback only"
        self.addresses = ["127.0.0.1", *addresses]
        self.tls = tls
        self.port, self.ports, self.folder = 0, {}, None
        self.entries = collections.deque(maxlen=LOGGED)
        self.counts, self.versions, self.robots = collections.Counter(), {}, {}
        self.requests = self.connections = self.open = self.most_open = 0

    # What tests ask.

    def url(self, path="/", host="127.0.0.1", tls=None):
        return f"https://{host}:{self.ports[tls]}{path}" if tls else f"http://{host}:{self.port}{path}"

    def log(self, path=None):
        return [e for e in list(self.entries) if path is None or e["path"] == path]

    def stats(self):
        return {"requests": self.requests, "connections": self.connections, "open": self.open,
                "most_open": self.most_open}

    @property
    def ca_file(self):
        return os.path.join(self.folder, "ca.pem")

    # Its life.

    def __enter__(self):
        raise_files()
        self.folder = tempfile.mkdtemp(prefix="fetchserver-")
        if self.tls:
            make_certificates(self.folder)
        sockets, self.port = free_sockets(self.addresses)
        listeners = [(sockets, None)]
        for name in self.TLS if self.tls else ():
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(os.path.join(self.folder, name + ".pem"),
                                    os.path.join(self.folder, name + ".key"))
            sockets, self.ports[name] = free_sockets(["127.0.0.1"])
            listeners.append((sockets, context))
        self.aio = asyncio.new_event_loop()
        self.aio.run_until_complete(self.listen(listeners))
        self.thread = threading.Thread(target=self.aio.run_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.aio.call_soon_threadsafe(self.aio.stop)
        self.thread.join()
        for task in asyncio.all_tasks(self.aio):
            task.cancel()
        self.aio.run_until_complete(asyncio.sleep(0))
        for server in self.servers:
            server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def listen(self, listeners):
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # clients that go away
        self.servers = [await asyncio.start_server(self.connection, sock=s, ssl=context, limit=MIB)
                        for sockets, context in listeners for s in sockets]

    # One connection.

    async def connection(self, reader, writer):
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        number = self.connections
        try:
            while await self.request(reader, writer, number):
                pass
        except (Gone, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def read(self, reader, number):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        pairs = [[part.strip() for part in line.split(":", 1)] for line in lines[1:] if ":" in line]
        size = next((int(value) for name, value in pairs if name.lower() == "content-length"), 0)
        body = await reader.readexactly(size) if size else b""
        return Request(method, target, pairs, body, number)

    async def request(self, reader, writer, number):
        r = await self.read(reader, number)
        if not r.path.startswith("/__"):
            self.requests += 1
            self.entries.append({"n": self.requests, "connection": number, "time": time.time(),
                                 "method": r.method, "target": r.target, "path": r.path,
                                 "host": r.head.get("host", ""),
                                 "address": writer.get_extra_info("sockname")[0],
                                 "headers": r.headers, "body": r.body.decode("utf-8", "replace")})
        name = "/" + r.path.split("/", 2)[1]
        a = Answer(writer, r)
        if name in ROUTES:
            await ROUTES[name](self, r, a)
        else:
            await a.whole(b"nothing here\n", 404)
        return r.head.get("connection", "").lower() != "close"


# ---- HTTP/2 ----

NGINX = """
pid {at}/pid; error_log {at}/error.log warn; worker_processes 1; {user}
events {{ worker_connections 8192; }}
http {{
  log_format told '$connection $connection_requests $server_protocol $status $request_uri';
  access_log {at}/access.log told; client_body_temp_path {at}/t1; proxy_temp_path {at}/t2;
  fastcgi_temp_path {at}/t3; uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;
  default_type text/html; keepalive_requests 1000000; http2_max_concurrent_streams 128;
  server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {cert}.pem; ssl_certificate_key {cert}.key;
            root {pages}; location = /headers {{ {headers} return 200 x; }} }}
  server {{ listen 127.0.0.1:{plain}; root {pages}; }}
}}
"""


def nginx_program():
    return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


class Nginx:
    """nginx in front of a folder of pages: HTTP/2 over TLS at `port`, plain HTTP at `plain`. Over HTTP/2
    /headers has more than a megabyte of them."""

    def __init__(self, pages):
        self.pages = os.path.abspath(pages)

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="fetchnginx-")
        make_certificates(self.folder)
        self.ca_file = os.path.join(self.folder, "ca.pem")
        for _ in range(10):  # a port that was free may be taken meanwhile
            (s1,), self.port = free_sockets(["127.0.0.1"])
            (s2,), self.plain = free_sockets(["127.0.0.1"])
            s1.close()
            s2.close()
            if self.start():
                return self
        words = self.errors()
        shutil.rmtree(self.folder, ignore_errors=True)
        raise OSError("nginx does not start: " + words)

    def start(self):
        conf = os.path.join(self.folder, "nginx.conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(NGINX.format(at=self.folder, port=self.port, plain=self.plain, pages=self.pages,
                                 cert=os.path.join(self.folder, "good"),
                                 headers="".join(f"add_header X-{i} {'x' * 3000};" for i in range(400)),
                                 user="user root;" if os.getuid() == 0 else ""))
        errors = os.path.join(self.folder, "error.log")
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", nginx_program(), "-p",
                                         self.folder, "-c", conf, "-e", errors, "-g", "daemon off;"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.plain), 1).close()
                return True
            time.sleep(0.02)
        self.stop()
        return False

    def errors(self):
        with contextlib.suppress(OSError), open(os.path.join(self.folder, "error.log"),
                                                encoding="utf-8") as f:
            return f.read()
        return ""

    def log(self):
        """[connection, request of it, protocol, status, path] of each request."""
        with open(os.path.join(self.folder, "access.log"), encoding="utf-8") as f:
            return [line.split() for line in f]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- as a program ----

def write_ports(path, server, nginx):
    lines = [f"http {server.port}", *(f"{name} {port}" for name, port in server.ports.items())]
    if server.tls:
        lines.append(f"ca {server.ca_file}")
    if nginx:
        lines += [f"h2 {nginx.port}", f"h2-ca {nginx.ca_file}"]
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    os.rename(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description="A scripted web server for tests.")
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--hosts", type=int, default=0, help="loopback addresses besides 127.0.0.1")
    parser.add_argument("--pages", help="a folder for nginx, if it is installed: h2 PORT, h2-ca FILE")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input does")
    args = parser.parse_args()
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    if args.with_parent:
        threading.Thread(target=lambda: (sys.stdin.buffer.read(), over.set()), daemon=True).start()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(FetchServer(hosts(args.hosts), args.tls))
        nginx = stack.enter_context(Nginx(args.pages)) if args.pages and nginx_program() else None
        write_ports(args.port_file, server, nginx)
        while not over.wait(0.5):
            pass


if __name__ == "__main__":
    main()
