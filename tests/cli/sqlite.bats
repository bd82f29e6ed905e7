# What is about a file: names and paths of stores, files that are none, backups, private stores.
# store: sqlite
load helper

@test "no store: which one, and none is made" {
    try 3 list
    says "pawl: no store at ./pawl.db"
    try 3 --store some/where.db list
    says "pawl: no store at some/where.db"
    [ ! -e pawl.db ]
}

@test "the store: flag, environment, configuration, default" {
    try 0 --store sqlite:flag.db add -- true
    [ -e flag.db ]
    PAWL_STORE=env.db try 0 add -- true
    [ -e env.db ]
    echo 'store: sqlite:conf.db' >pawl.yaml
    try 0 add -- true
    [ -e conf.db ]
    try 0 --store plain.db add -- true
    [ -e plain.db ]
    rm pawl.yaml
    try 0 add -- true
    [ -e pawl.db ]
}

@test "backup: another store to the lake" {
    echo 'date +%N >f; echo "{\"artifact\":{\"name\":\"f\",\"path\":\"f\"}}" >&3' >keep.sh
    pawl add -- sh keep.sh
    pawl run -q --drain
    pawl backup copy.db
    pawl add -- sh keep.sh
    pawl run -q --drain
    touch -d '2 hours ago' lake/objects/*/*
    try 5 --store copy.db verify --repair --yes
    says "is another store's"
    try 0 verify
    says "2 artifacts read"
}

@test "backup: a store of its own; never over a file" {
    pawl add --key k -- true
    try 0 backup copy.db
    same 1 "$(pawl --store copy.db list -o ndjson | wc -l)"
    try 5 backup copy.db
    try 2 backup
}

@test "a file that is not a store: exit 4, left alone" {
    echo "this is not a database, just some text that is long enough to be one page" >pawl.db
    cp pawl.db before
    for command in list "add -- true" "run --drain"; do
        try 4 $command
    done
    cmp pawl.db before
    rm pawl.db
    python3 -c 'import sqlite3; sqlite3.connect("pawl.db").execute("create table t(x)")'
    try 4 add -- true
    try 4 list
}

@test "a folder that is not there or not writable: exit 6" {
    try 6 --store missing/pawl.db add -- true
    [ "$(id -u)" -ne 0 ] || skip "root may write everywhere"
    mkdir locked
    chmod 500 locked
    try 6 --store locked/pawl.db add -- true
}

@test "each: a private store, kept until all are done" {
    export XDG_STATE_HOME="$PWD/state"
    try 7 each 'test -e good || test {} = a' ::: a b
    says "jobs are kept in sqlite:$PWD/state/pawl/each-"
    [ -n "$(ls state/pawl)" ]
    touch good
    try 0 each 'test -e good || test {} = a' ::: a b
    says "1 done, 1 done before"
    [ -z "$(ls state/pawl)" ]
    [ ! -e pawl.db ]
    try 0 add -- true
    try 0 each echo ::: a
    says "jobs are kept in sqlite:pawl.db"
}

@test "verify: more rows than are read at a time, the last one too" {
    echo hello >f
    pawl add -- sh -c 'echo "{\"artifact\":{\"name\":\"a\",\"path\":\"f\"}}" >&3' >/dev/null
    pawl run -q --drain
    sqlite3 pawl.db "INSERT INTO artifact (job, fence, queue, size, stored, codec, created_at, sha256, name, place)
        SELECT 1000 + value, 1, queue, size, stored, codec, created_at, sha256, name, place
        FROM artifact, generate_series(1, 4500)"
    try 0 verify --json
    same "4501 0" "$(json '"%s %s" % (d["checked"], len(d["findings"]))')"
    sqlite3 pawl.db "UPDATE artifact SET sha256 = zeroblob(32) WHERE id = (SELECT max(id) FROM artifact)"
    try 1 verify --json
    same "4501 1 1" "$(json '"%s %s %s" % (d["checked"], len(d["findings"]), d["damaged"])')"
}
