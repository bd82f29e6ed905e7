load helper

# Nothing here is run as a fetch: no network, no lake.
urls() {
    for i in $(seq "$1"); do
        echo "http://127.0.0.1:8080/$i"
    done
}

# ended KEY [PAYLOAD]: a job of that key in queue fetch that has run.
ended() {
    pawl add --queue fetch --key "$1" --kind noop --payload "${2:-null}" >/dev/null
    pawl run -q --queue fetch --kind noop --drain --no-fail
}

# of EXPR: over the jobs of the store, a list j of objects.
of() {
    pawl list --json --full | python3 -c 'import json, sys; j = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}

@test "URLs of the line: one job each, keyed by variant and URL" {
    try 0 fetch http://127.0.0.1:8080/a 'http://LOCALHOST:8080/b?x=1'
    same "" "$output"
    says "2 new, 0 known"
    same "fetch fetch 127.0.0.1 body http://127.0.0.1:8080/a" \
        "$(of '" ".join(j[0][k] for k in ("queue", "kind", "host", "key"))')"
    same "{'url': 'http://LOCALHOST:8080/b?x=1', 'variant': 'body'} localhost" \
        "$(of '"%s %s" % (j[1]["payload"], j[1]["host"])')"
    try 0 fetch http://127.0.0.1:8080/a
    says "0 new, 1 known (1 queued)"
    [[ "$stderr" != *"--refresh"* ]]
    same 2 "$(of 'len(j)')"
}

@test "a file, standard input, comments, blank lines, no line feed at the end" {
    printf '# pages\n\n  http://127.0.0.1:8080/a\r\n\thttp://127.0.0.1:8080/b' >urls
    try 0 fetch -f urls
    says "2 new"
    run --separate-stderr bash -c '"$PAWL" fetch --json -f - <urls'
    same 0 "$status"
    same "2 0 2" "$(json '"%s %s %s" % (d["urls"], d["new"], d["known"])')"
    try 0 fetch -f - </dev/null
    says "0 new, 0 known"
    printf '\xef\xbb\xbfhttp://127.0.0.1:8080/a\r\n' >urls
    try 0 fetch -f urls
    says "0 new, 1 known"
}

@test "what is wrong with a URL is told" {
    try 4 fetch http://127.0.0.1:99999/
    says "ports are 80, 443 and 1024 to 65535"
    try 4 fetch 'http://127.0.0.1:8080/a b'
    says "has a space, a control character"
    try 4 fetch www.example.org/a
    says "is not a URL with http:// or https:// in front"
    printf 'http://127.0.0.1:8080/a\nhttp://127.0.0.1:8080/\0b\n' >list
    for cmd in "fetch -f" plan; do
        try 4 $cmd list
        says "list:2: a URL with a NUL in it"
    done
    printf 'http://127.0.0.1:8080/\xff\n' >list
    try 4 plan list
    says "list:1: a URL that is not UTF-8"
}

@test "variants: the template's {url} and nothing else" {
    try 0 fetch 'http://127.0.0.1:8080/p?q=1' --variant raw='{url}?action=raw' --variant html='{url}' \
        --variant both='http://localhost/?a={url}&b={url}&{c}'
    says "3 new"
    same "['raw http://127.0.0.1:8080/p?q=1', 'html http://127.0.0.1:8080/p?q=1', 'both http://127.0.0.1:8080/p?q=1']" \
        "$(of '[x["key"] for x in j]')"
    same "http://127.0.0.1:8080/p?q=1?action=raw raw 127.0.0.1" \
        "$(of '"%s %s %s" % (j[0]["payload"]["url"], j[0]["payload"]["variant"], j[0]["host"])')"
    same "http://localhost/?a=http://127.0.0.1:8080/p?q=1&b=http://127.0.0.1:8080/p?q=1&{c} localhost" \
        "$(of '"%s %s" % (j[2]["payload"]["url"], j[2]["host"])')"
    try 0 fetch 'http://127.0.0.1:8080/p?q=1' --variant html='{url}'
    says "0 new, 1 known"
}

@test "queue, priority, headers, statuses, texts, robots" {
    try 0 fetch http://127.0.0.1:8080/a --queue q --priority 7 --header 'X-One: a:b ' -H 'Accept: text/html' \
        --accept 200 --accept 404 --reject 'are you "human"?' --no-robots
    same "q 7" "$(of '"%s %s" % (j[0]["queue"], j[0]["priority"])')"
    same "{'headers': {'X-One': 'a:b', 'Accept': 'text/html'}, 'accept': [200, 404], 'reject': ['are you \"human\"?'], 'robots': False}" \
        "$(of '{k: v for k, v in j[0]["payload"].items() if k not in ("url", "variant")}')"
}

@test "usage errors add nothing" {
    try 2 fetch
    says "nothing to fetch"
    try 2 fetch -f x http://127.0.0.1:8080/a
    says "not both"
    for bad in "--variant x" "--variant a=b" "--variant =\{url}" "--variant ../a={url}" \
        "--variant a={url} --variant a={url}/" "--older-than 1d" "--priority x" "--accept 99" "--accept ok" \
        "--refresh --older-than 5"; do
        # shellcheck disable=SC2086
        try 2 fetch http://127.0.0.1:8080/a $bad
    done
    try 2 fetch http://127.0.0.1:8080/a --header 'No colon'
    try 2 fetch http://127.0.0.1:8080/a --header 'A b: c'
    try 2 fetch http://127.0.0.1:8080/a --header $'A: b\r\nEvil: c'
    try 2 fetch http://127.0.0.1:8080/a --header 'A: b' --header 'a: c'
    says "twice"
    try 2 fetch http://127.0.0.1:8080/a --reject ''
    # shellcheck disable=SC2046
    try 2 fetch http://127.0.0.1:8080/a $(seq -f '--variant=v%g={url}' 101)
    says "more than 100 variants"
    try 3 fetch -f missing
    mkdir folder
    try 4 fetch -f folder
    no_store
}

@test "a bad line of a file: FILE:LINE, exit 4, nothing added" {
    { urls 3000; echo 'ftp://127.0.0.1/a'; urls 2; } >list
    try 4 fetch -f list
    says 'pawl: list:3001: "ftp://127.0.0.1/a": only http and https'
    no_store
    for bad in 'nonsense' 'http://' 'http://user:pw@127.0.0.1/' 'http://127.0.0.1:22/' 'http://a b/' \
        "http://127.0.0.1:8080/$(printf '\377')" "http://127.0.0.1:8080/$(printf '%09000d' 1)"; do
        printf 'http://127.0.0.1:8080/ok\n%s\n' "$bad" >list
        try 4 fetch -f list
        says "list:2: "
    done
    no_store
    try 4 fetch http://127.0.0.1:8080/ok file:///etc/passwd
    no_store
}

@test "a bad line of a stream: what came before stays and is said" {
    run --separate-stderr bash -c '{ echo http://127.0.0.1:8080/a; echo bad; } | "$PAWL" fetch -f -'
    same 4 "$status"
    says 'stdin:2: "bad": '
    says "1 job was added before it"
    same 1 "$(of 'len(j)')"
}

@test "--skip-bad counts and lists the first ten" {
    { urls 3; for i in $(seq 12); do echo "bad$i"; done; echo http://127.0.0.1:8080/last; } >list
    try 0 fetch --skip-bad -f list
    says 'list:4: "bad1"'
    says "list:13: "
    [[ "$stderr" != *"list:14: "* ]]
    says "4 new, 0 known, 12 bad lines left out"
    try 0 fetch --skip-bad --json -f list
    same "0 4 12" "$(json '"%s %s %s" % (d["new"], d["known"], d["bad"])')"
}

@test "a URL whose variant is no URL is left out whole" {
    printf '%s\n' http://127.0.0.1:8080/a http://127.0.0.1:8080/b >list
    try 4 fetch -f list --variant html='{url}' --variant bad='x{url}'
    says "list:1: "
    no_store
    try 0 fetch --skip-bad -f list --variant html='{url}' --variant bad='x{url}'
    says "0 new, 0 known, 2 bad lines left out"
}

@test "hosts other than this machine need a contact, said here" {
    { urls 2; echo https://example.org/a; } >list
    for _ in 1 2; do
        try 4 fetch -f list
        says "fetch.contact is not set: example.org"
        says "fetch: {contact: you@example.org}"
        try 4 fetch --skip-bad -f list
    done
    no_store
    try 4 fetch http://127.0.0.1:8080/a --variant x='https://example.org/?{url}'
    try 4 --json fetch https://example.org/
    says '"code":"bad_config"'
    no_store
    try 0 fetch http://localhost:8080/ http://127.1.2.3/ 'http://[::1]:8080/'
    PAWL_FETCH_CONTACT=me@example.org try 0 fetch -f list
    says "3 new"
    printf 'fetch: {contact: me@example.org}\n' >>pawl.yaml
    try 0 fetch https://example.org/b
}

@test "what is known is counted by state, and --refresh offered" {
    ended 'body http://127.0.0.1:8080/1'
    ended 'body http://127.0.0.1:8080/2' '{"skip":true}'
    ended 'body http://127.0.0.1:8080/3' '{"fail":"fatal"}'
    urls 3 >list
    try 0 fetch -f list
    says "0 new, 3 known (1 done, 1 skipped, 1 failed); --refresh fetches them again"
    try 0 fetch -f list --json
    same "0 0 3 1 1 1 0" "$(json '" ".join(str(x) for x in (d["new"], d["refreshed"], d["known"],
        d["states"]["done"], d["states"]["skipped"], d["states"]["failed"], d["states"]["queued"]))')"
    same "done skipped failed" "$(of '" ".join(x["state"] for x in j)')"
}

@test "--refresh queues again what has ended, and leaves the rest" {
    ended 'body http://127.0.0.1:8080/1'
    ended 'body http://127.0.0.1:8080/2' '{"fail":"fatal"}'
    try 0 fetch http://127.0.0.1:8080/3 --priority 5
    urls 4 >list
    try 0 fetch -n --refresh -f list
    says "would be: 1 new, 2 again, 1 known (1 queued)"
    same "done failed queued" "$(of '" ".join(x["state"] for x in j)')"
    try 0 fetch --refresh -f list
    says "1 new, 2 again, 1 known (1 queued)"
    same "queued queued queued queued" "$(of '" ".join(x["state"] for x in j)')"
    same "http://127.0.0.1:8080/1 5" "$(of '"%s %s" % (j[0]["payload"]["url"], j[2]["priority"])')"
    try 0 fetch --refresh --json -f list
    same "0 0 4" "$(json '"%s %s %s" % (d["new"], d["refreshed"], d["known"])')"
}

@test "--refresh does not touch what runs" {
    pawl add --queue fetch --key 'body http://127.0.0.1:8080/1' --kind noop --payload '{"sleep":"60s"}' >/dev/null
    background run -q --queue fetch --kind noop
    wait_for eval '[ "$(state 1)" = running ]'
    try 0 fetch --refresh http://127.0.0.1:8080/1
    says "0 new, 0 again, 1 known (1 running)"
    same running "$(state 1)"
}

@test "--older-than: only what ended before" {
    ended 'body http://127.0.0.1:8080/1'
    ended 'body http://127.0.0.1:8080/2'
    urls 2 >list
    try 0 fetch --refresh --older-than 1h -f list
    says "0 new, 0 again, 2 known (2 done), 2 of them younger than 1h"
    try 0 fetch --refresh --older-than 1h -f list --json -n
    same "0 2 True" "$(json '"%s %s %s" % (d["refreshed"], d["younger"], d["dry_run"])')"
    try 0 fetch --refresh --older-than 1ms -f list
    says "0 new, 2 again, 0 known"
}

@test "--refresh brings back what was pruned" {
    ended 'body http://127.0.0.1:8080/1'
    try 0 prune --state done --older-than 0s --yes
    try 0 fetch http://127.0.0.1:8080/1
    says "0 new, 1 known (1 done)"
    try 0 fetch --refresh --older-than 1h http://127.0.0.1:8080/1
    says "0 new, 1 again"
    same 1 "$(of 'len(j)')"
}

@test "--dry-run changes nothing and needs no store" {
    urls 3 >list
    try 0 fetch -n -f list
    says "would be: 3 new, 0 known"
    no_store
    try 0 fetch http://127.0.0.1:8080/1
    try 0 fetch -n -f list
    says "would be: 2 new, 1 known (1 queued)"
    same 1 "$(of 'len(j)')"
}

@test "many URLs, each once, in batches; counts have their thousands apart" {
    urls 12000 >list
    try 0 fetch -f list
    says "12 000 new, 0 known"
    try 0 fetch -f list
    says "0 new, 12 000 known (12 000 queued)"
    same "12000 12000" "$(of '"%d %d" % (len(j), len({x["key"] for x in j}))')"
    try 0 fetch -q -f list --variant a='{url}' --variant b='{url}' --variant c='{url}'
    same "48000 12000" "$(of '"%d %d" % (len(j), sum(x["key"][:2] == "c " for x in j))')"
}

@test "URLs too long for a key are told apart by their hash" {
    long=$(printf '%02000d' 0)
    try 0 fetch "http://127.0.0.1:8080/${long}a" "http://127.0.0.1:8080/${long}b"
    says "2 new"
    try 0 fetch "http://127.0.0.1:8080/${long}b"
    says "0 new, 1 known"
    same True "$(of 'all(len(x["key"].encode()) <= 1024 and "sha256:" in x["key"] for x in j)')"
}

@test "Ctrl-C: exit 130, says what was added" {
    mkfifo pipe
    background fetch -f pipe
    exec 4>pipe
    urls 10 >&4
    wait_for eval '[ "$(pawl list -o ndjson 2>/dev/null | wc -l)" = 10 ]'
    kill -INT "$pid"
    got=0
    wait "$pid" || got=$?
    exec 4>&-
    same 130 "$got"
    grep -q "interrupted: 10 new" background.err
}

@test "show: members of a job that was not fetched" {
    try 0 fetch http://127.0.0.1:8080/1
    try 0 show 1 --json
    same "None []" "$(json '"%s %s" % (d["fetch"], d["artifacts"])')"
    try 0 report --json
    same None "$(json 'd["fetches"]')"
}

# ---- by add and import ----

@test "add and import: the host is that of the URL, unless one is given" {
    printf 'fetch: {contact: me@example.org}\nkinds: {hook: {handler: http, url: "http://Hooks.example:8080/x"}}\n' >pawl.yaml
    try 0 add --kind fetch --payload '{"url":"https://A.Example/1"}'
    try 0 add --kind fetch --host group --payload '{"url":"https://a.example/2"}'
    try 0 add --kind hook
    try 0 add --kind noop
    printf '%s\n' '{"kind":"fetch","payload":{"url":"http://127.1:8080/"}}' \
        '{"kind":"fetch","host":"group","payload":{"url":"http://b.example/"}}' '{"kind":"noop"}' >jobs
    try 0 import jobs
    same "['a.example', 'group', 'hooks.example', None, '127.0.0.1', 'group', None]" "$(of '[x["host"] for x in j]')"
    try 4 add --kind fetch --payload '{"url":"http://'"$(printf 'a%.0s' {1..300})"'/"}'
    says "host"
}

@test "add and import: others need a contact, said here" {
    echo '{"kind":"fetch","payload":{"url":"http://b.example/"}}' >jobs
    for line in "add --kind fetch --payload {\"url\":\"http://b.example/\"}" "import jobs" "import --skip-bad jobs"; do
        try 4 $line
        says "fetch.contact is not set: b.example would not know who is asking"
        says "fetch: {contact: you@example.org}"
    done
    same 0 "$(of 'len(j)')"
    try 0 add --kind fetch --payload '{"url":"http://localhost:8080/"}'
    PAWL_FETCH_CONTACT=me@example.org try 0 import jobs
    same 2 "$(of 'len(j)')"
}

@test "plan: what add brought is bound by its host's limits" {
    for i in 1 2 3 4; do
        PAWL_FETCH_CONTACT=me@example.org try 0 add --kind fetch --payload '{"url":"http://b.example/'"$i"'"}'
    done
    try 0 plan --json
    same "every-host b.example 3000" "$(json '"%s %s %s" % (d["bound_by"]["limit"], d["bound_by"]["value"], d["eta_ms"])')"
}

# ---- plan ----

# plan_of EXPR: over the JSON of the plan in $output, host by name in h.
plan_of() {
    python3 -c 'import json, sys
d = json.loads(sys.argv[2]); h = {x["host"]: x for x in d["by_host"]}; print(eval(sys.argv[1]))' "$1" "$output"
}

@test "plan: a file without a store, nothing changed" {
    { for i in $(seq 100); do echo "https://a.example/$i"; done
      for i in $(seq 10); do echo "https://b.example/$i"; done; } >list
    try 0 plan list --json
    same "110 2" "$(plan_of '"%s %s" % (d["items"], d["hosts"])')"
    same "every-host a.example 99000" \
        "$(plan_of '"%s %s %s" % (d["bound_by"]["limit"], d["bound_by"]["value"], d["eta_ms"])')"
    same "100 99000 1/s 2 10 9000" "$(plan_of '"%s %s %s %s %s %s" % (h["a.example"]["items"], h["a.example"]["eta_ms"],
        h["a.example"]["rate"], h["a.example"]["concurrency"], h["b.example"]["items"], h["b.example"]["eta_ms"])')"
    same "$((110 * 65536)) True" "$(plan_of '"%s %s" % (d["disk"]["bytes"], d["disk"]["guess"])')"
    same True "$(plan_of 'd["disk"]["free_bytes"] > 0 and d["disk"]["enough"]')"
    [ ! -e lake ]
    no_store
    try 0 plan list
    prints "110 at 2 hosts"
    prints "bound by limit every-host=a.example (2 at a time, 1/s)"
    prints "a guess (64 KiB each)"
}

@test "plan: this machine has no polite limit; slots bind it" {
    urls 512 >list
    try 0 plan list --json
    same "None 256 1000 True" "$(plan_of '"%s %s %s %s" % (d["bound_by"]["limit"], d["slots"], d["eta_ms"], d["fetch_guess"])')"
    PAWL_WORKER_POOLS='fetch=64' try 0 plan list --json
    same "64 4000" "$(plan_of '"%s %s" % (d["slots"], d["eta_ms"])')"
    PAWL_FETCH_SLOTS=128 try 0 plan list --json
    same "128 2000" "$(plan_of '"%s %s" % (d["slots"], d["eta_ms"])')"
}

@test "plan: a URL that stands there twice counts once, as fetch adds it" {
    { urls 2000; urls 2000; echo '  http://127.0.0.1:8080/1 '; } >list
    try 0 plan list --json
    same 2000 "$(plan_of 'd["items"]')"
    try 0 plan list --json --variant a='{url}' --variant b='{url}?b'
    same 4000 "$(plan_of 'd["items"]')"
    try 0 fetch -f list
    says "2 000 new"
}

@test "plan: a file without a URL is said to be one" {
    printf '# nothing yet\n\n' >list
    try 0 plan list
    says "list: there is no URL in it"
    try 0 plan - </dev/null
    says "stdin: there is no URL in it"
    try 0 plan list --json
    same 0 "$(plan_of 'd["items"]')"
}

@test "plan: a name that begins like an address of this machine is somebody else's" {
    printf 'http://127.example.org/%d\n' 1 2 3 >list
    printf 'http://127.0.0.2:8080/%d\n' 1 2 3 >>list
    try 0 plan list --json
    same "every-host None" "$(plan_of '"%s %s" % (h["127.example.org"]["limit"], h["127.0.0.2"].get("limit"))')"
}

@test "plan: limits of the configuration over several hosts" {
    cat >>pawl.yaml <<'Y'
limits:
  - {name: wiki, hosts: ["*.wiki.example"], replaces: true, concurrency: 3, rate: 60/min}
  - {name: all, kind: fetch, rate: 10/s}
Y
    { for i in $(seq 60); do echo "https://en.wiki.example/$i"; echo "https://de.wiki.example/$i"; done
      for i in $(seq 30); do echo "https://b.example/$i"; done; } >list
    try 0 plan list --json
    same "wiki None 120 119000" "$(plan_of '"%s %s %s %s" % (d["bound_by"]["limit"], d["bound_by"]["value"],
        d["bound_by"]["items"], d["eta_ms"])')"
    same "wiki 60 119000" "$(plan_of '"%s %s %s" % (h["en.wiki.example"]["limit"], h["en.wiki.example"]["items"],
        h["en.wiki.example"]["eta_ms"])')"
    same "every-host 29000" "$(plan_of '"%s %s" % (h["b.example"]["limit"], h["b.example"]["eta_ms"])')"
}

@test "plan: limits set by hand win; what is queued is planned, by queue" {
    export PAWL_FETCH_CONTACT=me@example.org
    for i in $(seq 50); do echo "https://a.example/$i"; done >list
    try 0 fetch -f list
    try 0 fetch --queue other https://a.example/x
    try 0 plan --json
    same "51 50000" "$(plan_of '"%s %s" % (d["items"], d["eta_ms"])')"
    try 0 limit set every-host --each host --kind fetch --concurrency none --rate 10/s
    try 0 plan --queue fetch --json
    same "50 4900 10/s None" "$(plan_of '"%s %s %s %s" % (d["items"], d["eta_ms"], d["bound_by"]["rate"], d["bound_by"]["concurrency"])')"
    try 0 limit set slow --queue other --rate 1/min
    try 0 plan --json
    same "51 every-host 5000" "$(plan_of '"%s %s %s" % (d["items"], d["bound_by"]["limit"], d["eta_ms"])')"
    try 0 cancel --queue fetch --yes
    try 0 plan --queue fetch
    says "nothing to fetch is queued"
    try 0 plan list --queue other --json
    same "slow 2940000" "$(plan_of '"%s %s" % (d["bound_by"]["limit"], d["eta_ms"])')"
}

@test "plan: a limit that was removed by hand binds nothing" {
    for i in $(seq 40); do echo "https://a.example/$i"; done >list
    pawl add --kind noop >/dev/null
    try 0 limit unset every-host
    try 0 plan list --json
    same "None None" "$(plan_of '"%s %s" % (d["bound_by"]["limit"], h["a.example"].get("limit"))')"
    try 0 limit reset every-host
    try 0 plan list --json
    same "every-host" "$(plan_of 'd["bound_by"]["limit"]')"
}

@test "plan: permits bind where there is no rate" {
    for i in $(seq 40); do echo "https://a.example/$i"; done >list
    try 0 limit set every-host --each host --kind fetch --concurrency 4 --rate none
    try 0 plan list --json
    same "4 5000 True" "$(plan_of '"%s %s %s" % (h["a.example"]["concurrency"], d["eta_ms"], d["fetch_guess"])')"
    try 0 plan list
    prints "500ms for a fetch is a guess"
}

@test "plan: variants count, the hosts that take longest come first, the rest is one row" {
    for i in $(seq 30); do for k in $(seq "$i"); do echo "https://h$i.example/$k"; done; done >list
    try 0 plan list --json
    same "20 h30.example 10 55 True" "$(plan_of '"%s %s %s %s %s" % (len(d["by_host"]), d["by_host"][0]["host"],
        d["others"]["hosts"], d["others"]["items"], d["others"]["eta_ms"] == 9000)')"
    try 0 plan list --limit 2
    prints "28 others"
    try 0 plan list --limit 100 --json
    same "30 None" "$(plan_of '"%s %s" % (len(d["by_host"]), d["others"])')"
    try 0 plan list --json --variant raw='{url}?raw' --variant html='{url}'
    same 930 "$(plan_of 'd["items"]')"
}

@test "plan: errors" {
    try 3 plan
    says "no store"
    printf 'https://a.example/\nnonsense\n' >list
    try 4 plan list
    says "list:2: "
    try 3 plan missing
    try 2 plan --variant a='{url}'
    try 2 plan list --limit 0
    try 2 plan list other
}

# ---- the lake, as far as it goes without one ----

@test "cat, export and verify without artifacts" {
    try 3 cat 1
    try 3 export
    try 3 verify
    no_store
    try 0 fetch http://127.0.0.1:8080/1
    try 3 cat 1
    says "job 1 has no artifact: it is queued"
    try 3 cat 9
    says "no job 9"
    try 2 cat nine
    try 2 cat 1 --json
    try 2 cat
    try 0 export
    same "" "$output"
    try 0 --json export
    same "[]" "$output"
    try 0 verify
    says "all is well"
    try 0 verify --json
    same "0 0 [] None" "$(json '"%s %s %s %s" % (d["artifacts"], d["missing"], d["findings"], d["repaired"])')"
}

@test "usage of export and verify" {
    try 2 export --format tar
    try 2 export --format files
    says "where to?"
    try 2 export --to x
    try 2 --json export --format sha256sum
    for bad in 0 101 -1 x 5.123 100.5 '5%%'; do
        try 2 verify --sample "$bad"
    done
    try 2 verify --yes
    no_store
}
