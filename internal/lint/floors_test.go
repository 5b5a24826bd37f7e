package lint

import (
	"slices"
	"strings"
	"testing"
)

// floor is a storey of the house.
type floor struct {
	name, what string
	packages   []string // a package may import those behind it, and those of all floors below
}

// floors are those of the house, from the roof down. A folder is no floor: below
// internal/ lie packages of all of them, for what is internal is so to the module. A
// new package gets its place here.
var floors = []floor{
	{"Programs", "flags, a call, what is printed", []string{"cmd/pacer"}},
	{"Commands", "what the commands do beside serving", []string{
		"internal/plan", "internal/ask", "internal/bench", "internal/demo", "internal/doctor", "internal/importer", "internal/slofile", "internal/storemove",
		"deploy/grafana",
	}},
	{"Ports", "what meets clients, operators and other proxies", []string{"admin", "gateway", "picker"}},
	{"Service", "what is in service, and where it is found", []string{"fleet", "fleet/kubernetes"}},
	{"Stores", "what is kept over a restart, and shared by replicas", []string{
		"gateway/limit/redislimit", "batch/redisbatch", "history/redishistory", "keys/rediskeys", "profiles/redisstore", "router/redisload", "usage/redisusage",
		"internal/redisconn", "history/disk", "keys/filekeys", "profiles/curvesfile", "usage/notify",
	}},
	{"Proof", "fleets in virtual time, and what Pacer is compared with", []string{"internal/arena", "internal/baseline"}},
	{"Parts", "what a request needs on its way, and what is said of it", []string{
		"gateway/limit", "config", "internal/continuation", "providers", "internal/telemetry", "keys", "api", "prefix", "router/peers", "translate",
	}},
	{"Core", "what is known, counted and decided, apart from any connection", []string{"profiles/learn", "router", "profiles", "history", "usage", "share", "batch"}},
	{"Ground", "tables, wire formats and idioms, which know nothing of routes and leases", []string{
		"admin/signin", "dashboard", "sim",
		"internal/upstream", "internal/statefile", "internal/atomicfile", "internal/benchfile", "internal/breaker", "internal/clientconn", "internal/credential",
		"internal/relayloop", "internal/endpoint", "internal/h1client", "internal/h1server", "internal/hostname", "internal/httpfield", "internal/keep", "internal/loadgen", "internal/logqueue", "internal/openai",
		"internal/presets", "internal/realtime", "internal/report", "internal/spelling", "internal/sse", "internal/timings",
		"internal/tokens", "internal/tracing", "internal/readfile",
	}},
}

// tests are packages that serve tests alone: none of the house imports them.
var tests = []string{
	"batch/storetest", "deploy/prometheus", "e2e", "e2e/attack", "e2e/bench", "e2e/engines", "e2e/envoy", "e2e/hosts", "e2e/load", "e2e/routers", "examples/talks", "internal/accuracy",
	"internal/checkout", "internal/chromium", "internal/golden", "internal/lint", "internal/memnet", "internal/must", "internal/proctest", "internal/promtest", "internal/racetest",
	"internal/racetest/shortened", "internal/redistest", "profiles/storetest",
}

// below reports whether a package may import another one by their places.
func below(places map[string]int, from, to string) bool { return places[from] < places[to] }

// places numbers the packages from the roof down.
func places() map[string]int {
	at := map[string]int{}
	for _, f := range floors {
		for _, name := range f.packages {
			at[name] = len(at) + 1
		}
	}
	return at
}

// Arrows run downwards only.
func TestArrowsRunDownwards(t *testing.T) {
	at := places()
	for _, p := range packages(t) {
		name := short(p.ImportPath)
		if slices.Contains(tests, name) {
			if at[name] != 0 {
				t.Errorf("%s is for tests alone, and has a place in the house", name)
			}
			continue
		}
		if at[name] == 0 {
			t.Errorf("%s has no place on a floor of the house", name)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module+"/")
			switch {
			case !ours:
			case slices.Contains(tests, to):
				t.Errorf("%s imports %s, which is for tests alone", name, to)
			case !below(at, name, to):
				t.Errorf("%s imports %s, which does not stand below it", name, to)
			}
		}
	}
	if below(at, "router", "gateway") || !below(at, "gateway", "router") {
		t.Error("the router does not stand below the gateway")
	}
}
