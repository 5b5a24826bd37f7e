package attack

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// client is what speaks HTTP/1.1 to the engines.
var client = flag.String("client", "own", "own or net/http")

// relay is who passes streams on.
var relay = flag.String("relay", "loop", "loop, goroutines or net/http")

// full asks for the numbers of docs/OPERATIONS.md; the short form does the same
// with fewer of each.
var full = flag.Bool("full", false, "run each attack at its full size")

func TestMain(m *testing.M) {
	flag.Parse()
	if !*full { // those that wait need no core of their own
		_ = flag.Set("test.parallel", "6")
	}
	proctest.Main(m)
}

// attack is one thing that somebody does to a gateway.
type attack struct {
	name string // as docs/OPERATIONS.md has it
	by   attacker
	site site // what is attacked; the zero value is a gateway with two keys and one engine
	run  func(*victim)

	waits bool // most of its time passes in waiting: it runs beside the others
}

// attacker is who attacks.
type attacker string

const (
	stranger attacker = "a stranger" // has no key
	tenant   attacker = "a tenant"   // has a key, of another route
	page     attacker = "a web page" // in the browser of somebody near the gateway
	engine   attacker = "an engine"  // that is ill
	log      attacker = "the log"    // its reader
	writer   attacker = "a writer"   // who may write to Redis, or a bit that fell over
)

var attacks = []attack{
	{name: "idle and slow connections", by: stranger, run: idleAndSlow, waits: true},
	{name: "what is too large", by: tenant, run: tooLarge},
	{name: "what is crooked", by: tenant, run: crooked, waits: true},
	{name: "a request within a request", by: tenant, run: smuggled, waits: true},
	{name: "gzip bodies of a key over its rate", by: tenant, site: site{limit: "body: 32MiB", other: "requests_per_minute: 1"}, run: throttledGzip},
	{name: "connections of a key at its concurrency", by: tenant, site: site{files: 4096, other: "concurrency: 1"}, run: manyAtConcurrency, waits: true},
	{name: "promised bodies without a key", by: stranger, site: site{files: 4096}, run: promisedWithoutKey, waits: true},
	{name: "promised bodies on an open gateway", by: stranger, site: site{open: true, files: 4096}, run: promisedToAnOpenGateway, waits: true},
	{name: "promised bodies on every early answer", by: stranger, run: promisedToEveryEarlyAnswer, waits: true},
	{name: "promised bodies on the admin port", by: stranger, site: site{files: 4096}, run: promisedToTheAdminPort, waits: true},
	{name: "promised bodies over HTTP-2", by: stranger, site: site{tls: true}, run: promisedOverHTTP2, waits: true},
	{name: "a body of 128 MB", by: tenant, site: site{limit: "body: 32MiB"}, run: farTooLarge},
	{name: "a cross-site POST on an open gateway", by: page, site: site{open: true}, run: crossSite, waits: true},
	{name: "DNS rebinding on an open gateway", by: page, site: site{open: true}, run: rebinding, waits: true},
	{name: "prompts of running streams", by: tenant, site: site{limit: "body: 2MiB, buffered: 64MiB", fleet: patient}, run: largePrompts},
	{name: "gzip bombs within the limit", by: stranger, site: site{open: true, limit: "body: 32MiB, buffered: 512MiB"}, run: bombsWithinTheLimit},
	{name: "buffers that are full", by: tenant, site: site{limit: "body: 4MiB, buffered: 256MiB"}, run: fullBuffers},
	{name: "rapid resets of HTTP-2", by: stranger, site: site{tls: true}, run: rapidResets},
	sick("an engine that refuses everything", 401, 402, 403, 404),
	sick("an engine that breaks at everything", 500, 502, 503),
	sick("an engine that is always full", 429),
	refusedForItself(),
	poisoned("poisoned sums in Redis", poisonedSums),
	poisoned("a poisoned limit key", poisonedLimits),
	{name: "a log reader that stands still", by: log, site: site{log: "level: info"}, run: logStandsStill, waits: true},
	{name: "a log reader that dies", by: log, site: site{log: "level: info"}, run: logDies, waits: true},
}

func TestAttacks(t *testing.T) {
	var table strings.Builder
	t.Cleanup(func() { t.Log("what the victim saw\n" + table.String()) })
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			if a.waits {
				t.Parallel()
			}
			v := newVictim(t, a.site)
			begun := time.Now()
			a.run(v)
			saw := v.judge()
			row := "| " + a.name + " | " + string(a.by) + " | " + saw.String() + " |\n"
			t.Logf("%s, in %v", row, time.Since(begun).Round(time.Second))
			tableMu.Lock()
			table.WriteString(row)
			tableMu.Unlock()
		})
	}
}

// Each attack has a row in docs/OPERATIONS.md, which says what happens.
func TestEachAttackIsInTheDocs(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/OPERATIONS.md"))(t)
	for _, a := range attacks {
		name := "TestAttacks/" + strings.ReplaceAll(a.name, " ", "_")
		if !strings.Contains(string(page), name+" |") && !strings.Contains(string(page), name+",") {
			t.Errorf("docs/OPERATIONS.md has no row that names %s", name)
		}
	}
}
