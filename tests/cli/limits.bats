load helper

# limits: one line each, without what is built in
limits() {
    pawl limit list --json | python3 -c '
import json, sys
for l in json.load(sys.stdin):
    s = l["spec"]
    if l["origin"] == "built_in":
        continue
    print(l["name"], s.get("each"), s.get("hosts"), s.get("queue"), s.get("concurrency"), s.get("rate"), s.get("burst"), l["origin"])'
}

@test "limit: set, change what is named, list, show, unset" {
    try 0 limit set api --host api.example.org --concurrency 3 --rate 200/min --burst 10
    says "limit api set: host api.example.org: 3 at a time, 200/min burst 10, breaker after 5 for 1m"
    try 0 limit set polite --each host --concurrency 1
    same "$(printf '%s\n' "api None ['api.example.org'] None 3 200/min 10 operator" \
        "polite host None None 1 None None operator")" "$(limits)"
    try 0 limit set api --concurrency 5
    says "limit api changed: host api.example.org: 5 at a time, 200/min burst 10"
    try 0 limit set api --concurrency 5
    says "limit api was so already"
    try 0 limit set api --rate none --queue pages --hosts 'a.example,*.b.example'
    same "api None ['a.example', '*.b.example'] pages 5 None None operator" "$(limits | head -n 1)"
    try 0 limit set api --queue= --host=
    says "limit api changed: all jobs: 5 at a time"
    try 0 limit list
    prints "each host"
    prints "by hand"
    try 0 limit show polite
    prints "covers       each host"
    try 0 limit show polite --json
    same "polite 0 []" "$(json '"%s %s %s" % (d["name"], d["use"]["gates"], d["gates"])')"
    try 0 limit unset api
    try 3 limit show api
    try 0 limit list -o ndjson
    same 1 "$(wc -l <<<"$output")"
}

@test "limit: breaker, adaptive rate and pauses are set and unset" {
    try 0 limit set a --rate 10/s --adaptive --min-rate 1/s --breaker 3 --breaker-pause 2h --breaker-rate 50%
    try 0 limit show a --json
    same "True 1/s 3 50 2h 2h" "$(json '"%s %s %s %s %s %s" % (d["spec"]["adaptive"],
        d["spec"]["min_rate"], *[d["spec"]["breaker"][k] for k in ("threshold", "percent", "pause", "max_pause")])')"
    try 0 limit set a --no-retry-after --pause 2s --max-pause 1m --breaker none --no-adaptive
    try 0 limit show a --json
    same "none False None 2s 1m" "$(json '"%s %s %s %s %s" % (d["spec"]["breaker"],
        d["spec"]["respect_retry_after"], d["spec"].get("min_rate"), d["spec"]["pause"], d["spec"]["max_pause"])')"
}

@test "limit: the configured breaker is the usual one" {
    printf 'breaker: {threshold: 7, pause: 3m}\n' >>pawl.yaml
    try 0 limit set a --concurrency 1
    says "breaker after 7 for 3m"
}

@test "limit: refuses what cannot be" {
    try 2 limit set
    says "which one?"
    try 2 limit set a
    says "nothing to set"
    try 2 limit set a --rate 200
    says "--rate: '200' is no rate"
    try 2 limit set a --each day
    says "--each is 'day'"
    try 2 limit set a --breaker-rate 200%
    try 2 limit set a --host x --hosts y
    try 2 limit sett a
    says "did you mean 'set'?"
    no_store
    try 4 limit set a --breaker none
    says "limit 'a': it limits nothing"
    try 4 limit set a --adaptive --breaker 5
    says "adaptive needs a rate"
    try 4 limit set a --each host --replaces
    pawl limit set alpha --concurrency 1
    try 3 limit show alpah
    says "did you mean 'alpha'?"
    try 3 limit unset beta
    try 3 limit reset alpha
    says "not in the configuration"
    try 2 limit show alpha --rate 1/s
    try 2 limit list --all
}

@test "limit: the configuration's come with run, an operator's stay, reset returns" {
    printf 'limits:\n  - {name: pages, queue: pages, concurrency: 2}\n  - {name: all, concurrency: 50}\n' >>pawl.yaml
    pawl add --kind noop
    pawl run --drain -q
    same "$(printf '%s\n' "all None None None 50 None None config" "pages None None pages 2 None None config")" "$(limits)"
    pawl limit set pages --concurrency 9
    pawl limit unset all
    pawl run --drain -q
    same "pages None None pages 9 None None operator" "$(limits)"
    try 0 limit reset all
    try 2 limit reset --all
    says "1 limit would be reset"
    try 0 limit reset --all --yes
    says "limit pages is as configured"
    same "$(printf '%s\n' "all None None None 50 None None config" "pages None None pages 2 None None config")" "$(limits)"
}

# built_in: who says what of the limit every-host
built_in() {
    pawl limit list --json | python3 -c '
import json, sys
for l in json.load(sys.stdin):
    if l["name"] == "every-host":
        print(l["origin"], l["in_config"], l["spec"]["kind"], l["spec"].get("concurrency"), l["spec"].get("rate"))'
}

@test "limit: every-host is built in, comes with a worker, and gives way" {
    pawl add --kind noop
    pawl run --drain -q
    same "built_in False fetch 2 1/s" "$(built_in)"
    try 0 limit list
    prints "built in"
    prints "each host, kind fetch, hosts !localhost, !127.*, !::1, ![::1]"
    try 0 limit set every-host --rate 5/s
    says "limit every-host changed: each host, kind fetch"
    pawl run --drain -q
    same "operator False fetch 2 5/s" "$(built_in)"
    try 0 limit show every-host
    prints "by hand; 'pawl limit reset' returns to what is built in"
    try 0 limit reset every-host
    says "limit every-host is as built in"
    same "built_in False fetch 2 1/s" "$(built_in)"
    try 0 limit unset every-host
    says "it is built in: 'pawl limit reset' brings it back"
    pawl run --drain -q
    same "" "$(built_in)"
    try 0 limit reset every-host
    printf 'limits:\n  - {name: every-host, each: host, kind: fetch, concurrency: 7}\n' >>pawl.yaml
    pawl run --drain -q
    same "config True fetch 7 None" "$(built_in)"
    printf 'retry: {base: 1ms}\n' >pawl.yaml
    pawl run --drain -q
    same "config True fetch 7 None" "$(built_in)"
    printf 'limits: []\n' >>pawl.yaml
    pawl run --drain -q
    same "built_in False fetch 2 1/s" "$(built_in)"
}

@test "limit: every-host can be changed and removed before any worker came" {
    try 0 limit set every-host --concurrency 9
    says "limit every-host set: each host, kind fetch, hosts !localhost, !127.*, !::1, ![::1]: 9 at a time, 1/s"
    try 0 limit unset every-host
    pawl run --drain -q
    same "" "$(built_in)"
    try 0 limit reset every-host
    same "built_in False fetch 2 1/s" "$(built_in)"
}

@test "limit: hosts that are excluded" {
    try 0 limit set polite --each host --concurrency 1 --hosts '*.example,!b.example'
    says "limit polite set: each host, hosts *.example, !b.example: 1 at a time"
    for host in a.example b.example; do
        pawl add --kind noop --host "$host"
    done
    pawl run --drain -q
    try 0 limit show polite --json
    same "['a.example']" "$(json '[g["value"] for g in d["gates"]]')"
    try 4 limit set polite --hosts '!'
    says "excludes nothing"
    printf 'limits:\n  - {name: p, hosts: ["*", "!"], concurrency: 1}\n' >>pawl.yaml
    try 4 config check
    says '"!" is not a host'
    printf 'limits:\n  - {name: p, hosts: ["*", "!127.*", "!localhost"], concurrency: 1}\n' >pawl.yaml
    try 0 config check
}

@test "breaker: opened and closed by hand, jobs behind it stay queued" {
    pawl limit set api --each host --concurrency 5
    try 3 breaker open api
    says "has no gate yet"
    pawl add --kind noop --host a.example
    pawl add --kind noop --host b.example
    pawl run --drain -q
    try 0 breaker list
    says "no breaker is open"
    same "" "$output"
    try 0 breaker list --all -o ndjson
    same 2 "$(wc -l <<<"$output")"
    try 2 breaker open api
    says "2 breakers would be opened"
    try 0 breaker open api a.example --for 1h --reason "maintenance"
    says "1 breaker opened"
    try 0 breaker show api a.example
    prints "maintenance"
    prints "open"
    try 0 breaker list --json
    same "1 a.example open maintenance" \
        "$(json '"%s %s %s %s" % (len(d), d[0]["value"], d[0]["breaker"]["state"], d[0]["breaker"]["why"])')"
    pawl add --kind noop --host a.example
    pawl add --kind noop --host b.example
    pawl run -q --stop-after 1
    same done "$(state 4)"
    same queued "$(state 3)"
    try 0 explain 3 --json
    same "breaker_open api=a.example pawl breaker close api a.example" \
        "$(json '"%s %s %s" % tuple(d["reasons"][0][k] for k in ("code", "subject", "fix"))')"
    try 0 status
    prints "the breaker of limit 'api=a.example' is open, maintenance: pawl breaker show api a.example"
    try 0 status --json
    same "a.example breaker" "$(json '"%s %s" % (d["gates"][0]["value"], d["gates"][0]["shut"])')"
    try 0 breaker close api a.example
    pawl run --drain -q
    same done "$(state 3)"
    try 0 events --type breaker_opened,breaker_closed -o ndjson
    same 2 "$(wc -l <<<"$output")"
    try 0 breaker reset api --yes
    says "2 breakers reset"
}

@test "breaker: opens by failures, costs no attempts, a good probe closes it" {
    pawl limit set api --host a.example --breaker 2 --breaker-pause 300ms
    pawl add --kind noop --host a.example --payload '{"fail":"transient","fail_times":2}'
    pawl run --drain -q
    same done "$(state 1)"
    try 0 events --type breaker_opened,breaker_probed,breaker_closed -o ndjson
    same "breaker_opened breaker_probed breaker_closed" \
        "$(python3 -c 'import json, sys; print(*[json.loads(l)["type"] for l in sys.stdin])' <<<"$output")"
    same 1 "$(pawl show 1 --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["attempt"])')"
}

@test "breaker: refuses what cannot be" {
    pawl limit set api --concurrency 1
    try 2 breaker show
    try 2 breaker list api
    try 2 breaker opn api
    says "did you mean 'open'?"
    try 2 breaker close api --for 1h
    says "--for has no effect with 'breaker close'"
    try 3 breaker show apu
    says "did you mean 'api'?"
}

@test "lock: one at a time, by priority, then by id; shown where jobs are" {
    pawl add --queue one --lock inv -- sleep 30
    background run -q --queue one
    wait_for sh -c '"$PAWL" lock show inv --json | grep -q "\"job\":1"'
    pawl add --kind noop --lock inv
    pawl add --kind noop --lock inv --priority 5
    printf '%s\n' '{"kind":"noop","lock":"other"}' | pawl import -
    same "inv inv inv other" "$(pawl list --json | python3 -c 'import json, sys; print(*[j["lock"] for j in json.load(sys.stdin)])')"
    try 0 show 2
    prints "lock         inv"
    try 0 lock list --json
    same "inv 1 2 | other None 1" "$(json '" | ".join("%s %s %s" % (l["lock"], l["job"], l["waiting"]) for l in d)')"
    try 0 lock show inv --json
    same "1 2 3" "$(json '"%s %s %s" % (d["job"], d["waiting"], d["next"])')"
    try 0 explain 3 --json
    same "lock_held 1" "$(json '"%s %s" % (d["reasons"][0]["code"], d["reasons"][0]["holders"][0])')"
    try 0 explain 2 --json
    same "lock_held lock_turn" "$(json '" ".join(r["code"] for r in d["reasons"] if r["code"].startswith("lock"))')"
}

@test "lock release: needs a reason, and force while the holder lives" {
    pawl add --lock inv -- sleep 30
    pawl add --lock inv --priority 5 --kind noop --in 1h
    try 2 lock release inv --force
    says "no reason given"
    try 3 lock release inv --reason x
    says "nobody holds lock 'inv'"
    background run -q
    wait_for sh -c '"$PAWL" lock show inv --json | grep -q "\"job\":1"'
    try 5 lock release inv --reason "stuck"
    says "its worker lives"
    try 0 lock release inv --force --reason "stuck" --json
    same "1 1" "$(json '"%s %s" % (d["job"], d["fence"])')"
    try 0 events --type lock_released -o ndjson
    prints stuck
    try 3 lock show inw
    says "did you mean 'inv'?"
    try 2 lock list --force
    try 2 lock show
}

@test "explain: reasons with a command to paste, as JSON, for a selection" {
    pawl add --queue 'my pages' --kind noop
    pawl add --queue 'my pages' --kind noop --priority 3
    pawl add --queue 'my pages' --kind noop --in 1h
    pawl pause 'my pages'
    try 0 explain 1
    prints "job 1 is queued, number 2 in its queue"
    prints "    pawl resume 'my pages'"
    prints "    pawl run"
    try 0 explain 3 --json
    same "waiting queue_paused delay no_worker None" \
        "$(json '"%s %s %s" % (d["state"], " ".join(r["code"] for r in d["reasons"]), d["position"])')"
    same "code fix holders max since subject text until used" "$(json '" ".join(sorted(d["reasons"][0]))')"
    try 0 explain --queue 'my pages' --json
    same "2 1 2" "$(json '"%s %s %s" % (d["id"], d["position"], d["behind"])')"
    try 0 explain --kind noop
    prints "with 2 like it behind"
    try 3 explain --host nowhere.example
    try 3 explain 99
    try 2 explain
    try 2 explain 1 --queue x
    try 2 explain x
}

@test "explain: the fix does what it says" {
    pawl add --queue "it's \$(touch bad)" --kind noop
    pawl pause "it's \$(touch bad)"
    try 0 explain 1 --json
    fix=$(json 'd["reasons"][0]["fix"]')
    eval "$fix"
    [ ! -e bad ]
    pawl run --drain -q
    same done "$(state 1)"
    try 0 explain 1
    prints "it has ended: done"
}

@test "status and workers: what limits, and failing preflights" {
    printf 'kinds:\n  chk: {command: [cat], preflight: ["test", "-e", "ok"], preflight_ttl: 200ms}\n' >>pawl.yaml
    pawl limit set one --queue web --concurrency 1
    pawl add --queue web -- sleep 30
    pawl add --queue web -- true
    pawl add --kind chk
    background run -q --slots 4 --pool chk=1
    wait_for sh -c '"$PAWL" status | grep -q "^one  *full  *1/1"'
    wait_for sh -c '"$PAWL" status | grep -q "preflight of kind .chk. fails on worker"'
    try 0 status --json
    same "one full 1 1" "$(json '"%s %s %s %s" % tuple(d["gates"][0][k] for k in ("limit", "shut", "used", "max"))')"
    same "['chk']" "$(json 'list(d["workers"][0]["preflight"])')"
    try 0 workers
    prints PREFLIGHT
    prints chk
    try 0 explain 3 --json
    same preflight "$(json 'd["reasons"][0]["code"]')"
    touch ok
    wait_for sh -c '"$PAWL" show 3 | grep -q "state  *done"'
}

@test "prune --keep: the newest of a queue stay" {
    for i in 1 2 3 4 5; do pawl add --queue q --kind noop; done
    pawl add --queue other --kind noop
    pawl run --drain -q
    try 2 prune --keep 2 --yes
    says "--keep counts the jobs of one queue"
    try 0 prune --queue q --keep 2 -n
    says "3 jobs would be pruned"
    try 0 prune --queue q --keep 2 --yes
    says "3 jobs pruned"
    try 0 list --json
    same "4 5 6" "$(json '" ".join(str(j["id"]) for j in d)')"
}
