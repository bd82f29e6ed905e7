# Shared by the command line tests: an empty folder per test, pawl in it, stdout and stderr apart.
# The store is a file in that folder, or with PAWL_TEST_STORE=postgres a schema of the test's own. Tests
# that are about SQLite's file are in sqlite.bats.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    unset NO_COLOR
    local store=${PAWL_TEST_STORE:-sqlite} server=${PAWL_TEST_PG_URL-}
    for name in $(env | sed -n 's/^\(PAWL_[A-Z_]*\)=.*/\1/p'); do
        unset "$name"
    done
    if [ "$store" = postgres ]; then
        export PAWL_STORE=${server:?} PAWL_POSTGRES_SCHEMA="t_$SRANDOM$SRANDOM" \
            PAWL_LOG_ROOT="$PWD/.logs"
    fi
    printf 'retry: {base: 1ms, max: 5ms}\n' >pawl.yaml
}

teardown() {
    for pid in $started; do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

pawl() {
    "${PAWL:?}" "$@"
}

# Debian's: another one on the PATH may take a tenth of a second to start.
python3() {
    /usr/bin/python3 "$@"
}

on_postgres() {
    [ -n "${PAWL_POSTGRES_SCHEMA-}" ]
}

# short_lease: before a worker is killed. Only SQLite sees its death at once, on PostgreSQL the lease has
# to run out.
short_lease() {
    ! on_postgres || export PAWL_WORKER_LEASE=1s PAWL_WORKER_HEARTBEAT=200ms \
        PAWL_WORKER_SWEEP_INTERVAL=200ms
}

# try STATUS ARG…: run pawl and expect the exit status; $output is stdout, $stderr the rest.
try() {
    local want=$1
    shift
    run --separate-stderr pawl "$@"
    if [ "$status" -ne "$want" ]; then
        echo "pawl $*: exit status $status, $want expected"
        echo "stdout: $output"
        echo "stderr: $stderr"
        return 1
    fi
}

# says TEXT / prints TEXT: stderr / stdout contains it.
says() {
    [[ "$stderr" == *"$1"* ]] || { echo "not in stderr: $1"; echo "stderr: $stderr"; return 1; }
}
prints() {
    [[ "$output" == *"$1"* ]] || { echo "not in stdout: $1"; echo "stdout: $output"; return 1; }
}

# same WANT GOT
same() {
    [ "$1" = "$2" ] || { echo "expected: $1"; echo "got:      $2"; return 1; }
}

# json EXPR: a Python expression over d, the JSON in $output.
json() {
    python3 -c 'import json, sys; d = json.loads(sys.argv[2]); print(eval(sys.argv[1]))' \
        "$1" "$output"
}

# no_store: none was made.
no_store() {
    run --separate-stderr pawl status
    same 3 "$status"
}

# state ID
state() {
    pawl show "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])'
}

# wait_for COMMAND…: until it succeeds, 20 s at most.
wait_for() {
    local end=$((SECONDS + 20))
    until "$@"; do
        [ $SECONDS -lt $end ] || { echo "timed out: $*"; return 1; }
        sleep 0.05
    done
}

started=
# background ARG…: a pawl of its own, killed at the end of the test; its pid in $pid.
background() {
    "${PAWL:?}" "$@" >"background.out" 2>"background.err" 3>&- &
    pid=$!
    started="$started $pid"
}
