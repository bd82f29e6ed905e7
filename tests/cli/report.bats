load helper

# too_wide: lines of stdin with more than 80 characters.
too_wide() {
    python3 -c 'import sys; print(*[l for l in sys.stdin.buffer.read().decode().splitlines() if len(l) > 80])'
}

# Two queues: 3 done, 1 skipped, 5 failed in two groups, 1 cancelled, 2 retries.
fill() {
    for n in 1 2 3; do
        pawl add --queue a --key "ok-$n" -- true >/dev/null
        pawl add --queue a --max-attempts 1 --kind noop --key "bad-$n" \
            --payload "{\"fail\":\"fatal\",\"reason\":\"cannot reach host $n$n$n: timed out\"}" >/dev/null
    done
    pawl add --queue b --kind noop --payload '{"skip":true}' >/dev/null
    pawl add --queue b --max-attempts 2 -- sh -c 'exit 3' >/dev/null
    pawl add --queue b --max-attempts 2 -- sh -c 'exit 3' >/dev/null
    pawl -q run --drain --no-fail
    pawl add --queue b --in 1h --key later -- true >/dev/null
    pawl add --queue b -- true >/dev/null
    pawl -q cancel 11
}

@test "report: numbers of known jobs" {
    fill
    try 0 report
    prints "now      0 blocked, 0 queued, 1 waiting, 0 running"
    prints "ended    3 done, 1 skipped, 5 failed, 1 cancelled"
    prints "retries  2, and 0 lost with their worker"
    prints "waits    "
    prints "workers  0 alive, 1 ended, 0 lost"
    prints "disk     store "
    prints "SLOWEST"
    prints "ok-1"
    prints "      3  fatal      cannot reach host "
    prints "      2  error      "
    same "" "$(printf '%s\n' "$output" | too_wide)"
}

@test "report --json: the same, and by queue" {
    fill
    try 0 report --json
    same "['since', 'until', 'queue', 'now', 'ended', 'rate', 'retried', 'lost', 'backoff_ms', 'retry_after_ms', 'workers', 'fetches', 'disk', 'slowest', 'errors']" \
        "$(json 'list(d)')"
    same "{'done': 3, 'skipped': 1, 'failed': 5, 'cancelled': 1}" "$(json 'd["ended"]')"
    same "4 60 720000" "$(json '"%s %s %s" % (sum(d["rate"]["ended"]), len(d["rate"]["ended"]), d["rate"]["each_ms"])')"
    same "[('fatal', 3), ('error', 2)]" "$(json '[(e["class"], e["count"]) for e in d["errors"]]')"
    same "3 2 True" "$(json '"%s %s %s" % (len(d["slowest"]), d["retried"], d["disk"]["store_bytes"] > 0)')"
    [[ "$(json 'd["since"]')" =~ ^20[0-9-]+T[0-9:]+\.[0-9]{3}Z$ ]]
    try 0 report --queue b --json
    same "{'done': 0, 'skipped': 1, 'failed': 2, 'cancelled': 1}" "$(json 'd["ended"]')"
    same "b 1 1" "$(json '"%s %s %s" % (d["queue"], d["now"]["waiting"], len(d["errors"]))')"
    try 0 report --queue nobody --json
    same "{'done': 0, 'skipped': 0, 'failed': 0, 'cancelled': 0}" "$(json 'd["ended"]')"
}

@test "report: the command to paste works" {
    fill
    try 0 report
    line=$(printf '%s\n' "$output" | grep -A1 'cannot reach' | grep -o 'pawl retry --error e[0-9a-f]*')
    eval "$line -q --yes"
    same "queued queued queued" "$(state 2) $(state 4) $(state 6)"
    same failed "$(state 8)"
    try 0 report --queue b
    printf '%s\n' "$output" | grep -q 'pawl retry --error e[0-9a-f]* --queue b '
}

@test "report: a queue's name is quoted for the shell" {
    pawl add --queue "it's mine" --kind noop --payload '{"fail":"fatal"}' >/dev/null
    pawl -q run --drain --no-fail
    try 0 report --queue "it's mine"
    line=$(printf '%s\n' "$output" | grep -o 'pawl retry --error .*')
    eval "${line%%#*} -q --yes"
    same queued "$(state 1)"
}

@test "report: the sparkline in UTF-8 and in ASCII" {
    fill
    LC_ALL=C.UTF-8 try 0 report --since 5m
    printf '%s\n' "$output" | grep -qE '^rate     .*█'
    prints "highest"
    LC_ALL=C try 0 report --since 5m
    printf '%s\n' "$output" | grep -qE '^rate     [_.:=+*#-]*#[_.:=+*#-]*$'
    try 2 report --since tomorrowish
    try 2 report --since 2099-01-01T00:00:00Z
    says "future"
}

@test "report: nothing from a job reaches a terminal, 80 columns hold" {
    pawl add --queue "$(printf '%0200d' 5)" --key "$(printf 'rtl\xe2\x80\xaeevil%0200d' 7)" --kind noop >/dev/null
    pawl add -- sh -c 'printf "{\"error\":\"\\\\u001b[2J%0500d\"}\n" 3 >&3; printf "\033[2J%0500d" 3 >&2; exit 1' >/dev/null
    pawl -q run --drain --no-fail
    script -qec "stty cols 80; '$PAWL' --color never report" /dev/null >typed </dev/null
    ! grep -qP '\x1b|\x07|\xe2\x80\xae' typed
    same "" "$(tr -d '\r' <typed | too_wide)"
    grep -q "pawl retry --error" typed
}

@test "report on an empty store; without a store" {
    try 3 report
    pawl add --queue x -- true >/dev/null
    try 0 report
    prints "1 queued"
    prints "ended    0 done"
    [[ "$output" != *rate* && "$output" != *SLOWEST* && "$output" != *CLASS* ]]
}

@test "run --drain ends with a short report after many jobs, not with -q or --json" {
    many() { for i in $(seq 100); do echo '{"kind":"noop","queue":"m"}'; done | pawl -q import -; }
    many
    try 0 run --drain --queue m
    says "report   "
    says ", queue m"
    says "SLOWEST"
    many
    try 0 run --drain -q
    same "" "$stderr"
    many
    try 0 run --drain --json
    [[ "$stderr" != *SLOWEST* ]]
    pawl add -- true >/dev/null
    try 0 run --drain
    [[ "$stderr" != *SLOWEST* ]]
}

@test "status --watch without a terminal: pages, or one JSON object a line" {
    pawl add -- true >/dev/null
    try 0 status --watch --count 2 --interval 100ms
    same 2 "$(printf '%s\n' "$output" | grep -c '1 queued')"
    same 1 "$(printf '%s\n' "$output" | grep -c '^---- 20.*Z ----$')"
    try 0 status --watch --count 3 --interval 100ms --json
    same "1 1 1" "$(printf '%s\n' "$output" | python3 -c 'import json, sys; print(*[json.loads(l)["jobs"]["queued"] for l in sys.stdin])')"
    try 2 status --interval 1s
    try 2 status --watch --interval 1ms
    background status --watch --interval 100ms
    wait_for eval '[ "$(grep -c "1 queued" background.out)" -ge 2 ]'
    kill -INT "$pid"
    got=0
    wait "$pid" || got=$?
    same 130 "$got"
    "$PAWL" status --watch --interval 100ms 3>&- | head -1 | grep -q queued
}
