load helper

# The lake through the real binary: bodies fetched from a server of this machine, then printed, exported,
# verified, damaged and repaired.

setup_file() {
    cat >"$BATS_FILE_TMPDIR/server.py" <<'P'
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    bodies = {"/a": (b"<p>a</p>\n" * 100, "text/html; charset=utf-8"), "/b": (b"plain b\n", "text/plain"),
              "/same": (b"plain b\n", "text/plain"), "/bin": (bytes(range(256)) * 9, "application/octet-stream"),
              "/a?raw": (b"raw of a\n", "text/plain")}
    def do_GET(self):
        path = "/same" if self.path.startswith("/same?") else self.path
        body, kind = self.bodies.get(path, (None, None))
        self.send_response(200 if body else 404)
        body = body or b"no such page\n"
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
P
    /usr/bin/python3 "$BATS_FILE_TMPDIR/server.py" >"$BATS_FILE_TMPDIR/port" 3>&- &
    echo $! >"$BATS_FILE_TMPDIR/pid"
    local end=$((SECONDS + 20))
    until [ -s "$BATS_FILE_TMPDIR/port" ]; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.05
    done
}

teardown_file() {
    kill "$(cat "$BATS_FILE_TMPDIR/pid")"
}

# fetched OPTION… -- PATH…: these paths of the server, fetched.
fetched() {
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    base="http://127.0.0.1:$(cat "$BATS_FILE_TMPDIR/port")"
    grep -q allow_private pawl.yaml || printf 'fetch: {allow_private: true}\n' >>pawl.yaml
    pawl fetch -q "${options[@]}" "${@/#/$base}"
    pawl run -q --drain --no-fail
}

# old FILE…: as if kept long ago, beyond what a running job could have written.
old() {
    touch -d '2 hours ago' "$@"
}

# object ID NAME: the file of an artifact.
object() {
    pawl export | python3 -c 'import json, sys
for line in sys.stdin:
    d = json.loads(line)
    if [str(d["job"]), d["variant"]] == sys.argv[1:]: print(d["path"])' "$1" "$2"
}

# plant TEXT: an object of this line that no row names, kept long ago; its file in $planted.
plant() {
    local sum
    sum=$(echo "$1" | sha256sum | cut -d' ' -f1)
    planted="lake/objects/${sum:0:2}/$sum"
    mkdir -p "${planted%/*}"
    echo "$1" >"$planted"
    old "$planted"
}

# asked ARG…: pawl on a terminal, until it asks; then answered: yes, and its exit status. Its words in said.
asked() {
    mkfifo keys
    script -qec "$PAWL $*" /dev/null <keys >said 3>&- &
    pid=$!
    started="$started $pid"
    exec 4>keys
    wait_for grep -aqF '[y/N]' said
}
answered() {
    echo y >&4
    exec 4>&-
    wait "$pid"
}

# archived STATUS: all that can be read in all.warc.gz, with this exit status; words in said.
archived() {
    local got=0
    pawl export --format warc >all.warc.gz 2>said || got=$?
    same "$1" "$got"
}

# bare ARG…: pawl without root's right to read and write everything.
bare() {
    if [ "$(id -u)" = 0 ]; then
        run --separate-stderr setpriv --bounding-set=-dac_override,-dac_read_search "${PAWL:?}" "$@"
    else
        run --separate-stderr "${PAWL:?}" "$@"
    fi
}

@test "cat: the bytes, by name where there are several" {
    fetched -- /b /bin
    same "plain b" "$(pawl cat 1)"
    same "plain b" "$(pawl cat 1 body)"
    pawl cat 2 >bin
    cmp bin <(python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 9)')
    try 3 cat 1 other
    says "job 1 has no artifact named 'other'; it has body"
}

@test "cat: a terminal gets text made harmless, and no bytes" {
    fetched -- /b /bin
    same "plain b" "$(script -qec "$PAWL cat 1" /dev/null | tr -d '\r')"
    run script -qec "$PAWL cat 2" /dev/null
    same 2 "$status"
    [[ "$output" == *"--force"* ]]
    script -qec "$PAWL cat 2 --force" /dev/null | grep -aq '0123456789'
}

@test "compressed artifacts read as they came" {
    printf 'lake: {compress: {types: [text/html]}}\n' >>pawl.yaml
    fetched -- /a /b
    same "900" "$(pawl cat 1 | wc -c)"
    try 0 show 1 --json
    same "zstd 900 True" "$(json '"%s %s %s" % (d["artifacts"][0]["codec"], d["artifacts"][0]["size"],
        d["artifacts"][0]["stored"] < 900)')"
    try 0 export
    same "None True" "$(python3 -c 'import json, sys
a, b = sorted(map(json.loads, sys.argv[1].splitlines()), key=lambda d: d["job"]); print(a["path"], b["path"] is not None)' "$output")"
    try 0 export --format sha256sum
    same 1 "${#lines[@]}"
    says "1 compressed or packed artifact left out"
    try 0 verify
    says "2 artifacts read"
    try 0 export --format files --to out
    same "900 8" "$(stat -c %s out/1-body.html out/2-body.txt | xargs)"
}

@test "export: lines, and a list that sha256sum accepts" {
    fetched --variant raw='{url}?raw' --variant html='{url}' -- /a
    fetched -- /b /missing
    try 0 export --queue fetch
    same 3 "${#lines[@]}"
    same "raw 200 text/plain 9 1" "$(python3 -c 'import json, sys
d = min((json.loads(line) for line in sys.argv[1:]), key=lambda d: d["job"])
print(d["variant"], d["status"], d["type"], d["size"], d["job"])' "${lines[@]}")"
    same "fetched_at job path queue sha256 size status type url variant" "$(python3 -c 'import json, sys
print(*sorted(json.loads(sys.argv[1])))' "${lines[0]}")"
    try 0 export --name html --json
    same "1 $base/a" "$(json '"%s %s" % (len(d), d[0]["url"])')"
    pawl export --format sha256sum >sums
    same 3 "$(wc -l <sums)"
    sha256sum -c --quiet sums
    try 0 export --format files --to out
    same "1-raw.txt 2-html.html 3-body.txt" "$(ls out | xargs)"
    same "$(sort <(cut -d' ' -f1 sums))" "$(sha256sum out/* | cut -d' ' -f1 | sort)"
    try 0 export --queue none
    same "" "$output"
}

@test "export: what cannot be read is left out and counted, the rest is written" {
    fetched -- /a /b /bin "/a?raw" /same?1
    rm "$(object 1 body)"
    truncate -s 9 "$(object 3 body)"
    printf 'RAW of a\n' >"$(object 4 body)"
    try 1 export --format files --to out
    same "2 5" "$(python3 -c 'import json, sys
print(*sorted(json.loads(line)["job"] for line in sys.argv[1:]))' "${lines[@]}")"
    says "3 artifacts left out: the lake cannot read them; 'pawl verify' says why"
    [[ "$stderr" != *'{'* ]]
    same "2-body.txt 5-body.txt" "$(ls -A out | xargs)"
    archived 1
    grep -q "3 artifacts left out" said
    same "2" "$(zcat all.warc.gz | grep -ac '^WARC-Type: resource')"
    same "2" "$(zcat all.warc.gz | grep -ac '^plain b')"
    # Nobody asked for errors as JSON.
    try 1 export --format files --to pawl.yaml
    [[ "$stderr" != *'{'* ]]
    try 1 export --format files --to pawl.yaml -o ndjson
    says '{"error":'
}

@test "packed: records that cannot be read whole are left out of the archive" {
    printf 'lake: {mode: pack}\n' >>pawl.yaml
    fetched -- /bin
    first=$(ls lake/segments/*)
    fetched -- /a "/a?raw"
    # Its request is whole, and goes with it.
    truncate -s -40 "$first"
    archived 1
    grep -q "1 artifact left out" said
    gzip -t all.warc.gz
    same "2 2" "$(zcat all.warc.gz | grep -ac '^WARC-Type: request') $(zcat all.warc.gz |
        grep -ac '^WARC-Type: response')"
    rm "$first"
    archived 1
    grep -q "1 artifact left out" said
    gzip -t all.warc.gz
    same "$base/a $base/a?raw" "$(zcat all.warc.gz | tr -d '\r' | grep -a -A4 '^WARC-Type: response' |
        sed -n 's/^WARC-Target-URI: //p' | sort | xargs)"
    try 1 export --format files --to out
    same "2" "$(ls -A out | wc -l)"
}

@test "show and report tell of fetches" {
    fetched -- /b /missing
    try 0 show 1 --json
    same "200 text/plain 8 body 8" "$(json '"%s %s %s %s %s" % (d["fetch"]["status"], d["fetch"]["content_type"],
        d["fetch"]["body_bytes"], d["artifacts"][0]["name"], d["artifacts"][0]["size"])')"
    same "$(printf 'plain b\n' | sha256sum | cut -d' ' -f1)" "$(json 'd["artifacts"][0]["sha256"]')"
    try 0 show 1
    prints "artifacts"
    prints "answer       200, 8 B"
    try 0 show 2 --json
    same "404 []" "$(json '"%s %s" % (d["fetch"]["status"], d["artifacts"])')"
    try 0 report --json
    same "1 0 1" "$(json '"%s %s %s" % (d["fetches"]["fetched"], d["fetches"]["not_modified"], d["fetches"]["failed"])')"
    try 0 report
    prints "fetched  1, 0 not modified, 1 failed"
}

@test "plan: means of what was fetched" {
    fetched -- /a /b
    pawl fetch -q "$base/c" "$base/d"
    try 0 plan --json
    same "2 $((2 * (900 + 8) / 2)) False False" "$(json '"%s %s %s %s" % (d["items"], d["disk"]["bytes"],
        d["disk"]["guess"], d["fetch_guess"])')"
}

@test "verify: all is well, and a sample" {
    fetched -- /a /b /same /bin
    try 0 verify
    says "4 artifacts read"
    says "all is well"
    same "" "$output"
    try 0 verify --sample 50 --json
    same "4 True []" "$(json '"%s %s %s" % (d["artifacts"], d["checked"] <= 4, d["findings"])')"
}

@test "verify: missing and damaged bytes: a list, exit 1; --repair queues them again" {
    fetched -- /a /b /bin
    a=$(object 1 body) b=$(object 2 body)
    rm "$a"
    chmod u+w "$b"
    printf 'plain c\n' >"$b"
    old "$b"
    try 1 verify
    prints "missing"
    prints "damaged"
    says "3 artifacts read"
    says "1 missing, 1 damaged"
    try 1 verify --json
    same "1 1 0 None" "$(json '"%s %s %s %s" % (d["missing"], d["damaged"], d["orphan"], d["repaired"])')"
    same "[1, 2]" "$(json 'sorted(f["job"] for f in d["findings"])')"
    try 1 verify --repair -n
    try 2 verify --repair </dev/null
    says "nobody is here to ask"
    same "done done" "$(state 1) $(state 2)"
    try 0 verify --repair --yes
    says "repaired: 2 rows removed, 2 jobs queued again, 1 file deleted"
    same "queued queued done" "$(state 1) $(state 2) $(state 3)"
    pawl run -q --drain
    try 0 verify
    same "plain b" "$(pawl cat 2)"
}

@test "verify --repair: orphans and leftovers go, unless they are young; what a row names stays" {
    fetched -- /a /b
    pawl prune -q --state done --older-than 0s --yes
    try 0 verify # artifacts outlive their jobs
    says "2 artifacts read"
    sum=$(echo 'nobody knows these' | sha256sum | cut -d' ' -f1)
    mkdir -p "lake/objects/${sum:0:2}"
    orphan="lake/objects/${sum:0:2}/$sum" left="lake/tmp/${sum:0:32}"
    echo 'nobody knows these' >"$orphan"
    echo 'half' >"$left"
    try 0 verify --repair --yes
    says "2 too young to judge"
    [ -e "$orphan" ]
    old "$orphan" "$left"
    old "$(pawl export | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["path"])')"
    try 1 verify
    says "1 without a row, 1 left over"
    try 1 verify --json
    same "['orphan', 'temporary']" "$(json 'sorted(f["what"] for f in d["findings"])')"
    try 0 verify --repair --yes
    says "repaired: 0 rows removed, 0 jobs queued again, 2 files deleted"
    [ ! -e "$orphan" ]
    [ ! -e "$left" ]
    try 0 verify
    says "2 artifacts read"
}

@test "verify --repair: damaged bytes that are young are left, with their rows" {
    fetched -- /b
    b=$(object 1 body)
    chmod u+w "$b"
    printf 'plain c\n' >"$b"
    try 1 verify --repair --yes
    says "1 left, a job may be using them"
    same done "$(state 1)"
    old "$b"
    try 0 verify --repair --yes
    same queued "$(state 1)"
}

@test "verify: two rows of one damaged object" {
    fetched -- /b /same
    b=$(object 1 body)
    same "$b" "$(object 2 body)"
    chmod u+w "$b"
    printf 'plain c\n' >"$b"
    old "$b"
    try 1 verify --json
    same 2 "$(json 'd["damaged"]')"
    try 0 verify --repair --yes
    says "repaired: 2 rows removed, 2 jobs queued again, 1 file deleted"
    pawl run -q --drain
    try 0 verify
}

@test "verify --repair: what a row names since the question was asked stays" {
    fetched -- /a
    plant "nobody knows these"
    nobody=$planted
    plant "plain b"
    asked verify --repair
    grep -q "repair 2 findings" said
    fetched -- /b
    [ "$planted" -ef "$(object 2 body)" ]
    old "$planted"
    answered
    grep -q "1 file deleted" said
    [ ! -e "$nobody" ]
    same "plain b" "$(pawl cat 2)"
    try 0 verify
}

@test "verify --repair: what a row moved to since the question was asked stays" {
    printf 'lake: {mode: pack}\n' >>pawl.yaml
    fetched -- /b
    plant "plain b"
    asked verify --repair
    grep -q "repair 1 finding?" said
    try 0 lake convert files
    [ "$planted" -ef "$(object 1 body)" ]
    old "$planted"
    answered
    grep -q "0 files deleted" said
    same "plain b" "$(pawl cat 1)"
}

@test "verify --sample: orphans are found, and all rows of what is damaged are repaired" {
    fetched -- /a /same?{1..30}
    plant "nobody knows these"
    b=$(object 2 body)
    chmod u+w "$b"
    printf 'plain c\n' >"$b"
    old "$b"
    try 1 verify --sample 50 --json
    same "31 True 1" "$(json '"%s %s %s" % (d["artifacts"], 0 < d["damaged"] < 30, d["orphan"])')"
    try 0 verify --sample 50 --repair --yes
    says "repaired: 30 rows removed, 30 jobs queued again, 2 files deleted"
    pawl run -q --drain
    try 0 verify
    says "31 artifacts read"
}

@test "verify: a lake that is not there is no finding for each row" {
    fetched -- /b
    mv lake elsewhere
    try 3 verify --repair --yes
    says "no lake at lake"
    same done "$(state 1)"
    mv elsewhere lake
    try 0 verify
}

@test "a lake is one store's: others neither write to it nor clean it up" {
    fetched -- /a /b
    old lake/objects/*/*
    printf 'worker: {lease: 1s}\n' >>pawl.yaml
    another="sqlite:$PWD/another.db"
    pawl --store "$another" add --kind fetch --payload "{\"url\":\"$base/b\"}"
    for line in "verify" "verify --repair --yes" "lake compact" "lake convert pack"; do
        try 5 --store "$another" $line
        says "is another store's"
    done
    try 8 --store "$another" run --drain --patience 1s
    try 0 --store "$another" show 1 --json
    same queued "$(json 'd["state"]')"
    try 0 verify
    says "2 artifacts read"
    # Who takes it over is told what that means.
    try 2 --store "$another" lake adopt
    says "nobody is here to ask"
    try 0 --store "$another" lake adopt --yes
    pawl --store "$another" run -q --drain
    same "plain b" "$(pawl --store "$another" cat 1)"
    try 5 verify
    try 0 lake adopt --yes
    try 0 lake adopt
    says "this store's already"
    try 0 verify
}

@test "packed: the same commands, and standard tools" {
    printf 'lake: {mode: pack, compress: {types: [text/html]}}\n' >>pawl.yaml
    fetched -- /a /b /same /bin
    same "900" "$(pawl cat 1 | wc -c)"
    same "plain b" "$(pawl cat 3)"
    zcat lake/segments/*.warc.gz | grep -aq "WARC-Target-URI: $base/bin"
    try 0 export
    same 4 "${#lines[@]}"
    prints '"path":null'
    try 0 export --format sha256sum
    says "4 compressed or packed artifacts left out"
    try 0 export --format cdxj
    same 4 "${#lines[@]}"
    try 2 export --format cdxj --json
    pawl export --format warc >all.warc.gz
    same 4 "$(zcat all.warc.gz | grep -ac '^WARC-Type: response')"
    run script -qec "$PAWL export --format warc" /dev/null
    same 2 "$status"
    try 0 verify --json
    same "4 4 0 []" "$(json '"%s %s %s %s" % (d["artifacts"], d["checked"], d["objects"], d["findings"])')"
}

@test "packed: a torn tail is cut, a segment that nobody needs goes" {
    printf 'lake: {mode: pack}\n' >>pawl.yaml
    fetched -- /a
    s=$(ls lake/segments/*)
    size=$(stat -c %s "$s")
    printf 'torn' >>"$s"
    try 0 verify
    says "too young to judge"
    : >lake/segments/20200102T030405Z-0123456789abcdef.warc.gz
    old lake/segments/*
    try 1 verify
    prints "no artifact has some of it"
    try 0 verify --repair --yes
    says "1 file deleted (4 B), 1 segment made shorter"
    same "$size" "$(stat -c %s "$s")"
    try 0 verify
}

@test "lake: convert there and back, compact" {
    fetched -- /a /b /same
    try 0 lake convert pack
    says "3 of 3 artifacts converted to pack"
    try 0 lake convert pack --json
    same "3 0 0" "$(json '"%s %s %s" % (d["artifacts"], d["converted"], d["bad"])')"
    same "plain b" "$(pawl cat 3)"
    old lake/objects/*/* lake/segments/*
    try 0 verify --repair --yes
    same "" "$(find lake/objects -type f)"
    try 0 lake compact
    says "0 removed, 0 cut, 0 copied"
    try 0 lake convert files
    same "plain b" "$(pawl cat 3)"
    old lake/segments/*
    try 0 lake compact --dead 50 --json
    same "1 True" "$(json '"%s %s" % (d["removed"], d["bytes"] > 900)')"
    try 0 verify
}

@test "lake: what cannot be read is left and counted" {
    fetched -- /a /b
    a=$(object 1 body)
    chmod u+w "$a"
    printf 'x' >"$a"
    try 1 lake convert pack
    says "1 of 2 artifacts converted to pack"
    says "1 could not be read"
    try 2 lake convert
    says "into which form?"
    try 2 lake convert tar
    try 2 lake compact now
    try 2 lake convert files --dead 3
    try 2 lake
}

@test "verify --repair: something that is no file stops nothing, and is told with the reason" {
    fetched -- /a /b /bin
    a=$(object 1 body) b=$(object 2 body)
    plant "nobody knows these"
    for odd in "mkdir" "mkfifo" "ln -s elsewhere"; do
        rm -rf "$a"
        $odd "$a"
        rm -f "$b"
        try 1 verify
        says "1 missing, 1 damaged"
        prints "it is not a regular file"
        try 1 verify --repair --yes
        says "warning: files/${a#*/objects/} stays as it is"
        says "1 row removed, 1 job queued again"
        says "1 cannot be put right"
        [[ "$stderr" != *"a job may be using"* ]]
        [ ! -e "$planted" ]
        same "done queued done" "$(state 1) $(state 2) $(state 3)"
        try 1 verify --repair --yes --json
        same "1 0 0 1" "$(json '"%s %s %s %s" % (d["damaged"], d["missing"], d["repaired"]["left"],
            d["repaired"]["stuck"])')"
        same True "$(json '"regular file" in d["findings"][0]["stuck"] or "link" in d["findings"][0]["stuck"]')"
        pawl run -q --drain
    done
    rm "$a"
    try 0 verify --repair --yes
}

@test "verify: what this user may not read is a finding, and everything else is judged" {
    fetched -- /a /b /bin
    a=$(object 1 body) b=$(object 2 body) bin=$(object 3 body)
    chmod 0 "$a"
    rm "$b"
    bare verify
    same 1 "$status"
    prints "this user may not read it"
    says "2 of 3 artifacts read"
    says "1 missing, 1 unreadable"
    bare verify --json
    same "1 1 2" "$(json '"%s %s %s" % (d["missing"], d["unreadable"], d["checked"])')"
    bare verify --repair --yes
    same 1 "$status"
    says "1 row removed, 1 job queued again"
    says "1 cannot be put right"
    same "done queued done" "$(state 1) $(state 2) $(state 3)"
    pawl run -q --drain
    # A whole folder, and nothing but what cannot be judged: nobody is asked.
    chmod 0 "${bin%/*}"
    bare verify --repair
    same 1 "$status"
    prints "files/$(basename "${bin%/*}") "
    chmod 700 "${bin%/*}"
    chmod 600 "$a"
    try 0 verify
}

@test "verify --repair: a lake that cannot be written ends it with its error" {
    fetched -- /a /b
    plant "nobody knows these"
    chmod 400 lake/lake.lock
    bare verify --repair --yes
    same 6 "$status"
    says "1 not reached"
    says "cannot open"
    chmod 600 lake/lake.lock
    try 0 verify --repair --yes
}

@test "packed: a segment that may not be read or written" {
    printf 'lake: {mode: pack}\n' >>pawl.yaml
    fetched -- /a
    printf 'torn' >>lake/segments/*
    s=lake/segments/20200102T030405Z-0123456789abcdef.warc.gz
    : >"$s"
    old lake/segments/*
    chmod 400 "$s"
    bare verify --repair --yes
    same 1 "$status"
    says "warning: pack/20200102T030405Z-0123456789abcdef stays as it is: cannot open"
    says "1 segment made shorter; 1 cannot be put right"
    bare lake compact
    same 1 "$status"
    says "1 cannot be freed"
    chmod 0 lake/segments/*
    bare verify --json
    same "1 ['unreadable', 'unreadable', 'unreadable']" "$(json '"%s %s" % (d["artifacts"], [f["what"] for f in d["findings"]])')"
    chmod 600 lake/segments/*
    try 0 verify --repair --yes
}
