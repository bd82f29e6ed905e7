"""What the tests of limits share: the store's record in microseconds, and settings."""
import json
import os
import re

from limitcheck import Event
from pawltest import ROOT, Timeout, wait_until


def _names():
    with open(os.path.join(ROOT, "src", "core", "events.def"), encoding="utf-8") as f:
        return {int(n): name for n, name in re.findall(r'^X\(\w+,\s*(\d+),\s*"(\w+)"', f.read(), re.M)}


NAMES = _names()


def _number(text):
    return int(text) if text not in ("", "None") else None


def recorded(lab, *types):
    """Events as the store wrote them; `types` are names, none is all."""
    numbers = ",".join(str(n) for n, name in NAMES.items() if name in types)
    where = f" WHERE type IN ({numbers})" if types else ""
    rows = lab.sql(f"SELECT id, at, type, job, fence, worker FROM v_events{where} ORDER BY id")
    return [Event(int(i), int(at), NAMES[int(kind)], _number(job), _number(fence), worker)
            for i, at, kind, job, fence, worker in rows]


def jobs_by(lab, column):
    """{value of that column of v_jobs: set of ids}"""
    found = {}
    for job, value in lab.sql(f"SELECT id, {column} FROM v_jobs"):
        found.setdefault(value, set()).add(int(job))
    return found


def configure(lab, text):
    """The configuration file of the lab's folder."""
    with open(lab.path("pawl.yaml"), "w", encoding="utf-8") as f:
        f.write(text)


def asked(lab, *args):
    """The JSON that a command prints."""
    return json.loads(lab.pawl(*args, "--json").stdout)


def gate(lab, limit, value=""):
    """{column: number} of one gate; None until something met it."""
    columns = "interval_us, held_until, breaker, until, failures, opens, epoch"
    rows = lab.sql(f"SELECT {', '.join('g.' + c for c in columns.split(', '))} FROM gate g "
                   f"JOIN limits l ON l.id = g.limit_id WHERE l.name = '{limit}' AND "
                   f"g.value = '{value}'")
    return dict(zip(columns.split(", "), map(int, rows[0]))) if rows else None


def grown_to(lab, count, timeout, *types):
    """Wait until there are so many events of these types; what there is."""
    try:
        return wait_until(lambda: (lambda v: v if len(v) >= count else None)(recorded(lab, *types)),
                          timeout, f"{count} events {'/'.join(types)}", 0.05)
    except Timeout as e:
        raise Timeout(f"{e}; there are {len(recorded(lab, *types))}; {lab.counts()}") from None


def workers(lab, count, *args):
    """So many `pawl run`, all started at once and registered."""
    started = [lab.start("run", *args) for _ in range(count)]
    pids = {process.pid for process in started}

    def registered():
        dead = next((p for p in started if not p.alive()), None)
        if dead:
            raise AssertionError("a worker ended at once:\n" + dead.log())
        return pids <= {row["pid"] for row in asked(lab, "workers")}
    wait_until(registered, 30, f"{count} workers to register", 0.05)
    return started
