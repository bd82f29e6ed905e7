"""Shared by the black-box tests: run pawl, wait for states, keep track of processes, print TAP.

A test is a program that makes a Lab (a temporary folder with a store in it), starts pawl there, and
reports with its Tap. Nothing sleeps to synchronise: wait_until() waits for a state, with a limit.

From the environment: PAWL (the binary under test), PAWL_TEST_FLAVOUR (tsan: some tests are
smaller), PAWL_TEST_RELEASE, PAWL_TEST_CAMPAIGN (1, or how many rounds a campaign should have),
PAWL_TEST_SEED; PAWL_TEST_STORE (postgres: the lab's store is a schema of its own in the server at
PAWL_TEST_PG_URL instead of a file in its folder).
"""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from datetime import datetime

import pgserver

LIB = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(LIB))
TERMINAL = {"done", "skipped", "failed", "cancelled"}
SHOWN = 40  # diagnostic lines of one failure


def _binary(name, fallback):
    return os.path.abspath(os.environ.get(name) or fallback)


PAWL = _binary("PAWL", os.path.join(ROOT, "build", "pawl"))
RELEASE = _binary("PAWL_TEST_RELEASE", os.environ.get("PAWL_RELEASE") or PAWL)
TSAN = os.environ.get("PAWL_TEST_FLAVOUR") == "tsan"
ON_POSTGRES = os.environ.get("PAWL_TEST_STORE") == "postgres"


def campaign(default):
    """How often to repeat when a campaign runs, or 0."""
    value = int(os.environ.get("PAWL_TEST_CAMPAIGN") or 0)
    return default if value == 1 else value


def seeded():
    """A random generator whose seed is printed, and taken from PAWL_TEST_SEED to run again."""
    seed = int(os.environ.get("PAWL_TEST_SEED") or random.SystemRandom().getrandbits(32))
    print(f"# seed {seed} (PAWL_TEST_SEED={seed} runs it again)", flush=True)
    return random.Random(seed)


class Timeout(Exception):
    pass


def wait_until(condition, timeout, what, every=0.01):
    """The first true value of condition(); Timeout after that many seconds."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Timeout(f"waited {timeout} s for: {what}")
        time.sleep(every)


def when(text):
    """A time printed by pawl, in seconds since 1970; None stays None."""
    if text is None:
        return None
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Tap:
    """Results of one test program. A case that raises is a failure, the next ones still run."""

    def __init__(self):
        self.number = self.failed = 0

    def ok(self, good, name, *diagnostics):
        self.number += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.number} - {name}", flush=True)
        if not good:
            self.say(*diagnostics)
        return good

    def same(self, got, expected, name, *diagnostics):
        return self.ok(got == expected, name, f"got {got!r}, expected {expected!r}", *diagnostics)

    def skip(self, name, reason):
        self.number += 1
        print(f"ok {self.number} - {name} # SKIP {reason}", flush=True)

    def say(self, *words):
        lines = [line for word in words for line in str(word).splitlines()]
        for line in lines[:SHOWN]:
            print("#   " + line, flush=True)
        if len(lines) > SHOWN:
            print(f"#   … {len(lines) - SHOWN} more lines", flush=True)

    def run(self, *cases):
        """Call each with a fresh Lab and this Tap; end the program with the plan."""
        for case in cases:
            name = case.__name__
            try:
                with Lab(name) as lab:
                    case(lab, self)
            except Exception:  # whatever it is, it is this case's failure
                self.ok(False, f"{name} ran to its end", traceback.format_exc())
        print(f"1..{self.number}", flush=True)
        sys.exit(1 if self.failed else 0)


class Process:
    """A pawl that runs beside the test; its words are in .log()."""

    def __init__(self, popen, err_path, argv):
        self.popen, self.err_path, self.argv = popen, err_path, argv
        self.pid = popen.pid

    def log(self):
        with open(self.err_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def alive(self):
        return self.popen.poll() is None

    def signal(self, signo):
        self.popen.send_signal(signo)

    def kill(self):
        """kill -9; returns when the kernel has taken it away."""
        self.popen.kill()
        return self.popen.wait()

    def wait(self, timeout):
        """Its exit status; negative for a signal."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            words = f"{' '.join(self.argv)} still runs after {timeout} s\n{self.log()}"
            raise Timeout(words) from None


class Lab:
    """A temporary folder with a store, and every process started in it."""

    def __init__(self, name, folder=None):
        self.own = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix=f"pawl-{name}-")
        self.url = os.environ["PAWL_TEST_PG_URL"] if ON_POSTGRES else None
        self.new_store()
        self.binary = PAWL
        self.settings = {}
        self.started = []
        self.count = 0
        self.undo = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0]:
            self.tell_logs()
        self.end_all()
        self.undo.close()
        if self.own:
            shutil.rmtree(self.folder, ignore_errors=True)

    def tell_logs(self):
        for process in self.started:
            tail = process.log().splitlines()[-15:]
            print(f"#   log of {process.pid} ({' '.join(process.argv)}):", flush=True)
            for line in tail:
                print("#     " + line, flush=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def new_store(self, name="pawl"):
        """From now on another one, which does not exist yet. `store` is its file on SQLite."""
        self.store, self.schema = self.path(name + ".db"), pgserver.fresh_schema()

    def log_folder(self):
        """Where the output of jobs is kept."""
        return self.path("logs") if self.url else self.store + "-logs"

    def set(self, **settings):
        """Configuration for all that follows: worker_lease="1s" becomes PAWL_WORKER_LEASE."""
        self.settings.update(settings)

    def env(self, settings):
        """The caller's environment without its PAWL…, with TMPDIR as the mark of this lab: every
        process of every job inherits it."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL")}
        env["TMPDIR"] = self.folder
        if self.url:
            env.update(PAWL_STORE=self.url, PAWL_POSTGRES_SCHEMA=self.schema,
                       PAWL_LOG_ROOT=self.log_folder())
        else:
            env["PAWL_STORE"] = "sqlite:" + self.store
        env["NO_COLOR"] = "1"
        for key, value in {**self.settings, **settings}.items():
            env["PAWL_" + key.upper()] = str(value)
        return env

    def pawl(self, *args, status=0, timeout=60, binary=None, input=None, **settings):
        """Run to its end; anything but the expected exit status (None: any) raises."""
        done = subprocess.run([binary or self.binary, *map(str, args)], cwd=self.folder,
                              env=self.env(settings), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=timeout, input=input,
                              stdin=subprocess.DEVNULL if input is None else None)
        if status is not None and done.returncode != status:
            raise AssertionError(f"pawl {' '.join(map(str, args))}: exit status {done.returncode}, "
                                 f"expected {status}\n{done.stderr}{done.stdout[-2000:]}")
        return done

    def start(self, *args, binary=None, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
              **settings):
        """Start and go on. A descriptor given as stdin is closed here."""
        argv = [binary or self.binary, *map(str, args)]
        self.count += 1
        err_path = self.path(f"err-{self.count}")
        with open(err_path, "wb") as err:
            popen = subprocess.Popen(argv, cwd=self.folder, env=self.env(settings), stdout=stdout,
                                     stderr=err, stdin=stdin)
        if stdin >= 0:
            os.close(stdin)
        process = Process(popen, err_path, ["pawl", *argv[1:]])
        self.started.append(process)
        return process

    def forget(self, process):
        """A process that has ended, in a test that starts thousands."""
        self.started.remove(process)
        os.unlink(process.err_path)

    def worker(self, *args, **settings):
        """A `pawl run` that has registered itself in the store."""
        process = self.start("run", *args, **settings)
        wait_until(lambda: self.session(process) or not process.alive(), 20, "a worker to register")
        if not process.alive():
            raise AssertionError("the worker ended at once:\n" + process.log())
        return process

    def session(self, process):
        """The worker's row, or None."""
        if not self.url and not os.path.exists(self.store):
            return None
        done = self.pawl("workers", "--json", status=None, binary=RELEASE)
        rows = json.loads(done.stdout) if done.returncode == 0 and done.stdout else []
        return next((row for row in rows if row["pid"] == process.pid), None)

    def add(self, *args, **settings):
        return int(self.pawl("add", *args, **settings).stdout)

    def imported(self, jobs, **settings):
        """`pawl import` of a list of objects."""
        text = "".join(json.dumps(job) + "\n" for job in jobs)
        return json.loads(self.pawl("import", "-", "--json", input=text, **settings).stdout)

    def show(self, job):
        return json.loads(self.pawl("show", job, "--json", binary=RELEASE).stdout)

    def state(self, job):
        return self.show(job)["state"]

    def wait_state(self, job, states, timeout=30):
        states = {states} if isinstance(states, str) else set(states)
        def arrived():
            found = self.show(job)
            return found if found["state"] in states else None
        try:
            return wait_until(arrived, timeout, f"job {job} to be {'/'.join(sorted(states))}", 0.02)
        except Timeout as e:
            raise Timeout(f"{e}; it is {json.dumps(self.show(job))}") from None

    def ndjson(self, *args):
        text = self.pawl(*args, "-o", "ndjson", binary=RELEASE).stdout
        return [json.loads(line) for line in text.splitlines()]

    def counts(self):
        """Jobs by state."""
        return json.loads(self.pawl("status", "--json", binary=RELEASE).stdout)["jobs"]

    def drain(self, *args, status=0, timeout=120, **settings):
        return self.pawl("run", "--drain", *args, status=status, timeout=timeout, **settings)

    def short_lease(self):
        """For tests that kill workers and wait for their jobs: only SQLite sees a death at once, on
        PostgreSQL the lease has to run out."""
        if self.url:
            self.set(worker_lease="1s", worker_heartbeat="200ms", worker_sweep_interval="200ms")

    def sql(self, text):
        """Rows of a query over the views or tables, as text."""
        if self.url:
            rows = pgserver.psql(self.url, text, schema=self.schema).splitlines()
            return [row.split("|") for row in rows]
        with contextlib.closing(sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)) as db:
            return [[str(value) for value in row] for row in db.execute(text)]

    def freeze(self, process):
        """SIGSTOP where it holds no transaction open: stopped inside one it would keep everybody
        from writing, which is not what such a test is about."""
        def stands_outside():
            process.signal(signal.SIGSTOP)
            if self._can_write():
                return True
            process.signal(signal.SIGCONT)
            return False
        wait_until(stands_outside, 20, "a worker to stop outside of a transaction")

    def _can_write(self):
        if self.url:
            tables = "session, job, lane, wake, settled, delta, event"
            return pgserver.psql(self.url, "BEGIN; SET LOCAL lock_timeout = '300ms'; LOCK TABLE "
                                 f"{tables} IN EXCLUSIVE MODE; ROLLBACK", check=False,
                                 schema=self.schema).returncode == 0
        with contextlib.closing(sqlite3.connect(self.store, timeout=0.3,
                                                isolation_level=None)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
                db.execute("ROLLBACK")
            except sqlite3.OperationalError:
                return False
            return True

    @contextlib.contextmanager
    def locked(self):
        """Nobody can write to the store meanwhile, as if another program held it."""
        if self.url:
            command = ["psql", "-Xq", self.url]
            begin = f"BEGIN; LOCK TABLE {self.schema}.session IN EXCLUSIVE MODE;"
        else:
            command, begin = ["sqlite3", self.store], ".timeout 10000\nBEGIN IMMEDIATE;"
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        holder.stdin.write(begin + "\n")
        holder.stdin.flush()
        try:
            yield
        finally:
            holder.stdin.write("ROLLBACK;\n")
            holder.stdin.close()
            holder.wait(30)

    def build(self, *names):
        """A helper in C, its path from beside this file, compiled into the lab."""
        source = os.path.join(LIB, *names)
        out = self.path("bin-" + os.path.basename(source)[:-2])
        if not os.path.exists(out):
            subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra",
                            "-o", out, source], check=True)
        return out

    def marked(self):
        """Processes of this lab's jobs and supervisors: {pid: command line}, zombies too."""
        mark = b"TMPDIR=" + self.folder.encode() + b"\0"
        own = {process.pid for process in self.started} | {os.getpid()}
        found = {}
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if pid in own or mark not in f.read() + b"\0":
                        continue
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    found[pid] = f.read().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue  # it ended meanwhile, or is another user's
        return found

    def jobs_alive(self, program):
        """Pids of marked processes that run this program."""
        return [pid for pid, command in self.marked().items() if program in command]

    def end_all(self):
        for process in self.started:
            if process.alive():
                process.kill()
            process.popen.wait()
        end = time.monotonic() + 10
        while self.marked() and time.monotonic() < end:
            for pid in self.marked():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    # ---- verdicts ----

    def check_events(self, *args, kind=None, sink=None, ids=None):
        """tools/check_events on the store as it is: (exit status, its words). With `kind` only jobs
        of that kind are looked at; sink and ids are files."""
        for name in ("list", "events"):
            rows = self.ndjson(name)
            with open(self.path(name + ".ndjson"), "w", encoding="utf-8") as f:
                f.writelines(json.dumps(row) + "\n" for row in rows
                             if kind is None or row.get("kind") == kind)
        command = [os.path.join(ROOT, "tools", "check_events"), "--list", self.path("list.ndjson"),
                   "--events", self.path("events.ndjson"), *args]
        if sink:
            command += ["--sink", two_columns(sink, self.path("sink.two"))]
        if ids:
            command += ["--ids", ids]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def integrity(self):
        """Everything that is wrong with the store: '' is what it should be."""
        done = self.pawl("doctor", status=None, binary=RELEASE)
        words = "" if done.returncode == 0 else done.stdout + done.stderr
        if self.url:
            return words
        db = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)
        try:
            rows = [row[0] for row in db.execute("PRAGMA integrity_check")]
        finally:
            db.close()
        return words + ("" if rows == ["ok"] else "\n".join(rows))


def two_columns(sink, out):
    """The sink's "JOB FENCE PID" lines as check_events wants them."""
    with open(sink, encoding="utf-8") as f, open(out, "w", encoding="utf-8") as to:
        for line in f:
            to.write(" ".join(line.split()[:2]) + "\n")
    return out


class Acks:
    """Ids that pawl printed, kept outside of the store and on the disk before anything else."""

    def __init__(self, path):
        self.path = path
        self.ids = []
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, printed):
        """What one `pawl add` printed; an id counts with its line feed."""
        ids = [int(line) for line in re.findall(r"^(\d+)\n", printed, re.M)]
        if ids:
            os.write(self.fd, "".join(f"{i}\n" for i in ids).encode())
            os.fsync(self.fd)
            self.ids += ids

    def close(self):
        os.close(self.fd)


def process_status(pid, field):
    """A field of /proc/PID/status, or None when there is no such process."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            for line in f:
                if line.startswith(field + ":"):
                    return line.split(":", 1)[1].strip()
    return None


def rss_kib(pid, field="VmRSS"):
    value = process_status(pid, field)
    return int(value.split()[0]) if value else 0
