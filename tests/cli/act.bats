load helper

failures() {
    for i in 1 2 3; do
        pawl add --queue "q$((i % 2))" --kind noop --max-attempts 1 --payload '{"fail":"error"}'
    done >/dev/null
    pawl -q run --drain --no-fail
}

@test "retry: every failed job; needs --yes where nobody can be asked" {
    failures
    try 2 retry
    says "3 jobs would be retried"
    says "--yes"
    same failed "$(state 1)"
    try 0 retry --dry-run
    says "3 jobs would be retried"
    same failed "$(state 1)"
    try 0 retry --yes
    says "3 jobs selected"
    says "3 jobs retried"
    same queued "$(state 1)"
}

@test "retry by selection and by id" {
    failures
    try 0 --json retry --queue q1 -n
    same "2 True" "$(json '"%s %s" % (d["changed"], d["dry_run"])')"
    try 0 --json retry --queue q1 --limit 1 --yes
    same 1 "$(json 'd["changed"]')"
    try 0 retry 2
    says "1 job retried"
    same queued "$(state 2)"
    try 5 retry 2
    says "cannot retry job 2: it is queued"
    try 3 retry 99
    try 2 retry --state queued --yes
}

@test "retry --max-attempts grants more" {
    failures
    try 0 retry 1 --max-attempts 2
    pawl -q run --drain --no-fail
    try 0 show 1 --json
    same "failed 3" "$(json '"%s %s" % (d["state"], d["attempt"])')"
    try 2 retry 1 --max-attempts 0
}

@test "retry asks on a terminal" {
    failures
    script -qec "'$PAWL' retry" /dev/null >typed <<<"n" || true
    grep -q "retry 3 jobs?" typed
    same failed "$(state 1)"
    script -qec "'$PAWL' retry" /dev/null >typed <<<"y"
    same queued "$(state 1)"
}

@test "cancel: by id, by selection; never everything by accident" {
    for i in 1 2 3; do pawl add --queue c --kind noop --payload null; done
    try 2 cancel
    says "cancel which jobs?"
    try 0 cancel 1
    says "1 job cancelled"
    same cancelled "$(state 1)"
    try 5 cancel 1
    try 3 cancel 99
    try 2 cancel --queue c
    try 0 cancel --queue c --yes
    says "2 jobs cancelled"
    try 2 cancel --state done --yes
}

@test "cancel ends a running job" {
    pawl add -- sleep 60
    background run -q
    wait_for eval '[ "$(state 1)" = running ]'
    try 0 cancel 1
    says "1 job cancelled"
    wait_for eval '[ "$(state 1)" = cancelled ]'
    try 0 retry 1
    says "1 job retried"
    pawl -q cancel 1
}

@test "pause holds a queue, resume lets it go" {
    pawl add --queue p --kind noop --payload null
    try 0 pause p
    says "queue p is paused"
    try 0 pause p
    says "already"
    try 8 run -q --drain
    same queued "$(state 1)"
    try 0 --json resume p
    same "[{'queue': 'p', 'paused': False, 'changed': True}]" "$(json 'd')"
    try 0 run -q --drain
    same "done" "$(state 1)"
    try 2 pause
    try 2 pause p --all
    try 4 pause ''
    try 0 pause --all
    try 0 resume --all
}

@test "a queue can be paused before it has jobs" {
    try 0 pause early
    pawl add --queue early --kind noop --payload null
    try 8 run -q --drain
}

@test "prune: finished jobs by state and age" {
    failures
    pawl add --kind noop --payload null
    try 0 prune --yes
    says "0 jobs pruned"
    try 0 prune --state failed --older-than 1h --yes
    says "0 jobs pruned"
    try 2 prune --state failed
    try 0 prune --older-than 1h -n
    says "0 jobs would be pruned"
    try 0 prune --queue q1 --older-than 0s -n
    says "2 jobs would be pruned"
    try 0 prune --state failed --yes
    says "3 jobs pruned"
    try 3 show 1
    same queued "$(state 4)"
    try 5 prune 4
    try 2 prune --state queued --yes
}

@test "a pruned job's key stays taken" {
    pawl add --key once --kind noop --payload null
    pawl -q run --drain
    try 0 prune 1
    try 0 --json add --key once --kind noop --payload null
    same False "$(json 'd["created"]')"
}

@test "workers: list and ask" {
    pawl add --kind noop --payload null
    try 0 workers
    says "no worker"
    background run -q --kind noop
    wait_for eval '[ "$(pawl workers -o ndjson | wc -l)" = 1 ]'
    try 0 workers --json
    name=$(json 'd[0]["name"]')
    same "True $pid" "$(json '"%s %s" % (d[0]["alive"], d[0]["pid"])')"
    wait_for eval '[ "$(state 1)" = done ]'
    try 0 workers pause "$name"
    says "1 worker asked to pause"
    wait_for eval 'pawl workers | grep -q paused'
    try 0 workers resume --all
    try 3 workers stop nobody:1
    try 2 workers stpo "$name"
    says "did you mean 'stop'?"
    try 2 workers stop
    try 2 workers stop "$name" --all
    try 0 workers stop "$name"
    wait "$pid"
}
