load helper

@test "run --drain: exit 0, a summary on stderr" {
    pawl add --kind noop --payload null
    try 0 run --drain
    same "" "$output"
    says "done job=1"
    says "1 done, 0 skipped, 0 failed"
    try 0 run --drain -q
    same "" "$stderr"
}

@test "run --drain with failures: exit 7, 0 with --no-fail" {
    pawl add --max-attempts 1 -- false
    try 7 run --drain
    says "1 job failed"
    pawl retry 1
    try 0 run --drain --no-fail
}

@test "run --drain with what only a person can move: exit 8, said why" {
    pawl add --kind mystery --payload 1
    pawl add --queue p --kind noop
    pawl -q pause p
    try 8 run --drain
    says "mystery"
    same queued "$(state 1)"
}

@test "filters: --queue and --kind" {
    pawl add --queue a --kind noop --payload null
    pawl add --queue b --kind noop --payload null
    pawl add --queue a -- true
    try 0 run -q --drain --queue b
    same "queued done queued" "$(state 1) $(state 2) $(state 3)"
    try 0 run -q --drain --kind noop
    same "done queued" "$(state 1) $(state 3)"
    try 0 run -q --drain
}

@test "--stop-after a number of jobs or a time" {
    for i in 1 2 3 4 5; do pawl add --kind noop --payload null; done
    try 0 run -q --slots 1 --stop-after 2
    same 2 "$(pawl list --state done -o ndjson | wc -l)"
    try 0 run -q --stop-after 2s
    same 5 "$(pawl list --state done -o ndjson | wc -l)"
    try 2 run --stop-after never
}

@test "--json: the report on stdout" {
    pawl add --kind noop --payload null
    try 0 --json run --drain
    same "1 True" "$(json '"%s %s" % (d["done"], d["drained"])')"
}

@test "--log json: every line of the log is an object" {
    pawl add --kind noop --payload null
    try 0 run --drain --log json
    printf '%s\n' "$stderr" | grep '^{' | python3 -c 'import json, sys
found = [json.loads(l) for l in sys.stdin]
assert any(f["event"] == "done" and f["job"] == 1 for f in found), found'
    try 2 run --log xml
}

@test "pools: by flag; kinds must be known" {
    printf 'kinds:\n  parse: {command: [cat]}\n' >>pawl.yaml
    pawl add --kind parse --payload '{"a":1}'
    try 0 run -q --drain --pool parse=2 --pool '*=1'
    same "done" "$(state 1)"
    same '{"a":1}' "$(pawl logs 1)"
    try 2 run --pool prase=2
    says "did you mean 'parse'?"
    try 2 run --kind prase
    try 2 run --pool parse
    try 2 run --pool parse=0
    try 2 run --slots 0
    try 2 run --slots 2 --pool '*=2'
}

@test "a worker may open more files than its caller; its jobs may not" {
    pawl add -- sh -c 'ulimit -Sn' >/dev/null
    (ulimit -Sn 300 && exec "${PAWL:?}" run) >out 2>err 3>&- &
    pid=$!
    started="$started $pid"
    wait_for eval '[ "$(state 1)" = done ]'
    same 300 "$(pawl logs 1)"
    same "$(ulimit -Hn)" "$(awk '/open files/ { print $4 }' "/proc/$pid/limits")"
}

@test "flags that would have no effect are refused" {
    try 2 run --no-fail
    try 2 run --patience 1s
}

@test "SIGTERM: 143, SIGINT: 130; jobs are given back" {
    pawl add -- sleep 60
    for pair in TERM:143 INT:130; do
        printf 'worker: {stop_timeout: 0s}\n' >stop.yaml
        background --config stop.yaml run -q
        wait_for eval '[ "$(state 1)" = running ]'
        kill "-${pair%:*}" "$pid"
        got=0
        wait "$pid" || got=$?
        same "${pair#*:}" "$got"
        same queued "$(state 1)"
    done
    try 0 show 1 --json
    same 0 "$(json 'd["attempt"]')"
}

@test "a killed worker's job is run by the next one" {
    short_lease
    pawl add -- sh -c 'test -e again || { touch again; sleep 60; }'
    background run -q
    wait_for test -e again
    kill -KILL "$pid"
    try 0 run -q --drain
    try 0 show 1 --json
    same "done 1 2" "$(json '"%s %s %s" % (d["state"], d["lost"], d["fence"])')"
}
