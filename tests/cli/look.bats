load helper

fill() {
    pawl add --queue a --kind noop --key good --payload '{"result":{"n":1}}' >/dev/null
    pawl add --queue a --max-attempts 2 --key bad -- sh -c 'echo out; echo oops >&2; exit 3' >/dev/null
    pawl add --queue b --kind noop --payload '{"skip":true,"reason":"not today"}' >/dev/null
    pawl -q run --drain --no-fail
    pawl add --queue b --in 1h -- true >/dev/null
}

@test "status: counts, queues, last jobs" {
    fill
    try 0 status
    prints "1 waiting, 0 running, 1 done, 1 skipped, 1 failed"
    prints "last done"
    prints "last failed"
    prints "exit 3"
}

@test "status --json has exactly the shape of the contract" {
    fill
    try 0 status --json
    same "['jobs', 'queues', 'workers', 'gates', 'metrics']" "$(json 'list(d)')"
    same "{'blocked': 0, 'queued': 0, 'waiting': 1, 'running': 0, 'done': 1, 'skipped': 1, 'failed': 1, 'cancelled': 0}" \
        "$(json 'd["jobs"]')"
    same "['a', 'b']" "$(json '[q["queue"] for q in d["queues"]]')"
    same 1 "$(json 'd["queues"][0]["retries"]')"
    same 2 "$(json 'd["metrics"]["job_completed"]')"
    same 4 "$(json 'd["metrics"]["job_duration"]["count"]')"
}

@test "status: one line for each thing that needs a person" {
    pawl add --queue held -- true
    pawl add --kind mystery --payload 1
    pawl -q pause held
    printf 'disk_reserve: 1TiB\n' >>pawl.yaml
    try 0 status
    prints "! queue 'held' is paused with 1 job: pawl resume held"
    prints "! 1 job of kind 'mystery'"
    prints "! 1 job and no worker: pawl run"
    on_postgres || prints "disk_reserve" # of the file's disk
}

@test "status shows running jobs by worker with age" {
    pawl add --key slow -- sleep 30
    background run -q
    wait_for eval '[ "$(state 1)" = running ]'
    try 0 status
    prints "slow"
    prints ":$pid"
    try 0 status --json
    same "1 1 slow" "$(json '"%s %s %s" % (len(d["workers"]), d["workers"][0]["jobs"][0]["id"], d["workers"][0]["jobs"][0]["key"])')"
    pawl -q cancel 1
}

@test "status names a dead worker that holds jobs, and the next worker takes them" {
    short_lease
    pawl add -- sh -c 'test -e again || { touch again; sleep 60; }'
    background run -q
    wait_for test -e again
    kill -KILL "$pid"
    wait_for eval '"$PAWL" status | grep -q "died holding 1 job, the next worker takes it over"'
    try 0 workers
    prints dead
    try 0 run -q --drain
    try 0 status
    [[ "$output" != *"died holding"* ]]
}

@test "status names poison" {
    short_lease
    printf 'retry: {max_lost: 1}\n' >pawl.yaml
    pawl add -- sh -c 'touch here; sleep 60'
    background run -q
    wait_for test -e here
    kill -KILL "$pid"
    try 0 run -q --drain --no-fail
    try 0 status
    prints "! 1 poison job,"
    try 0 list --state failed --error poison -o ndjson
    same 1 "$(json 'd["id"]')"
}

@test "status on a narrow terminal leaves out empty columns" {
    pawl add --queue "a-queue-with-a-long-name" -- true
    script -qec "stty cols 80; '$PAWL' --color never status" /dev/null >typed </dev/null
    grep -q QUEUED typed
    ! grep -q BLOCKED typed
    same "" "$(tr -d '\r' <typed | grep -v '^!' | awk 'length($0) > 82')"
    "$PAWL" status | grep -q BLOCKED
}

@test "list selects by everything given" {
    fill
    try 0 list --queue a --state done -o ndjson
    same "1 a noop good done" "$(json '" ".join(str(d[k]) for k in ("id", "queue", "kind", "key", "state"))')"
    same 2 "$(pawl list --state done,skipped -o ndjson | wc -l)"
    same 1 "$(pawl list --error 'exit 3' -o ndjson | wc -l)"
    same 2 "$(pawl list --kind exec -o ndjson | wc -l)"
    same 4 "$(pawl list --since 1h -o ndjson | wc -l)"
    same 0 "$(pawl list --since 2099-01-01T00:00:00Z -o ndjson | wc -l)"
    same 3 "$(pawl list --limit 3 -o ndjson | wc -l)"
    same 2 "$(pawl list 1 2 -o ndjson | wc -l)"
    try 0 list --key nothing --json
    same "[]" "$output"
    try 0 list --json
    same "[1, 2, 3, 4]" "$(json '[j["id"] for j in d]')"
    try 0 list --full 1 -o ndjson
    same "{'n': 1}" "$(json 'd["result"]')"
    try 2 list --state sleeping
    try 2 list --state quued
    says "did you mean queued?"
    try 2 list one
    try 2 list --since yesterday
    try 2 list --full
}

@test "list on a terminal: 50 rows and how many more" {
    for i in $(seq 60); do echo '{"kind":"noop"}'; done >jobs
    pawl -q import jobs
    script -qec "'$PAWL' list" /dev/null >typed </dev/null
    grep -q "… 10 more" typed
    same 51 "$(grep -cE '(queued|STATE)' typed)"
    same 60 "$(pawl list | grep -c queued)"
}

@test "show: the members of the contract, in order" {
    fill
    try 0 show 2 --json
    same "id,queue,kind,key,host,priority,state,attempt,max_attempts,transient_attempts,lost,fence,worker,claimed_at,lease_until,available_at,wait_reason,created_at,finished_at,lock,timeout_ms,payload,result,error,attempts,fetch,artifacts" \
        "$(json '",".join(d)')"
    same "failed 2 2 2" "$(json '"%s %s %s %s" % (d["state"], d["attempt"], d["max_attempts"], d["fence"])')"
    same "error 3" "$(json '"%s %s" % (d["error"]["class"], d["error"]["exit_code"])')"
    same "[('retry', 1, 1), ('failed', 2, 2)]" \
        "$(json '[(a["outcome"], a["attempt"], a["fence"]) for a in d["attempts"]]')"
    [[ "$(json 'd["created_at"]')" =~ ^20[0-9-]+T[0-9:]+\.[0-9]{3}Z$ ]]
    try 0 show 1 --json
    same "None {'n': 1}" "$(json '"%s %s" % (d["error"], d["result"])')"
    try 0 show 2
    prints "attempts"
    try 3 show 99
    says "no job 99"
    try 2 show abc
    try 2 show 0
    try 2 show 99999999999999999999
}

@test "logs: the last attempt, one by number, none yet" {
    fill
    try 0 logs 2
    prints "out"
    prints "oops"
    try 0 logs --attempt 1 2
    prints "oops"
    try 3 logs --attempt 7 2
    try 0 logs 4
    same "" "$output"
    says "has not run yet"
    try 3 logs 99
    try 2 logs 1 --json
}

@test "logs -f follows until the job is finished" {
    mkfifo go
    pawl add -- sh -c 'echo first; read x <go; echo last'
    background run -q
    wait_for eval '[ "$(state 1)" = running ]'
    "$PAWL" logs -f 1 >followed 3>&- &
    follower=$!
    started="$started $follower"
    wait_for grep -q first followed
    echo go >go
    wait "$follower"
    same "first last" "$(tr '\n' ' ' <followed | sed 's/ $//')"
}

@test "control characters never reach a terminal (S22, S51)" {
    pawl add --key "$(printf 'rtl\xe2\x80\xaeevil')" -- sh -c 'printf "\033[31mred\007\n"; printf "\033[2Jgone" >&2; exit 1'
    pawl -q run --drain --no-fail
    for command in list "show 1" status events "logs 1"; do
        script -qec "'$PAWL' --color never $command" /dev/null >typed </dev/null
        ! grep -qP '\x1b|\x07|\xe2\x80\xae' typed
    done
    "$PAWL" logs 1 | grep -qP '\x1b\[31mred'
}

@test "events: the story of a job" {
    fill
    try 0 events --job 2 -o ndjson
    same "added claimed retried claimed failed" \
        "$(printf '%s\n' "$output" | python3 -c 'import json, sys; print(*[json.loads(l)["type"] for l in sys.stdin])')"
    same 4 "$(pawl events --type added -o ndjson | wc -l)"
    same 2 "$(pawl events --type added --queue a -o ndjson | wc -l)"
    same 1 "$(pawl events --limit 1 -o ndjson | wc -l)"
    same 0 "$(pawl events --since 2099-01-01T00:00:00Z -o ndjson | wc -l)"
    try 0 events --type failed,skipped --json
    same "['skipped', 'failed']" "$(json 'sorted((e["type"] for e in d), reverse=True)')"
    try 2 events --type exploded
    try 2 events --type adde
    says "did you mean added?"
    try 2 events -f --json
}

@test "events -f prints what happens and ends on Ctrl-C" {
    pawl add -- true
    background events -f -o ndjson
    wait_for grep -q '"added"' background.out
    pawl add --key later -- true
    wait_for grep -q '"later"' background.out
    kill -INT "$pid"
    got=0
    wait "$pid" || got=$?
    same 130 "$got"
}
