package lint

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

const module = "github.com/pacer-dev/pacer"

// arrows names, for each package, the packages of ours that it may import. A
// new package gets a row here.
var arrows = map[string][]string{
	"profiles":            {},
	"profiles/learn":      {"profiles", "share"},
	"profiles/redisstore": {"profiles", "internal/redisconn", "share"},
	"profiles/storetest":  {"profiles"},
	"profiles/curvesfile": {"internal/atomicfile", "profiles"},

	"router":           {"profiles"},
	"router/peers":     {"router", "share"},
	"router/redisload": {"router", "router/peers", "internal/redisconn", "share"},

	"share": {},

	"batch":            {},
	"batch/redisbatch": {"batch", "internal/redisconn"},
	"batch/storetest":  {"batch", "internal/must"},

	"prefix": {"router"},

	"keys":           {"api"},
	"keys/filekeys":  {"api", "internal/atomicfile", "keys"},
	"keys/rediskeys": {"api", "internal/redisconn", "keys"},

	"usage":            {},
	"usage/notify":     {"usage"},
	"usage/redisusage": {"internal/redisconn", "share", "usage"},

	"config":    {"internal/benchfile", "internal/hostname", "internal/presets", "internal/readfile", "internal/spelling", "internal/upstream", "router"},
	"providers": {"internal/breaker", "internal/credential", "internal/endpoint", "internal/h1client", "internal/hostname", "internal/httpfield", "internal/openai", "internal/readfile", "internal/sse", "internal/upstream"},
	"translate": {"internal/openai", "internal/sse"},
	"sim":       {}, // writer and reader must not share a bug

	"gateway":                  {"batch", "config", "gateway/limit", "internal/clientconn", "internal/continuation", "internal/endpoint", "internal/hostname", "internal/httpfield", "internal/keep", "internal/openai", "internal/realtime", "internal/relayloop", "internal/telemetry", "internal/tokens", "internal/tracing", "internal/upstream", "prefix", "profiles", "providers", "router", "translate", "usage"},
	"gateway/limit":            {"config"},
	"picker":                   {"internal/openai", "providers"},
	"gateway/limit/redislimit": {"gateway/limit", "internal/redisconn", "share"},

	"api":              {"profiles"},
	"fleet":            {"config", "internal/credential", "internal/presets", "internal/upstream", "profiles", "providers", "router"},
	"history":          {"internal/keep"},
	"fleet/kubernetes": {"config", "internal/readfile"},

	"history/disk": {"history", "internal/statefile"},

	"history/redishistory": {"history", "internal/redisconn", "share"},

	"admin":     {"admin/signin", "api", "config", "dashboard", "history", "internal/clientconn", "internal/hostname", "internal/spelling", "internal/telemetry", "keys", "profiles", "router", "usage"},
	"dashboard": {},

	"admin/signin": {},

	"internal/ask":        {"api", "config", "fleet", "internal/benchfile", "internal/redisconn", "internal/report", "internal/spelling", "profiles", "profiles/redisstore"},
	"internal/demo":       {"config", "internal/arena", "internal/loadgen", "internal/presets", "internal/report", "profiles", "router", "sim"},
	"internal/plan":       {"api", "config", "fleet", "internal/arena", "internal/ask", "internal/presets", "internal/report", "internal/spelling", "profiles", "router", "sim"},
	"internal/doctor":     {"config", "fleet", "internal/endpoint", "internal/redisconn", "internal/spelling", "internal/upstream", "profiles", "providers"},
	"internal/report":     {},
	"internal/golden":     {"internal/must"},
	"internal/arena":      {"internal/baseline", "internal/breaker", "internal/loadgen", "internal/presets", "prefix", "profiles", "profiles/learn", "router", "router/peers", "share", "sim"},
	"internal/baseline":   {"router"},
	"internal/bench":      {"internal/arena", "internal/loadgen", "internal/report"},
	"internal/benchfile":  {"internal/readfile"},
	"internal/readfile":   {},
	"internal/accuracy":   {}, // tests alone
	"internal/checkout":   {},
	"internal/chromium":   {"internal/checkout", "internal/must"},
	"internal/atomicfile": {},
	"internal/statefile":  {"internal/atomicfile"},
	"internal/breaker":    {},
	"internal/clientconn": {},
	"internal/credential": {"internal/readfile"},
	"internal/endpoint":   {},
	"internal/h1client":   {"internal/httpfield"},
	"internal/hostname":   {},
	"internal/httpfield":  {},
	"internal/keep":       {},
	"internal/lint":       {}, // tests alone
	"internal/loadgen":    {},
	"internal/logqueue":   {},
	"internal/memnet":     {},
	"internal/must":       {},
	"internal/openai":     {},
	"internal/presets":    {},
	"internal/promtest":   {"internal/must"},
	"internal/proctest":   {"internal/checkout", "internal/must"},
	"internal/racetest":   {},
	"internal/redisconn":  {"config", "internal/breaker"},
	"internal/realtime":   {},
	"internal/redistest":  {"config", "internal/must", "internal/redisconn"},
	"internal/spelling":   {},
	"internal/h1server":   {"internal/httpfield"},
	"internal/relayloop":  {"internal/h1client"},
	"internal/storemove":  {"config", "fleet", "internal/redisconn", "keys/rediskeys", "profiles", "profiles/curvesfile", "profiles/learn", "profiles/redisstore", "usage/redisusage"},
	"internal/slofile":    {"config"},
	"internal/importer":   {"config"},
	"internal/sse":        {},
	"internal/telemetry":  {"history", "internal/keep"},
	"internal/timings":    {},
	"internal/tokens":     {},
	"internal/tracing":    {},
	"internal/upstream":   {"internal/endpoint", "internal/hostname"},

	"internal/racetest/shortened": {},

	"internal/continuation": {"internal/endpoint", "internal/openai", "internal/sse", "internal/upstream", "providers"},

	"cmd/pacer":         {"*"},
	"e2e":               {"*"},
	"deploy/grafana":    {"internal/telemetry"},
	"deploy/prometheus": {}, // tests alone
	"e2e/attack":        {"*"},
	"e2e/bench":         {"*"},
	"e2e/engines":       {"*"},
	"e2e/envoy":         {"*"},
	"e2e/hosts":         {"*"},
	"e2e/load":          {"*"},
	"e2e/routers":       {"*"},
	"examples/talks":    {"internal/arena", "internal/bench"},
}

// pure packages import the standard library only, and of it nothing that does
// I/O, logs, or hides state.
var (
	pure      = []string{"history", "prefix", "profiles", "router", "usage"}
	pureNever = []string{
		"net", "os", "io", "log", "fmt", "bufio", "syscall", "database", "context",
		"math/rand", "crypto/rand", "runtime", "unsafe", "testing",
	}
	// context is what a Store's methods take; the interface does no I/O itself.
	pureExcept = map[string][]string{"profiles": {"context", "fmt"}, "router": {"fmt"}, "history": {"fmt"}}
	// impure are calls that read a clock or start something.
	impure = []string{"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick", "time.Sleep"}
)

type goPackage struct {
	ImportPath, Dir, Doc string
	Imports              []string
	GoFiles              []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Imports,GoFiles", "./...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var list []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

func short(path string) string { return strings.TrimPrefix(path, module+"/") }

func TestArrows(t *testing.T) {
	for _, p := range packages(t) {
		name := short(p.ImportPath)
		allowed, ok := arrows[name]
		if !ok {
			t.Errorf("package %s has no row in the table of arrows: say what it may import", name)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module+"/") || slices.Contains(allowed, "*") {
				continue
			}
			if !slices.Contains(allowed, short(imp)) {
				t.Errorf("%s imports %s: not an arrow of the house", name, short(imp))
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && len(p.Doc) < 40 {
			t.Errorf("%s: package comment %q says too little", short(p.ImportPath), p.Doc)
		}
	}
}

func TestThePureCoreStaysPure(t *testing.T) {
	for _, p := range packages(t) {
		name := short(p.ImportPath)
		if !slices.Contains(pure, name) {
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, module+"/") {
				continue // the table of arrows has its word on these
			}
			if strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") {
				t.Errorf("%s imports %s: the core stands on the standard library alone", name, imp)
			}
			for _, never := range pureNever {
				if (imp == never || strings.HasPrefix(imp, never+"/")) && !slices.Contains(pureExcept[name], imp) {
					t.Errorf("%s imports %s: the core does no I/O and hides no state", name, imp)
				}
			}
		}
		for _, file := range p.GoFiles {
			checkNoClock(t, filepath.Join(p.Dir, file))
		}
	}
}

// checkNoClock finds calls that read a clock, start a timer or a goroutine.
func checkNoClock(t *testing.T, path string) {
	t.Helper()
	fset := token.NewFileSet()
	f := must.Get(parser.ParseFile(fset, path, nil, 0))(t)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s: the core starts no goroutine", fset.Position(n.Pos()))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(impure, x.Name+"."+n.Sel.Name) {
				t.Errorf("%s: %s.%s: the core is told the time", fset.Position(n.Pos()), x.Name, n.Sel.Name)
			}
		}
		return true
	})
}
