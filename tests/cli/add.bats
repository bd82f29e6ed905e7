load helper

@test "add prints the id and nothing else" {
    try 0 add -- echo hello
    same 1 "$output"
    same "" "$stderr"
    try 0 add -- echo hello
    same 2 "$output"
}

@test "a command: kind exec, argv, the caller's folder, environment" {
    mkdir sub
    MINE=v1 try 0 add --env MINE --env 'B=x=y' --cwd sub -- printf '%s' 'a b' --queue
    try 0 show 1 --json
    same exec "$(json 'd["kind"]')"
    same "['printf', '%s', 'a b', '--queue']" "$(json 'd["payload"]["command"]')"
    same "$PWD/sub" "$(json 'd["payload"]["cwd"]')"
    same "{'MINE': 'v1', 'B': 'x=y'}" "$(json 'd["payload"]["env"]')"
}

@test "every field" {
    try 0 add --queue q --kind noop --key k --priority 7 --host h.example --in 1h --timeout 5m \
        --max-attempts 9 --payload '{"sleep":"1ms"}'
    try 0 show 1 --json
    same "q noop k 7 h.example 9 300000 waiting" \
        "$(json '" ".join(str(d[k]) for k in ("queue kind key priority host max_attempts timeout_ms state".split()))')"
    same delay "$(json 'd["wait_reason"]')"
}

@test "--at in the future waits, in the past does not" {
    try 0 add --at 2099-01-01T00:00:00Z -- true
    same waiting "$(state 1)"
    try 0 add --at @1000000000 -- true
    same queued "$(state 2)"
    try 2 add --at tomorrow -- true
    says "--at"
}

@test "payload from the line, a file, stdin; kept byte for byte" {
    try 0 add --kind other --payload '{"b": 1, "a":  [1.0, 2e3]}'
    try 0 show 1 --json
    prints '"payload":{"b": 1, "a":  [1.0, 2e3]}'
    echo '{"sleep":"1ms"}' >p.json
    try 0 add --kind noop --payload @p.json
    run bash -c 'echo null | "$PAWL" add --kind noop --payload -'
    same 3 "$output"
    try 3 add --kind noop --payload @missing.json
    says "missing.json"
}

@test "a payload its handler would refuse is refused when added (S38, S39)" {
    try 4 add --env LD_PRELOAD=x -- true
    says 'environment variable "LD_PRELOAD" may not be set by a job'
    try 4 add --kind exec --payload '{"command":"ls -l"}'
    says '"command" is a string; an array is expected'
    try 4 add --kind noop --payload '{"slep":"1s"}'
    says 'unknown member "slep"'
    no_store
}

@test "bad payloads: exit 4, nothing added (S16)" {
    for bad in '{' '{"a":1,"a":2}' '1e999' '"\ud800"' '{} x' ''; do
        try 4 add --kind noop --payload "$bad"
        same "" "$output"
    done
    printf '{"a":"\xff"}' >bad.json
    try 4 add --kind noop --payload @bad.json
    no_store
}

@test "names that are empty, too long or have control characters: exit 4" {
    try 4 add --queue '' -- true
    try 4 add --queue "$(printf 'a\nb')" -- true
    try 4 add --queue "$(printf '%0300d' 0)" -- true
    try 4 add --key "$(printf '\xff')" -- true
}

@test "SQL meta-characters are stored verbatim (S19)" {
    nasty="'; drop table job; --\"%_\\"
    try 0 add --queue "$nasty" --key "$nasty" -- true
    try 0 list --queue "$nasty" --key "$nasty" -o ndjson
    [ "$(json 'd["queue"]')" = "$nasty" ]
}

@test "wrong combinations: exit 2" {
    try 2 add
    says "nothing to run"
    try 2 add --
    try 2 add --in 1s --at 12:00 -- true
    try 2 add --kind noop -- true
    try 2 add --payload 1 -- true
    try 2 add --kind noop --cwd . --payload 1
    try 2 add --priority many -- true
    says "whole number"
    try 2 add --in 10 -- true
    says "--in"
    try 2 add --timeout 0s -- true
    try 2 add --max-attempts 0 -- true
    try 2 add --env =x -- true
    try 2 add --env SURELY_NOT_SET -- true
    try 4 add --cwd missing -- true
}

@test "a duplicate is skipped: the first id, exit 0" {
    try 0 add --key k -- true
    try 0 add --key k -- false
    same 1 "$output"
    try 0 --json add --key k -- false
    same "1 False exists" "$(json '"%s %s %s" % (d["id"], d["created"], d["outcome"])')"
    try 0 --json add --key k2 -- false
    same "True created" "$(json '"%s %s" % (d["created"], d["outcome"])')"
    try 0 --json add --queue other --key k -- true
    same True "$(json 'd["created"]')"
}

@test "--on-duplicate fail: exit 5, nothing on stdout" {
    try 0 add --key k -- true
    try 5 add --key k --on-duplicate fail -- true
    same "" "$output"
    says "job 1, queued"
}

@test "--on-duplicate requeue: a finished one runs again, a queued one is replaced" {
    try 0 add --key k --kind noop --payload '{"result":1}'
    try 0 --json add --key k --kind noop --payload '{"result":2}' --on-duplicate requeue
    same replaced "$(json 'd["outcome"]')"
    pawl -q run --drain
    try 0 show 1 --json
    same "done 2 1" "$(json '"%s %s %s" % (d["state"], d["result"], d["fence"])')"
    try 0 --json add --key k --kind noop --payload '{"result":3}' --on-duplicate requeue
    same requeued "$(json 'd["outcome"]')"
    pawl -q run --drain
    try 0 show 1 --json
    same "done 3 2" "$(json '"%s %s %s" % (d["state"], d["result"], d["fence"])')"
}

@test "--on-duplicate requeue of a running job: unchanged, exit 5" {
    pawl add --key k -- sleep 30
    background run -q
    wait_for eval '[ "$(state 1)" = running ]'
    try 5 add --key k --on-duplicate requeue -- true
    says "is running"
    pawl -q cancel 1
}

@test "a kind nobody knows is warned about, with the nearest name" {
    printf 'kinds:\n  parse: {command: [cat]}\n' >>pawl.yaml
    try 0 add --kind prase --payload 1
    same 1 "$output"
    says "warning: no configuration and no live worker knows kind 'prase'; did you mean 'parse'?"
    try 0 add --kind parse --payload 1
    same "" "$stderr"
}
