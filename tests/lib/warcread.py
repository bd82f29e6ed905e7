"""A strict reader of WARC/1.1 in gzip, written from ISO 28500:2017 and RFC 1952; the standard library alone.

    tests/lib/warcread.py FILE…      prints a line for each record; exit status 1 at the first breach

Every byte of a file belongs to a member of gzip; every member is one record; heads have the syntax and the
fields that their type demands, each once; blocks are as long as they say and end with two line ends; digests
are those of the bytes; what records refer to within a file is there.
"""
import hashlib
import re
import sys
import zlib

TOKEN = rb"[!#$%&'*+\-.0-9A-Z^_`a-z|~]+"
FIELD = re.compile(rb"(%s):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*\Z" % TOKEN)
UUID = re.compile(r"<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}>\Z")
DATE = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d(\.\d{1,9})?Z\Z")
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]*\Z")
MANDATORY = {"warc-record-id", "content-length", "warc-date", "warc-type"}
WITH_URI = {"response", "resource", "request", "revisit", "conversion", "continuation"}
TYPES = WITH_URI | {"warcinfo", "metadata"}
PROFILES = {"http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
            "http://netpreserve.org/warc/1.1/revisit/server-not-modified"}
START = {"request": re.compile(rb"%s [^ \x00-\x20\x7f]+ HTTP/1\.[01]\Z" % TOKEN),
         "response": re.compile(rb"HTTP/1\.[01] [1-5]\d\d( [^\x00-\x08\x0a-\x1f\x7f]*)?\Z")}


WINDOW = 16 << 10


class Breach(Exception):
    """Where a file is not what the standard says."""


def need(good, what):
    if not good:
        raise Breach(what)


def fields_of(head):
    """{lower-case name: value}; lines end with CR LF, no name comes twice."""
    lines = head.split(b"\r\n")
    need(lines[0] == b"WARC/1.1", f"version line {lines[0][:40]!r}")
    found = {}
    for line in lines[1:]:
        match = FIELD.match(line)
        need(match, f"field {line[:80]!r}")
        name = match[1].decode("ascii").lower()
        need(name not in found or name == "warc-concurrent-to", f"{name} twice")
        found[name] = match[2].decode("utf-8")
    return found


def check_digest(fields, name, data):
    if name not in fields:
        return
    label, _, value = fields[name].partition(":")
    need(label == "sha256" and re.match(r"[0-9a-f]{64}\Z", value), f"{name} {fields[name]!r}")
    need(hashlib.sha256(data).hexdigest() == value, f"{name} is not that of the bytes")


def payload_of(kind, fields, block):
    """The entity of an HTTP message, or the block."""
    http = fields.get("content-type", "").replace(" ", "").startswith("application/http")
    if not http:
        return block
    wanted = "request" if kind == "request" else "response"
    need(fields["content-type"].replace(" ", "") == f"application/http;msgtype={wanted}", "content type")
    head, end, body = block.partition(b"\r\n\r\n")
    need(end, "an HTTP message without the end of its head")
    lines = head.split(b"\r\n")
    need(START[wanted].match(lines[0]), f"start line {lines[0][:80]!r}")
    lengths = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        need(colon or line[:1] in b" \t", f"header {line[:80]!r}")
        need(name.lower() != b"transfer-encoding", "a body that was put together still says that it is in chunks")
        if name.lower() == b"content-length":
            lengths.append(int(value))
    if kind == "response":
        need(all(n == len(body) for n in lengths), f"Content-Length {lengths}, {len(body)} bytes")
    if kind == "revisit":
        need(not body, "a revisit with a body")
    return body


def check_record(fields, block, seen):
    kind = fields.get("warc-type", "")
    need(MANDATORY <= set(fields), f"missing {MANDATORY - set(fields)}")
    need(kind in TYPES, f"type {kind!r}")
    need(UUID.match(fields["warc-record-id"]), f"id {fields['warc-record-id']!r}")
    need(fields["warc-record-id"] not in seen["ids"], "an id twice")
    need(DATE.match(fields["warc-date"]), f"date {fields['warc-date']!r}")
    need(re.match(r"(0|[1-9]\d*)\Z", fields["content-length"]), "Content-Length")
    need((kind in WITH_URI) == ("warc-target-uri" in fields) or kind == "metadata", f"target URI of a {kind}")
    if "warc-target-uri" in fields:
        need(URI.match(fields["warc-target-uri"]), f"target URI {fields['warc-target-uri']!r}")
    need(block == b"" or "content-type" in fields, "no content type")
    if kind == "revisit":
        need(fields.get("warc-profile") in PROFILES, f"profile {fields.get('warc-profile')!r}")
        need(UUID.match(fields["warc-refers-to"]) and DATE.match(fields["warc-refers-to-date"])
             and URI.match(fields["warc-refers-to-target-uri"]), "what a revisit refers to")
    check_digest(fields, "warc-block-digest", block)
    payload = payload_of(kind, fields, block)
    if kind not in ("revisit", "request"):
        check_digest(fields, "warc-payload-digest", payload)
    seen["ids"].add(fields["warc-record-id"])
    return payload


def members(data):
    """(offset, length, bytes) of each member of gzip; every byte is in one."""
    at = 0
    while at < len(data):
        need(data[at:at + 3] == b"\x1f\x8b\x08", f"no member at {at}")
        z, out, to = zlib.decompressobj(wbits=31), b"", at
        while not z.eof:  # in small steps, because what is not used is copied
            need(to < len(data), f"the member at {at} is cut short")
            try:
                out += z.decompress(data[to:to + WINDOW])
            except zlib.error as e:
                raise Breach(f"member at {at}: {e}") from e
            to = min(to + WINDOW, len(data))
        length = to - len(z.unused_data) - at
        yield at, length, out
        at += length


def read(path, single=True):
    """[(offset, length, fields, payload)] of a file; Breach names what is wrong. single: of one writer, so that
    the first record is the warcinfo of all that follow unless they were copied from another segment."""
    with open(path, "rb") as f:
        data = f.read()
    return read_bytes(data, path, single)


def read_bytes(data, name="-", single=True):
    found, seen = [], {"ids": set()}
    try:
        for at, length, text in members(data):
            head, end, rest = text.partition(b"\r\n\r\n")
            need(end, "a record without the end of its head")
            fields = fields_of(head)
            n = int(fields.get("content-length", "-1"))
            need(0 <= n and len(rest) == n + 4, f"Content-Length {n}, {len(rest) - 4} bytes")
            need(rest[n:] == b"\r\n\r\n", "the end of the record")
            payload = check_record(fields, rest[:n], seen)
            found.append((at, length, fields, payload))
        need(found, "it is empty")
        check_whole(found, seen, single)
    except Breach as e:
        where = f"{name}: record {len(found) + 1}"
        raise Breach(f"{where}: {e}") from None
    return found


def check_whole(found, seen, single):
    first = found[0][2]
    need(first["warc-type"] == "warcinfo", "it does not begin with warcinfo")
    for _, _, fields, _ in found[1:]:
        need(fields["warc-type"] != "warcinfo", "a second warcinfo")
        if single and "warc-warcinfo-id" in fields:
            need(fields["warc-warcinfo-id"] == first["warc-record-id"], "records of another writer")
        if "warc-concurrent-to" in fields:
            need(fields["warc-concurrent-to"] in seen["ids"], "a request without its answer")


if __name__ == "__main__":
    try:
        for arg in sys.argv[1:]:
            for at_, length_, fields_, payload_ in read(arg):
                print(at_, length_, fields_["warc-type"], fields_.get("warc-target-uri", "-"), len(payload_))
    except Breach as breach:
        sys.exit(str(breach))
