#!/usr/bin/python3
"""A throw-away PostgreSQL for tests, from Debian's packages, in a temporary folder: in memory when its
commits need not reach the disk and there is room.

    tests/lib/pgserver [--fsync] [--stay] [-- COMMAND…]

Runs COMMAND with PAWL_TEST_PG_URL in its environment and ends the server with it. Without a command
it prints that URL (a unix socket) and the same over TCP, one a line, and waits to be ended by a
signal; it also ends with its parent, unless --stay is given.

Never runs as root: root drops to `postgres` or `nobody`. The server ends with the process that
started it, whatever ends that, and its folder is removed then. From Python:

    with PgServer() as server:
        server.url, server.tcp_url, server.psql("SELECT 1"), server.kill9(), server.start()

A store of a test's own is a schema of its own (fresh_schema()): it costs what pawl's own set-up of
a schema costs, while a database from a template cost 60 ms and a checkpoint here. But a schema costs more
the more there are beside it, twice as much among 600: tools/run-tests lends every test program a database
(lent_url()). What is about whole databases takes fresh_url().
"""
import argparse
import contextlib
import ctypes
import glob
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

PR_SET_PDEATHSIG = 1
LIMIT = 60  # seconds for a start or an end
LONGEST_SOCKET = 90  # bytes of its folder; the kernel's limit is 107 with the name
MEMORY = "/dev/shm"
ROOMY = 4 << 30  # bytes: a whole test run comes to hold half a GiB, servers and folders together
SETTINGS = {
    "shared_buffers": "64MB", "max_connections": "200", "fsync": "off", "full_page_writes": "off",
    "synchronous_commit": "on", "autovacuum_naptime": "5s", "log_min_messages": "warning",
    "log_min_error_statement": "panic", "max_wal_size": "256MB", "timezone": "UTC",
    "wal_level": "replica", "max_wal_senders": "2", "jit": "off",
}


def programs():
    """The folder of the newest server's programs, or None."""
    found = glob.glob("/usr/lib/postgresql/*/bin/postgres")
    newest = sorted(found, key=lambda path: float(path.split("/")[4]))
    return os.path.dirname(newest[-1]) if newest else None


def _other_user():
    """Whom root becomes; None for everybody else."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _end_with_parent():
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0)


def free_port(address="127.0.0.1"):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


def children(pid):
    """All there are, if none is made meanwhile: /proc/PID/task/PID/children may leave some out."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{int(name)}/stat", encoding="utf-8", errors="replace") as f:
                if int(f.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(name))
        except (ValueError, OSError):
            continue
    return found


def roomy(folder):
    """Whether a server may be kept in memory there: the hundred files of a schema cost half as much."""
    try:
        disk = os.statvfs(folder)
        with open("/proc/meminfo", encoding="utf-8") as f:
            free = next(int(line.split()[1]) for line in f if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return False
    return os.access(folder, os.W_OK) and min(disk.f_bavail * disk.f_frsize, free << 10) > ROOMY


def lives(pid):
    """A zombie does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def signal_all(pids, signo):
    for pid in pids:
        try:
            os.kill(pid, signo)
        except ProcessLookupError:
            pass


class PgServer:
    """One server. Started when made; `settings` go on top of SETTINGS, `hba` lines come first."""

    def __init__(self, fsync=False, listen="127.0.0.1", port=0, settings=None, hba=()):
        self.bin = programs()
        if not self.bin:
            raise RuntimeError("no PostgreSQL server is installed (Debian package: postgresql)")
        self.user = _other_user()
        self.listen, self.hba = listen, list(hba)
        self.settings = {**SETTINGS, **({"fsync": "on", "full_page_writes": "on"} if fsync else {}),
                         **(settings or {})}
        self.process = None
        self.folder = self._make_folder()
        self.data = os.path.join(self.folder, "data")
        self._watch()
        try:
            self.port = port or free_port()
            self._init()
            self.start()
            self._fill()
        except BaseException:
            self.close()
            raise

    def _make_folder(self):
        base = MEMORY if self.settings["fsync"] == "off" and roomy(MEMORY) else tempfile.gettempdir()
        if len(base) > LONGEST_SOCKET - 20 or not self._reaches(base):
            base = "/tmp"
        folder = tempfile.mkdtemp(prefix="pg-", dir=base)
        if self.user:
            os.chown(folder, self.user.pw_uid, self.user.pw_gid)
        os.chmod(folder, 0o711)  # other users connect to the socket
        return folder

    def _reaches(self, base):
        """Whether the server's user may go through every folder above."""
        if not self.user:
            return True
        return self._run(["test", "-x", base]).returncode == 0

    def _watch(self):
        """When we are gone, however that came: end the server and remove the folder."""
        read, self.lifeline = os.pipe()
        script = ('cat; p=$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null); '
                  'lives() { grep -qs "^State:[[:space:]]*[^Z]" "/proc/$p/status"; }; '
                  'if [ -n "$p" ] && [ "$(cat "/proc/$p/comm" 2>/dev/null)" = postgres ]; then '
                  'kill -QUIT "$p"; n=0; while lives && [ $n -lt 100 ]; do '
                  'n=$((n + 1)); sleep 0.1; done; fi; rm -rf "$0"')
        self.watcher = subprocess.Popen(
            ["sh", "-c", script, self.folder], stdin=read, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, cwd="/")
        os.close(read)

    def _as_user(self):
        if not self.user:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}

    def _run(self, command, **options):
        return subprocess.run(command, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, env=self._env(), **self._as_user(), **options)

    def _env(self):
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "HOME": "/"}

    def _init(self):
        done = self._run([os.path.join(self.bin, "initdb"), "-N", "-D", self.data, "-U", "pawl",
                          "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions",
                          "--wal-segsize=4"])
        if done.returncode:
            raise RuntimeError("initdb failed:\n" + done.stdout)
        with open(os.path.join(self.data, "postgresql.auto.conf"), "a", encoding="utf-8") as f:
            f.writelines(f"{key} = '{value}'\n" for key, value in self.settings.items())
        with open(os.path.join(self.data, "pg_hba.conf"), "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in self.hba)
            f.write("local all all trust\nhost all all all trust\n"
                    "local replication all trust\nhost replication all all trust\n")

    def _fill(self):
        self.psql("CREATE DATABASE pawl", database="postgres")

    # ---- life ----

    def start(self, wait=True):
        """Start, or start again after stop() or kill9(), on the same port."""
        self.log_path = os.path.join(self.folder, "log")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [os.path.join(self.bin, "postgres"), "-D", self.data, "-p", str(self.port),
                 "-c", f"listen_addresses={self.listen}",
                 "-c", f"unix_socket_directories={self.folder}"],
                cwd="/", env=self._env(), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=_end_with_parent,
                **self._as_user())
        if wait:
            self.wait_ready()

    def wait_ready(self):
        end = time.monotonic() + LIMIT
        while True:
            if self.process.poll() is not None:
                raise RuntimeError("the server ended at once:\n" + self.log())
            ready = self._run([os.path.join(self.bin, "pg_isready"), "-q", "-h", self.folder,
                               "-p", str(self.port), "-t", "1"])
            if ready.returncode == 0:
                return
            if time.monotonic() > end:
                raise RuntimeError("the server does not answer:\n" + self.log())
            time.sleep(0.02)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, mode="fast"):
        """smart waits for clients, fast ends them, immediate is a crash that says goodbye."""
        if self.running():
            self.process.send_signal({"smart": signal.SIGTERM, "fast": signal.SIGINT,
                                      "immediate": signal.SIGQUIT}[mode])
            self.process.wait(LIMIT)

    def stop_all(self):
        """SIGSTOP to the server and then to its backends, which none can be added to by then."""
        if not self.running():
            return []
        os.kill(self.process.pid, signal.SIGSTOP)
        pids = [self.process.pid, *children(self.process.pid)]
        signal_all(pids, signal.SIGSTOP)
        return pids

    def kill9(self):
        """kill -9 of the server and all its backends, as a crash of its machine."""
        self.process.send_signal(signal.SIGSTOP)  # its list of children stands still
        pids = self.stop_all()  # none may act on the death of another
        signal_all(pids, signal.SIGKILL)
        self.process.wait(LIMIT)
        end = time.monotonic() + LIMIT
        while any(map(lives, pids)) and time.monotonic() < end:
            time.sleep(0.01)

    def freeze(self):
        """Hangs: connections stay open, nothing is answered. Ended by thaw()."""
        self.frozen = self.stop_all()

    def thaw(self):
        signal_all(self.frozen, signal.SIGCONT)

    def close(self):
        if self.running():
            self.stop("immediate")
        os.close(self.lifeline)
        self.watcher.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    # ---- use ----

    def make_url(self, user="pawl", database="pawl", host=None, port=None, password=None, **options):
        """Over the socket, or over TCP to `host`."""
        login = urllib.parse.quote(user, "") + (f":{urllib.parse.quote(password, '')}" if password
                                                else "")
        if host is None:
            options = {"host": self.folder, "port": port or self.port, **options}
            place = ""
        else:
            place = f"{host}:{port or self.port}"
        query = "&".join(f"{k}={urllib.parse.quote(str(v), '/')}" for k, v in options.items())
        return f"postgres://{login}@{place}/{database}" + (f"?{query}" if query else "")

    @property
    def url(self):
        return self.make_url()

    @property
    def tcp_url(self):
        return self.make_url(host="127.0.0.1")

    def fresh_url(self):
        """The URL of a new, empty database."""
        name = "d_" + secrets.token_hex(6)
        self.psql(f"CREATE DATABASE {name}", database="postgres")
        return self.make_url(database=name)

    @contextlib.contextmanager
    def lent_url(self):
        """The URL of a new database that is gone afterwards, with whoever is still connected."""
        url = self.fresh_url()
        try:
            yield url
        finally:
            name = urllib.parse.urlsplit(url).path[1:]
            self.psql(f"DROP DATABASE {name} WITH (FORCE)", database="postgres", check=False)

    def psql(self, sql, database="pawl", user="pawl", check=True):
        return psql(self.make_url(user=user, database=database), sql, check=check)


class Standby(PgServer):
    """A read-only copy that follows another server."""

    def __init__(self, primary):
        self.primary = primary
        super().__init__()

    def _init(self):
        done = self._run([os.path.join(self.bin, "pg_basebackup"), "-D", self.data, "-R", "-X",
                          "stream", "-c", "fast", "-h", self.primary.folder, "-p",
                          str(self.primary.port), "-U", "pawl"])
        if done.returncode:
            raise RuntimeError("pg_basebackup failed:\n" + done.stdout)

    def _fill(self):
        pass


class Pooler:
    """pgbouncer in transaction mode in front of a server, with few connections to share."""

    def __init__(self, server, connections=3):
        self.port = free_port()
        self.path = os.path.join(server.folder, f"bouncer-{self.port}")
        with open(self.path + ".ini", "w", encoding="utf-8") as f:
            f.write(f"[databases]\n* = host={server.folder} port={server.port} user=pawl\n"
                    f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\n"
                    "unix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
                    f"default_pool_size = {connections}\nmax_client_conn = 200\n")
        os.chmod(self.path + ".ini", 0o644)
        self.log_file = open(self.path + ".log", "wb")
        self.process = subprocess.Popen(
            [shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", self.path + ".ini"], cwd="/",
            stdin=subprocess.DEVNULL, stdout=self.log_file, stderr=subprocess.STDOUT,
            preexec_fn=_end_with_parent, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, **server._as_user())
        self.url = server.make_url(host="127.0.0.1", port=self.port)
        end = time.monotonic() + LIMIT
        while psql(self.url, "SELECT 1", check=False).returncode:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("pgbouncer does not answer:\n" + self.log())
            time.sleep(0.05)

    def log(self):
        with open(self.path + ".log", encoding="utf-8", errors="replace") as f:
            return f.read()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log_file.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def fresh_schema():
    """A name that no other test has."""
    return "t_" + secrets.token_hex(6)


def psql(url, sql, check=True, schema=None):
    """Rows as lines, columns divided by |. check=False: the finished process instead."""
    env = {**os.environ, "PGOPTIONS": f"-c search_path={schema}"} if schema else dict(os.environ)
    # Not /usr/bin/psql: Debian's is a Perl program that looks for the one to run.
    program = os.path.join(programs() or "", "psql")
    done = subprocess.run([program, "-XqAt", "-v", "ON_ERROR_STOP=1", url, "-c", sql], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd="/")
    if check and done.returncode:
        raise RuntimeError(f"psql: {done.stderr.strip()}\nin: {sql}")
    return done.stdout.strip() if check else done


def main():
    argv = sys.argv[1:]
    command = argv[argv.index("--") + 1:] if "--" in argv else []
    parser = argparse.ArgumentParser(description="A throw-away PostgreSQL for tests.",
                                     usage="%(prog)s [--fsync] [--stay] [-- COMMAND...]")
    parser.add_argument("--fsync", action="store_true", help="commits reach the disk")
    parser.add_argument("--stay", action="store_true", help="do not end with the parent")
    args = parser.parse_args(argv[:argv.index("--")] if "--" in argv else argv)
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(signo, lambda number, _frame: sys.exit(128 + number))
    if not args.stay:
        _end_with_parent()
    with PgServer(fsync=args.fsync) as server:
        if command:
            return subprocess.run(command, env={**os.environ, "PAWL_TEST_PG_URL": server.url}
                                  ).returncode
        print(server.url, server.tcp_url, sep="\n", flush=True)
        server.process.wait()
        return 1


if __name__ == "__main__":
    sys.exit(main())
