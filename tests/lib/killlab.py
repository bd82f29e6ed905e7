"""What the tests of kills while fetching share: work that does not run out, kills with repairs among them,
and what has to be true of every URL afterwards."""
import os
import time

from fetchserver import body_of
from ingestlab import exported, fetch, lake_files, sha256, write_list
from limitlab import recorded
from pawltest import ON_POSTGRES, PAWL, RELEASE, campaign

KILLS = campaign(500) or (20 if ON_POSTGRES else 50)
PAGES_AT_A_TIME = 100


class Pages:
    """URLs with the bodies they have; so many that a kill always meets work."""

    def __init__(self, lab, server, rng):
        self.lab, self.server, self.rng = lab, server, rng
        self.body = {}  # URL: (seed, size)

    def more(self):
        fresh = []
        for i in range(len(self.body), len(self.body) + PAGES_AT_A_TIME):
            seed = str(i) if i % 3 else "same"  # every third body is one that others have too
            size = self.rng.choice((0, 10, 3000, 3000, 8000, 400_000))
            how = "/sleep?s=0.1&" if i % 2 else "/ok?"
            fresh.append(self.server.url(f"{how}seed={seed}&size={size}&i={i}"))
            self.body[fresh[-1]] = seed, size
        fetch(self.lab, "-f", write_list(self.lab, fresh))

    def refill(self):
        left = self.lab.counts()
        if left["queued"] + left["waiting"] < PAGES_AT_A_TIME // 2:
            self.more()

    def wrong(self, rows):
        """Those whose row says anything but what the server sent."""
        return [url for url, (seed, size) in self.body.items()
                if rows[url, "body"]["sha256"] != sha256(body_of(seed, size))]


def torment(lab, pages, rng, count):
    """So many kills; repairs meanwhile."""
    repairs = 0
    for _ in range(count):
        pages.refill()
        worker = lab.start("run", "-q", binary=rng.choice((PAWL, RELEASE)))
        end = time.monotonic() + rng.uniform(0.05, 0.5)
        if rng.random() < 0.2:
            lab.pawl("verify", "--repair", "--yes", status=None, binary=RELEASE)
            repairs += 1
        time.sleep(max(0, end - time.monotonic()))
        worker.kill()
        lab.forget(worker)
    return repairs


def tormented(lab, tap, server, rng):
    """KILLS and a drain: every URL is done, has its own content once, and none was settled twice."""
    pages = Pages(lab, server, rng)
    pages.more()
    repairs = torment(lab, pages, rng, KILLS)
    lab.drain("-q", binary=RELEASE)
    lost = len(recorded(lab, "lost"))
    tap.ok(lost, f"{KILLS} kills, {lost} leases lost, {repairs} repairs meanwhile")
    tap.same(lab.counts()["done"], len(pages.body), "every URL is done")
    rows = exported(lab)
    wrong = pages.wrong(rows)
    tap.ok(not wrong and len(rows) == len(pages.body), "each has its own content, once", *wrong[:5])
    status, words = lab.check_events()
    tap.ok(status == 0, "none settled twice", words)


def grow_old(lab):
    """Nobody lives who could need what no row names: as if an hour had passed."""
    then = time.time() - 3600
    for path in lake_files(lab):
        os.utime(path, (then, then))
