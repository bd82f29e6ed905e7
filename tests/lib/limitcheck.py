"""Judges limits, breakers, locks and fairness from what the store recorded. Pure functions over lists;
tests/tools/t_limit_check plants errors in their input.

Times are whole microseconds of the store's clock. A finding is a line of text; none is what should be.
"""
import collections

ENDS = {"done", "skipped", "failed", "cancelled", "retried", "released", "lost"}

Event = collections.namedtuple("Event", "id at type job fence worker")
Lease = collections.namedtuple("Lease", "job fence start end how worker")  # end None: not yet


def in_order(events):
    """By store time; ids decide within one instant."""
    return sorted(events, key=lambda e: (e.at, e.id))


def leases_of(events):
    """Each claim with the first end under its fence, by start."""
    ends = {}
    for e in sorted(events, key=lambda e: e.id):
        if e.type in ENDS and e.fence:
            ends.setdefault((e.job, e.fence), e)
    found = []
    for e in in_order(events):
        if e.type == "claimed":
            end = ends.get((e.job, e.fence))
            found.append(Lease(e.job, e.fence, e.at, end.at if end else None,
                               end.type if end else None, e.worker))
    return found


def steps(leases):
    """(time, +1 or -1, lease) by time; an end comes before a start of the same instant."""
    points = []
    for lease in leases:
        if lease.end is not None and lease.end < lease.start:
            raise ValueError(f"{lease} ends before it starts")
        points.append((lease.start, 1, lease))
        if lease.end is not None:
            # A lease that took no time still was one.
            points.append((max(lease.end, lease.start), 2 if lease.end == lease.start else 0, lease))
    return [(at, -1 if kind != 1 else 1, lease)
            for at, kind, lease in sorted(points, key=lambda p: (p[0], p[1]))]


def over_cap(leases, cap):
    """Instants at which more than `cap` of these leases lived."""
    found, alive = [], 0
    for at, step, lease in steps(leases):
        alive += step
        if step > 0 and alive > cap:
            found.append(f"{alive} leases at {at}, {cap} are allowed: job {lease.job} "
                         f"under fence {lease.fence}")
    return found


def over_rate(starts, interval, burst):
    """Windows with more starts than their length / interval + burst. The worst is told."""
    starts = sorted(starts)
    worst, low, low_at = 0, None, None
    for i, at in enumerate(starts):
        # starts from j to i: i - j + 1 <= (t_i - t_j) / interval + burst
        level = i * interval - at
        if low is None or level < low:
            low, low_at = level, i
        excess = level - low + interval - burst * interval
        if excess > worst:
            worst, where = excess, (low_at, i)
    if not worst:
        return []
    first, last = where
    return [f"{last - first + 1} starts within {starts[last] - starts[first]} us from "
            f"{starts[first]}: {worst / interval:.2f} more than burst {burst} and one every "
            f"{interval} us allow"]


def cap_share(leases, cap, begin, end):
    """How much of `cap` places was used between two times: 0 to 1 (more if over the cap)."""
    used = sum(min(l.end if l.end is not None else end, end) - max(l.start, begin)
               for l in leases
               if l.start < end and (l.end is None or l.end > begin))
    return used / (cap * (end - begin))


def rate_share(starts, interval, burst, begin, end):
    """How many of the starts that were allowed between two times there were."""
    allowed = burst + (end - begin) / interval
    return sum(begin <= at <= end for at in starts) / allowed


def breaker_story(events, jobs):
    """One breaker and the jobs under it. Closed, it lets claims through; from each opening to the
    next opening or closing exactly one job is claimed, the one that `breaker_probed` names; an
    operator's closing needs none (a closing before any probe)."""
    found = []
    state, probe, probes = "closed", None, 0
    claims = {(e.job, e.fence) for e in events if e.type == "claimed"}
    named = {(e.job, e.fence) for e in events if e.type == "breaker_probed"}
    for e in in_order(events):
        if e.type == "breaker_probed":
            probes += 1
            if state != "open":
                found.append(f"probe of job {e.job} at {e.at} while {state}")
            if (e.job, e.fence) not in claims:
                found.append(f"probe of job {e.job} at {e.at} is no claim")
            state, probe = "half-open", (e.job, e.fence)
        elif e.type == "breaker_opened":
            if state == "open":
                found.append(f"opened twice at {e.at}")
            state, probe = "open", None
        elif e.type == "breaker_closed":
            if state == "closed":
                found.append(f"closed twice at {e.at}")
            state, probe = "closed", None
        elif e.type == "claimed" and e.job in jobs and state != "closed":
            if (e.job, e.fence) not in named or (probe and probe != (e.job, e.fence)):
                found.append(f"job {e.job} claimed at {e.at} while {state}, and it is not the probe")
    return found, probes


def unfair(served, waiting):
    """`served`: by and by, those who were served at one instant (in any order among them); `waiting`:
    how many jobs each had. One that is served an n-th time while another that has work was served less
    than n - 1 times is told."""
    left, times, found = dict(waiting), collections.Counter(), []
    levels = collections.Counter({0: sum(n > 0 for n in left.values())})
    for place, names in enumerate(served):
        for name in _by_turns(names, times):
            lowest = min((level for level, n in levels.items() if n), default=0)
            if left[name] > 0 and times[name] > lowest:
                found.append(f"instant {place}: {name} for the {times[name] + 1}. time, while others "
                             f"with work had {lowest}")
            if left[name] <= 0:
                found.append(f"instant {place}: {name} has no jobs left")
                continue
            levels[times[name]] -= 1
            times[name] += 1
            left[name] -= 1
            if left[name]:
                levels[times[name]] += 1
    return found


def _by_turns(names, times):
    """First those who had least."""
    seen, keyed = collections.Counter(), []
    for name in names:
        keyed.append((times[name] + seen[name], name))
        seen[name] += 1
    return [name for _, name in sorted(keyed)]
