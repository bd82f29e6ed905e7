load helper

@test "migrate sets up a store and is done" {
    try 0 migrate
    says "up to date"
    try 0 list
    try 0 --json migrate
    same True "$(json 'd["from"] == d["to"]')"
}

@test "config check" {
    try 0 config check
    says "pawl.yaml: ok"
    printf 'worker: {slots: many}\n' >pawl.yaml
    try 4 config check
    says "pawl.yaml:1: "
    printf 'wroker: {slots: 1}\n' >pawl.yaml
    try 4 config check
    says 'did you mean "worker'
    try 4 list
    try 3 --config missing.yaml config check
    try 2 config
    try 2 config edit
    try 2 config check store
}

@test "config check: URLs of kinds, as jobs would be refused for them" {
    printf 'kinds: {hook: {handler: http, url: "http://127.0.0.1:22/s3cret"}}\n' >pawl.yaml
    try 4 config check
    says "kinds.hook.url: ports are 80, 443 and 1024 to 65535"
    [[ "$stderr" != *s3cret* ]]
    printf 'kinds: {x: {command: [cat], preflight: {url: "http://127.0.0.1:22/"}}}\n' >pawl.yaml
    try 4 config check
    says "kinds.x.preflight.url: ports are"
    printf 'kinds: {hook: {handler: http, url: "http://127.0.0.1:8080/"}}\n' >pawl.yaml
    try 0 config check
}

@test "config show: some settings" {
    try 0 config show store worker.lease --json
    same 2 "$(json 'len(d)')"
    try 3 config show nonsense
    says "no setting"
}

@test "config show: value and origin" {
    PAWL_WORKER_LEASE=45s try 0 --store s.db config show --json
    same "45s PAWL_WORKER_LEASE" "$(json '[v["value"] + " " + v["origin"] for v in d if v["key"] == "worker.lease"][0]')"
    same "pawl.yaml:1" "$(json '[v["origin"] for v in d if v["key"] == "retry.base"][0]')"
    same "s.db --store" "$(json '[v["value"] + " " + v["origin"] for v in d if v["key"] == "store"][0]')"
    try 0 config show
    prints "worker.lease"
}

@test "doctor: all well" {
    pawl add -- true
    try 0 doctor
    [[ "$output" != *FAIL* ]]
    prints "integrity: no errors"
    prints "schema: "
    try 0 doctor --json
    same "set()" "$(json '{x["verdict"] for x in d} - {"ok", "warn"}')"
}

@test "bench drain: figures, and nothing left behind" {
    try 0 bench drain --jobs 500 --json
    json 'd["enqueue_per_s"] > 0 and d["drain_per_s"] > 0 or 1/0'
    try 0 bench drain --jobs 500 --lanes 10 --interleaved
    prints "drain_per_s"
    same "pawl.yaml" "$(ls | grep -v ^separate-stderr)"
}

@test "bench exec and latency" {
    try 0 bench exec --jobs 10 -j 2 --json
    json 'd["drain_per_s"] > 0 or 1/0'
    try 0 bench latency --jobs 3 --json
    json 'd["p50_ms"] >= 0 or 1/0'
    try 2 bench
    try 2 bench frob
    try 2 bench latency --lanes 3
    try 2 bench drain --interleaved
    same "pawl.yaml" "$(ls | grep -v ^separate-stderr)"
}
