load helper

lines_of() {
    python3 -c 'import json, sys
for i in range(int(sys.argv[1])): print(json.dumps({"queue": "q", "kind": "noop", "key": "k%d" % i}))' "$1"
}

@test "adds every line; run again it adds nothing" {
    lines_of 3000 >jobs
    try 0 import jobs
    same "" "$output"
    says "3000 added, 0 known"
    try 0 --json import jobs
    same "3000 0 3000 0" "$(json '"%s %s %s %s" % (d["lines"], d["added"], d["known"], d["bad"])')"
    same 3000 "$(pawl list -o ndjson | wc -l)"
}

@test "standard input, blank lines, no line feed at the end" {
    run bash -c 'printf "\n{\"kind\":\"noop\"}\r\n\n{\"kind\":\"noop\"}" | "$PAWL" import -'
    same 0 "$status"
    [[ "$output" == *"2 added"* ]]
}

@test "every field; the flags fill in what a line leaves out" {
    cat >jobs <<'J'
{"queue":"wiki","kind":"noop","key":"p1","host":"en.wikipedia.org","priority":5,"payload":{"skip": true},"max_attempts":4,"timeout":"10m","in":"1h"}
{"key":"a\u0062c"}
J
    try 0 import --queue fallback --kind noop jobs
    try 0 show 1 --json
    same "wiki noop p1 en.wikipedia.org 5 4 600000 waiting {'skip': True}" \
        "$(json '" ".join(str(d[k]) for k in ("queue kind key host priority max_attempts timeout_ms state payload".split()))')"
    try 0 show 2 --json
    same "fallback noop abc" "$(json '" ".join(d[k] for k in ("queue", "kind", "key"))')"
}

@test "a bad line: FILE:LINE, exit 4, what came before stays and is said" {
    { lines_of 1000; echo '{"queue":"q","prio":1}'; echo '{"kind":"noop"}'; } >jobs
    try 4 import jobs
    says 'pawl: jobs:1001: unknown field "prio"'
    says "1000 lines added before it"
    same 1000 "$(pawl list -o ndjson | wc -l)"
    try 4 --json import jobs
    same "0 1000" "$(json '"%s %s" % (d["added"], d["known"])')"
}

@test "lines that are not jobs are refused (S16, S17)" {
    for bad in '{' '[]' '"x"' '{"queue":1}' '{"a":1,"a":2}' '{"priority":"high"}' '{"lock":1}' \
        '{"timeout":"5"}' '{"queue":""}' '{"payload":1e999}' '{} {}' '{"priority":99999999999}'; do
        echo "$bad" >jobs
        try 4 import jobs
        says "jobs:1: "
    done
    same 0 "$(pawl list -o ndjson | wc -l)"
}

@test "--skip-bad counts and lists the first ten" {
    { lines_of 5; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "{bad$i"; done; lines_of 7; } >jobs
    try 0 import --skip-bad jobs
    says "jobs:6: "
    says "jobs:15: "
    [[ "$stderr" != *"jobs:16: "* ]]
    says "7 added, 5 known, 12 bad lines left out"
}

@test "--limit" {
    lines_of 50 >jobs
    try 0 import --limit 20 jobs
    says "20 added"
    try 2 import --limit 0 jobs
}

@test "a payload of megabytes passes, one beyond the limit does not" {
    python3 -c 'print("{\"kind\":\"other\",\"payload\":\"" + "x" * (5 << 20) + "\"}")' >jobs
    try 0 import jobs
    says "1 added"
    python3 -c 'print("{\"kind\":\"noop\",\"payload\":\"" + "x" * (17 << 20) + "\"}\n{\"kind\":\"noop\"}")' >big
    try 4 import big
    says "big:1: "
    try 0 import --skip-bad big
    says "1 added, 0 known, 1 bad line left out"
}

@test "files that cannot be read" {
    try 3 import missing.jsonl
    says "missing.jsonl"
    mkdir folder
    try 4 import folder
    try 2 import
    no_store
}

@test "an unknown kind is warned about once" {
    for i in 1 2 3; do echo '{"kind":"nope"}'; done >jobs
    try 0 import jobs
    same 1 "$(printf '%s\n' "$stderr" | grep -c "kind 'nope'")"
    says "did you mean 'noop'?"
}

@test "Ctrl-C: exit 130, says what was added" {
    mkfifo pipe
    background import pipe
    exec 4>pipe
    lines_of 10 >&4
    wait_for eval '[ "$(pawl list -o ndjson 2>/dev/null | wc -l)" = 10 ]'
    kill -INT "$pid"
    got=0
    wait "$pid" || got=$?
    exec 4>&-
    same 130 "$got"
    grep -q "interrupted: 10 added" background.err
}
