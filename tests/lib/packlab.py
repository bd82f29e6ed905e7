"""What the tests of the packed lake share: its segments, read strictly, beside what the rows say."""
import hashlib
import os
import re

import warcread
from ingestlab import lake_files

SPAN = re.compile(r"(\d{8}T\d{6}Z-[0-9a-f]{16})/(\d+)/(\d+)(?:/(\d+))?\Z")


def segments(lab):
    return [path for path in lake_files(lab, "segments") if path.endswith(".warc.gz")]


def spans_of(place):
    """[(segment, offset, length, lead)]: of the bytes, then of the record of its own."""
    assert place.startswith("pack/"), place
    found = []
    for part in place[5:].split("+"):
        match = SPAN.match(part)
        assert match, place
        found.append((match[1], int(match[2]), int(match[3]), int(match[4] or 0)))
    return found


def read_all(lab, single=False):
    """({segment: records}, breaches)"""
    whole, wrong = {}, []
    for path in segments(lab):
        name = os.path.basename(path)[:-len(".warc.gz")]
        try:
            whole[name] = warcread.read(path, single)
        except warcread.Breach as e:
            wrong.append(str(e))
    return whole, wrong


def faults(lab, single=False):
    """Everything that is not as it should be: breaches of the standard, rows whose bytes are not there or not
    theirs, records that no row names."""
    whole, wrong = read_all(lab, single)
    unchanged = {fields["warc-record-id"] for records in whole.values() for _, _, fields, _ in records
                 if fields.get("warc-profile", "").endswith("server-not-modified")}
    known = {(name, at): (length, payload) for name, records in whole.items()
             for at, length, _, payload in records}
    # Records that something has not changed have no row.
    named = {(name, at) for name, records in whole.items() for at, _, fields, _ in records
             if at == 0 or unchanged & {fields["warc-record-id"], fields.get("warc-concurrent-to")}}
    for place, digest in lab.sql("SELECT place, sha256 FROM v_artifacts"):
        spans = spans_of(place)
        for name, offset, length, lead in spans:
            if known.get((name, offset), (0,))[0] != length:
                wrong.append(f"{place}: no such record")
                continue
            named.add((name, offset))
            at = offset - lead
            while at < offset and (name, at) in known:
                named.add((name, at))
                at += known[name, at][0]
            if at != offset:
                wrong.append(f"{place}: what is before it does not end where it begins")
        found = known.get(spans[0][:2])
        if found and hashlib.sha256(found[1]).hexdigest() != digest:
            wrong.append(f"{place}: other bytes")
    wrong += [f"{name} at {at}: nobody's" for name, at in sorted(set(known) - named)]
    return wrong
