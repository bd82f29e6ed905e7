load helper

state_home() {
    export XDG_STATE_HOME="$PWD/state"
}

@test "each: words, the shell, and where jobs are kept" {
    state_home
    try 0 each -k echo {} ::: a 'b  c'
    same $'a\nb  c' "$output"
    says "jobs are kept in "
    says "2 done"
    [ -z "$(ls state/pawl)" ]
    try 0 each -q -k 'echo {} | wc -c' ::: a 'b c'
    same $'2\n4' "$output"
    same "" "$stderr"
    try 0 each -q -k -- echo {.} '|' ::: a.b
    same 'a |' "$output"
}

@test "each: a store that is there is used and remembers" {
    state_home
    pawl add --queue other -- touch never
    try 0 each echo ::: a b
    says "jobs are kept in "
    try 0 each echo ::: b c a
    same c "$output"
    says "1 done, 2 done before"
    [ ! -e never ]
    same 3 "$(pawl list --state done -o ndjson | wc -l)"
}

@test "each: failures: exit 7, one line, the same line repeats them" {
    state_home
    try 7 each 'test -e good || test {} = a' ::: a b c
    same "pawl: 2 of 3 jobs failed, 1 done; the same line again repeats them" \
        "$(grep -v 'jobs are kept' <<<"$stderr")"
    touch good
    try 0 each 'test -e good || test {} = a' ::: c b a
    says "2 done, 1 done before"
    [ -z "$(ls state/pawl)" ]
    try 7 each nosuch-program ::: x
    says "pawl: x: program not found: nosuch-program"
    try 7 each -q 'exit {}' ::: 75
    try 7 each -q 'exit {}' ::: 100
}

@test "each: retries, and only the last try is printed" {
    state_home
    try 7 each -q --retries 3 'echo {} | tee -a tries; false' ::: x
    same x "$output"
    same 3 "$(wc -l <tries)"
    try 7 each -q --max-attempts 2 'echo {} >>more; false' ::: x
    same 2 "$(wc -l <more)"
}

@test "each: halt, timeout, joblog" {
    state_home
    try 7 each -j1 --halt now,fail=2 'echo {}; false' ::: 1 2 3 4
    same $'1\n2' "$output"
    says "the others were not started"
    try 7 each --timeout 100ms sleep ::: 30
    says "timed out after 100ms"
    try 7 each -q -j1 --timeout 500% 'sleep {}' ::: 0.02 0.02 0.02 0.02 30
    try 0 each -q --joblog log echo ::: a 'b c'
    try 0 each -q --joblog log echo ::: d
    same 4 "$(wc -l <log)"
    same "echo 'b c'" "$(grep "b c" log | cut -f9)"
}

@test "each: slots are numbered from 1 and do not overlap" {
    state_home
    try 0 each -q -j2 'mkdir s{%} && test $PAWL_SLOT = {%} && rmdir s{%} && echo {%}' ::: 1 2 3 4 5 6
    same "1 2" "$(sort -u <<<"$output" | xargs)"
    try 0 each -q -j1 echo {%} ::: '{%}'
    same 1 "$output"
    try 0 each -q -j1 echo {%}{} ::: '{%}'
    same '1{%}' "$output"
}

@test "each: a dry run adds nothing" {
    state_home
    try 0 each --dry-run echo {} '{#}' ::: a "it's"
    same $'echo a 1\necho \'it\'"\'"\'s\' 2' "$output"
    [ ! -e state ]
    no_store
}

@test "each: the same line twice at the same time: exit 5" {
    state_home
    background each 'echo {} >began; sleep 30' ::: a
    wait_for test -e began
    try 5 each 'echo {} >began; sleep 30' ::: b
    says "is running in this folder already"
    try 0 each -q 'echo other' ::: b
}

@test "each: a slow writer's inputs start before its end" {
    state_home
    { echo a; for _ in $(seq 100); do [ -e seen-a ] && break; sleep 0.1; done; echo b; } |
        pawl each -q 'touch seen-{}; echo {}' >out
    [ -e seen-a ]
    same "a b" "$(sort out | xargs)"
}

@test "each: all of a long output, none of it raw" {
    state_home
    try 0 each -q -k 'seq {} 200000' ::: 1 100000
    same 300001 "${#lines[@]}"
    try 0 each --bar echo ::: a
}

@test "each: usage" {
    state_home
    try 2 each --jobs x echo ::: a
    says "--jobs is 'x'"
    try 2 each --halt fail=0 echo ::: a
    try 2 each --halt later,fail=1 echo ::: a
    try 2 each --timeout soon echo ::: a
    try 2 each --retries 0 echo ::: a
    try 2 each --retries 2 --max-attempts 2 echo ::: a
    try 2 each --json echo ::: a
    try 2 each --colsep 'a|b' echo ::: a
    try 2 each echo ::::
    try 2 each echo ::: a :::+ b
    says "':::+' is not supported"
    try 2 each --tagg echo ::: a
    says "did you mean --tag?"
    try 3 each echo :::: nosuchfile
    try 4 each --joblog /nosuch/dir/log echo ::: a
    printf 'a\0b\n' | { run --separate-stderr pawl each echo; [ "$status" -eq 4 ]; }
}
