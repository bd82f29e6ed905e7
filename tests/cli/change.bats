load helper

field() { # ID NAME
    pawl show "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

@test "set: one job by its id, what is named and nothing else" {
    pawl add --in 1h --priority 3 -- true
    try 0 set 1 --priority 9
    says "1 job changed"
    same "9 waiting" "$(field 1 priority) $(field 1 state)"
    try 0 set 1 --in 0s --timeout 2m --max-attempts 7
    same "9 queued 120000 7" "$(field 1 priority) $(field 1 state) $(field 1 timeout_ms) $(field 1 max_attempts)"
    try 0 set 1 --at 2099-01-01T00:00:00Z --timeout none
    same "waiting None" "$(field 1 state) $(field 1 timeout_ms)"
    try 0 events --type changed -o ndjson
    same 3 "$(wc -l <<<"$output")"
}

@test "set: a selection, by the rules of acting on many" {
    for i in 1 2 3; do pawl add --queue s --kind noop --payload null; done
    try 2 set --queue s --priority 1
    says "3 jobs would be changed"
    try 0 set --queue s --priority 1 -n
    same 0 "$(field 2 priority)"
    try 0 --json set --queue s --priority 1 --limit 2 --yes
    same "2 False" "$(json '"%s %s" % (d["changed"], d["dry_run"])')"
    same "1 1 0" "$(field 1 priority) $(field 2 priority) $(field 3 priority)"
}

@test "set: refuses what cannot be" {
    pawl add --kind noop --payload null
    pawl add -- true
    pawl -q run --stop-after 1
    try 5 set 1 --priority 1
    says "it is done"
    try 3 set 99 --priority 1
    try 2 set 2
    says "set what?"
    try 2 set --priority 1
    says "of which jobs?"
    try 2 set 2 --in 1s --at 12:00
    try 2 set 2 --timeout 0s
    try 2 set 2 --max-attempts 0
    try 2 set --state running --priority 1
}

@test "set --payload: one job, checked by its handler" {
    pawl add -- echo old
    pawl add -- echo other
    try 4 set 1 --payload '{"command":'
    try 4 set 1 --payload '{"cmd":["true"]}'
    says "cmd"
    try 2 set --queue default --payload '{"command":["true"]}' --yes
    says "one job"
    echo '{"command":["echo","new"]}' >new.json
    try 0 set 1 --payload @new.json
    pawl -q run --drain
    same new "$(pawl logs 1)"
    same other "$(pawl logs 2)"
}

@test "release: what waits becomes ready, whatever it waits for" {
    pawl add --in 1h -- true
    pawl add --at 2099-01-01T00:00:00Z -- true
    pawl add -- true
    try 0 release 1
    says "1 job released"
    try 0 release --state waiting --yes
    same "queued queued" "$(state 1) $(state 2)"
    try 5 release 3
    says "it is queued"
    try 3 release 99
    try 2 release
    try 2 release --state done --yes
    try 0 run -q --drain
}

@test "release: a running job needs --force, and costs no attempt" {
    pawl add -- sh -c 'test -e second || { touch second; sleep 60; }'
    background run -q
    wait_for test -e second
    try 5 release 1
    says "--force"
    try 5 release --state running --yes
    says "1 running job not released"
    same running "$(state 1)"
    try 0 --json release --state running --force --yes
    same 1 "$(json 'd["changed"]')"
    try 0 wait 1 --timeout 20s
    same 1 "$(field 1 attempt)"
}

@test "--error takes a text or a fingerprint" {
    pawl add --max-attempts 1 -- sh -c 'echo "no file 17" >&2; exit 3'
    pawl add --max-attempts 1 -- sh -c 'echo "no file 18" >&2; exit 3'
    pawl add --max-attempts 1 -- sh -c 'echo e0ff >&2; exit 4'
    pawl -q run --drain --no-fail
    try 0 show 1 --json
    print=$(json 'd["error"]["fingerprint"]')
    [[ "$print" =~ ^e[0-9a-f]{6}$ ]]
    try 0 show 1
    prints "$print"
    try 0 list --error "$print" -o ndjson
    same 2 "$(wc -l <<<"$output")"
    try 0 list --error "${print:0:5}" --state failed -o ndjson
    same 2 "$(wc -l <<<"$output")"
    try 0 list --error "no file 17" -o ndjson
    same 1 "$(wc -l <<<"$output")"
    try 0 list --error e0ff -o ndjson
    prints '"id":3,'
    try 0 retry --error "$print" --yes
    says "2 jobs retried"
    same "queued failed" "$(state 2) $(state 3)"
}

@test "logs: attempts, tail, since" {
    pawl add --max-attempts 3 -- sh -c 'echo a; echo b; printf c; exit 1'
    pawl -q run --drain --no-fail
    try 0 logs 1
    same $'a\nb\nc' "$output"
    try 0 logs --tail 2 1
    same $'b\nc' "$output"
    try 0 logs --attempt 2 --tail 1 1
    same c "$output"
    try 0 logs --since 1h --tail 1 1
    same ccc "$output"
    says "attempt 2"
    says "attempt 3"
    try 0 logs --since 2099-01-01T00:00:00Z 1
    says "no attempt"
    try 3 logs --attempt 4 1
    try 2 logs --tail 0 1
    try 2 logs --since 1h --attempt 1 1
}

@test "events -f: by queue, type and job, also after pruning" {
    pawl add --queue one --kind noop --payload null
    pawl -q run --drain
    pawl -q prune --state done --yes
    for filter in "--queue two" "--type done" "--job 2" "--queue two --type added"; do
        # shellcheck disable=SC2086
        "$PAWL" events -f -o ndjson --since 1h $filter >"seen-${filter//[- ]/}" 3>&- &
        started="$started $!"
    done
    pawl add --queue two --kind noop --payload null
    pawl add --queue one --kind noop --payload null
    pawl -q run --drain
    wait_for eval '[ "$(wc -l <seen-queuetwo)" = 3 ]'
    wait_for eval '[ "$(grep -c "\"job\":[23]" seen-typedone)" = 2 ]'
    wait_for eval '[ "$(wc -l <seen-job2)" = 3 ]'
    wait_for eval '[ "$(wc -l <seen-queuetwotypeadded)" = 1 ]'
    run -1 grep '"queue":"one"' seen-queuetwo seen-job2
}

@test "show --copy: terminal, programs, or a polite no" {
    pawl add -- true
    mkdir empty bin
    with_path() { PATH=$1 "$PAWL" show 1 --copy; }
    run -1 --separate-stderr with_path "$PWD/empty"
    says "no clipboard"
    printf '#!/bin/sh\nexec /bin/cat >"%s/clip"\n' "$PWD" >bin/xclip
    chmod +x bin/xclip
    run -0 --separate-stderr with_path "$PWD/bin"
    says "xclip"
    same "" "$output"
    same "$(pawl show 1 --json)" "$(cat clip)"
    script -qec "'$PAWL' show 1 --copy" /dev/null >typed
    same "$(pawl show 1 --json)" "$(sed -n 's/.*\x1b]52;c;\([^\x07]*\)\x07.*/\1/p' typed | base64 -d)"
}

@test "a pruned job's key does not stop --on-duplicate requeue" {
    pawl add --key once --kind noop --payload null
    pawl -q run --drain
    pawl -q prune 1
    try 0 --json add --key once --kind noop --payload null --on-duplicate requeue
    same "2 created" "$(json '"%s %s" % (d["id"], d["outcome"])')"
}

@test "payloads with line ends do not break JSON lines" {
    printf '{"command":\n["true"]\n}' >p.json
    pawl add --payload @p.json
    try 0 list --full -o ndjson
    same 1 "$(wc -l <<<"$output")"
    same "['true']" "$(json 'd["payload"]["command"]')"
}
