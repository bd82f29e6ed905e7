load helper

noop() {
    pawl add --kind noop --payload "${1:-null}" "${@:2}"
}

@test "wait: 0 when all are done, 7 when some failed, 3 for an unknown job" {
    noop
    noop '{"fail":"fatal"}' --queue bad
    try 0 wait --timeout 0s --queue none
    background run -q
    try 0 wait 1 --timeout 20s
    try 7 wait 2 --timeout 20s
    says "1 job failed or cancelled"
    try 7 wait --timeout 20s
    try 0 wait --queue default
    try 7 wait 1 2
    try 3 wait 1 99
    says "no job 99"
    try 2 wait one
    same "" "$output"
}

@test "wait: 8 when the time is over" {
    noop null --in 1h
    try 8 wait --timeout 100ms
    says "1 job not finished in time"
    try 8 wait --timeout 100ms 1
    try 8 wait --timeout 100ms --state waiting
    try 0 wait --timeout 100ms --state running
}

@test "wait: jobs that are added meanwhile count where no ids were given" {
    pawl add --queue w -- sh -c 'until [ -e go ]; do sleep 0.02; done'
    background run -q --slots 2
    background --json wait --queue w --timeout 20s
    all=$pid
    "$PAWL" --json wait 1 --timeout 20s >one 3>&- &
    one=$!
    started="$started $one"
    pawl add --queue w -- sh -c 'until [ -e gone ]; do sleep 0.02; done'
    touch go
    wait "$one"
    same 1 "$(python3 -c 'import json; print(json.load(open("one"))["done"])')"
    kill -0 "$all"
    touch gone
    wait "$all"
    output=$(cat background.out)
    same "2 0" "$(json '"%s %s" % (d["done"], d["left"])')"
}

@test "wait --any-failure ends at the first one" {
    noop '{"fail":"fatal"}'
    noop null --in 1h
    pawl -q run --stop-after 1
    try 7 wait --any-failure --timeout 20s
    try 7 wait --any-failure 1 2
    try 8 wait --timeout 50ms
}

@test "wait says nothing in a pipe, draws a line on a terminal, ends with Ctrl-C" {
    noop null --in 1h
    "$PAWL" wait 2>words 3>&- &
    pid=$!
    started="$started $pid"
    sleep 0.3
    kill -INT "$pid"
    wait "$pid" || same 130 "$?"
    same "" "$(cat words)"
    script -qec "'$PAWL' wait --timeout 300ms" /dev/null >typed || true
    grep -q "0 failed, 1 left" typed
}

@test "a job that was pruned while somebody waits is finished" {
    noop '{"sleep":"300ms"}'
    background wait 1 --timeout 20s
    pawl -q run --drain
    pawl -q prune 1
    wait "$pid"
}

@test "add --follow: output, attempts, outcome" {
    background run -q
    try 0 add --follow -- sh -c 'echo one; echo two >&2; sleep 0.2; echo three'
    same $'one\ntwo\nthree' "$output"
    says "job 1"
    try 7 add -f --max-attempts 2 -- sh -c 'echo again; exit 4'
    same $'again\nagain' "$output"
    says "attempt 2"
    says "job 2 is failed: exit 4"
    try 2 --json add --follow -- true
}

@test "add --follow of a key that exists shows how it ended; requeued, only what is new" {
    pawl add --key k -- echo first
    pawl -q run --drain
    try 0 add --follow --key k -- echo second
    same "first" "$output"
    background run -q
    try 0 add --follow --key k --on-duplicate requeue -- echo second
    same "second" "$output"
}

@test "add --follow ends with Ctrl-C, the job goes on" {
    pawl -q pause default
    "$PAWL" add --follow -- true 2>words 3>&- &
    pid=$!
    started="$started $pid"
    wait_for grep -q "job 1" words
    kill -INT "$pid"
    wait "$pid" || same 130 "$?"
    same queued "$(state 1)"
}

@test "run --job: just that job, its output, its outcome" {
    pawl add -- echo other
    pawl add -- sh -c 'echo hello; echo words >&2'
    pawl add --max-attempts 2 -- sh -c 'echo try; exit 3'
    try 0 run --job 2
    same $'hello\nwords' "$output"
    try 7 run --job 3
    same $'try\ntry' "$output"
    says "attempt 2"
    says "exit 3"
    same queued "$(state 1)"
}

@test "run --job: 5 with the reason when it cannot be taken" {
    pawl add --in 1h -- true
    pawl add --queue held -- true
    pawl -q pause held
    pawl add -- sleep 60
    pawl add --kind mystery --payload null
    try 5 run --job 1
    says "waits until"
    says "pawl release 1"
    try 5 run --job 2
    says "paused"
    try 5 run --job 4
    says "mystery"
    printf 'worker: {stop_timeout: 100ms}\n' >>pawl.yaml
    background run --job 3
    wait_for eval '[ "$(state 3)" = running ]'
    try 5 run --job 3
    says "is running on"
    kill -INT "$pid"
    wait "$pid" || same 130 "$?"
    same queued "$(state 3)"
    pawl -q cancel 3
    try 5 run --job 3
    says "is cancelled already"
    try 3 run --job 99
    try 2 run --job 3 --drain
    try 2 --json run --job 3
}
