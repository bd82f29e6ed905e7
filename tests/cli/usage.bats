load helper

@test "pawl alone: commands by group, at most 24 lines" {
    try 0
    [ "${#lines[@]}" -le 24 ]
    for group in Start Look Act Admin; do
        prints "$group"
    done
    try 0 help
    try 0 --help
    prints "usage: pawl"
}

@test "every command has help with usage and two examples" {
    for command in $(pawl help --man-names | sed -n 's/^pawl-\(.*\)\.1$/\1/p'); do
        try 0 help "$command"
        prints "usage: pawl $command"
        [ "$(pawl help --examples | grep -c "^$command	")" -ge 2 ]
        same "$output" "$(pawl "$command" --help)"
    done
}

@test "every page of the manual is made" {
    for page in $(pawl help --man-names); do
        try 0 help --man "$page"
        prints ".TH PAWL"
        prints ".SH NAME"
    done
    try 3 help --man nonsense
}

@test "version" {
    try 0 --version
    [[ "$output" =~ ^pawl\ [0-9]+\.[0-9]+ ]]
}

@test "unknown command: the nearest name, exit 2" {
    try 2 lst
    says "pawl: unknown command 'lst'; did you mean 'list'?"
    same "" "$output"
    try 2 frobnicate
    says "'pawl help' lists them"
    try 2 help lst
    try 2 -- list
    try 2 ''
    try 2 -
}

@test "unknown option: the nearest name, exit 2" {
    try 2 add --prioriti 3 -- true
    says "unknown option --prioriti; did you mean --priority?"
    try 2 list -Z
    says "unknown option -Z"
}

@test "options of later versions are refused" {
    try 2 add --group a -- true
    says "unknown option --group"
    try 2 list --group g
}

@test "options: attached values, missing values, values for flags" {
    try 0 add --queue=q --priority=-3 -- true
    try 0 list --queue q -ondjson
    same -3 "$(json 'd["priority"]')"
    try 2 add --queue
    says "--queue needs a value"
    try 2 list --json=1
    says "--json takes no value"
    try 2 list -o xml
    says "one of table, json, ndjson"
    try 2 -q -v list
}

@test "options may come before, after and between" {
    try 0 add -- true
    try 0 --json show 1
    same 1 "$(json 'd["id"]')"
    try 0 show 1 --json
    same 1 "$(json 'd["id"]')"
}

@test "arguments that are too many or missing: exit 2 with the usage" {
    try 2 show
    says "usage: pawl show ID [--copy]"
    try 2 show 1 2
    try 2 status extra
    try 2 list -- x
    says "takes nothing after '--'"
}

@test "errors under --json: one object on stderr, nothing on stdout" {
    try 3 --json status
    same "" "$output"
    output=$(printf '%s\n' "$stderr" | tail -1)
    same not_found "$(json 'd["error"]["code"]')"
    [[ "$(json 'd["error"]["message"]')" == "no store at "* ]]
    json 'd["error"]["hint"]'
}

@test "looking never creates a store: exit 3" {
    for command in status list "show 1" "logs 1" events workers doctor "backup b.db" \
        "retry --yes" "cancel 1" "prune --yes" "resume q" "workers stop x"; do
        try 3 $command
        says "pawl: no store at "
    done
    no_store
}

@test "stores that do not exist here: exit 2" {
    try 2 --store mysql:x list
    says "known: sqlite:FILE"
    try 2 --store sqlite: list
}

@test "standard output that cannot be written: exit 1" {
    [ -e /dev/full ] || skip "no /dev/full"
    pawl add -- true
    run bash -c '"$PAWL" list >/dev/full'
    same 1 "$status"
    [[ "$output" == *"cannot write standard output"* ]]
}

@test "a reader that goes away: quiet" {
    for i in 1 2 3 4 5 6 7 8 9; do echo '{"kind":"noop"}'; done >jobs
    pawl -q import jobs
    run bash -c '"$PAWL" list -o ndjson | true; "$PAWL" events | true'
    same "" "$output"
}

@test "no color unless asked for" {
    pawl add -- true
    try 0 list
    [[ "$output" != *$'\033'* ]]
    try 0 list --color always
    prints $'\033['
    try 0 list --color always --json
    [[ "$output" != *$'\033'* ]]
    try 2 list --color sometimes
}
