package e2e

import (
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

var previous = flag.String("previous", "", "what is run beside this version: a tag or a commit; default: the last tag, else the commit before")

// before is the tree of the version before this one, and the program built of it.
func before(t *testing.T) (tree, program string) {
	t.Helper()
	revision := *previous
	if revision == "" {
		revision = "HEAD~1"
		if tag, err := exec.Command("git", "describe", "--tags", "--abbrev=0", "HEAD~1").Output(); err == nil {
			revision = strings.TrimSpace(string(tag))
		}
	}
	if out, err := exec.Command("git", "rev-parse", "--verify", revision+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("there is no version before this one here, as in a shallow clone: %s", out)
	}
	tree = t.TempDir()
	archive := filepath.Join(tree, "tree.tar")
	for _, cmd := range []*exec.Cmd{
		exec.Command("git", "-C", repository(t), "archive", "-o", archive, revision),
		exec.Command("tar", "-xf", archive, "-C", tree),
		exec.Command("go", "-C", tree, "build", "-buildvcs=false", "-o", filepath.Join(tree, "pacer-before"), "./cmd/pacer"),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
	return tree, filepath.Join(tree, "pacer-before")
}

// In a rolling upgrade two versions share one Redis: each learns from what the other
// relays, neither has anything to complain of, and what the new one has left the old one
// reads, so that one can go back. What was a configuration stays one.
func TestTwoVersionsShareOneRedis(t *testing.T) {
	if racetest.On {
		t.Skip("the version before has to be built, without the race detector: make packages runs it")
	}
	tree, old := before(t)
	examples, err := filepath.Glob(filepath.Join(tree, "examples", "*.yaml"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range examples {
		text := must.Get(os.ReadFile(file))(t)
		for _, m := range regexp.MustCompile(`\$\{([A-Z0-9_]+)\}`).FindAllStringSubmatch(string(text), -1) {
			t.Setenv(m[1], "of-the-test")
		}
		if out, code := once(t, "check", file); code != 0 {
			t.Errorf("%s was a configuration, and is none now:\n%s", filepath.Base(file), out)
		}
	}

	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	file := gatewayConfig(t, engine.Ready["url"], "replicas: 2\nstore: \""+redisURL(t, redistest.Start(t))+"\"\n")
	start := func(program string) *proctest.Process {
		return proctest.Run(t, proctest.Options{Program: program}, "serve", "-c", file)
	}
	first, second := start(old), start("")
	same := func(what string, least float64) {
		t.Helper()
		proctest.Until(t, what, func() bool {
			a, b := learned(t, first), learned(t, second)
			return a >= least && math.Abs(a/b-1) < 1e-6
		})
	}
	load(t, first, 4, 3)
	same("what the old one relayed is known to both", most(12))
	load(t, second, 4, 3)
	same("what the new one relayed is known to both", most(24))
	for name, p := range map[string]*proctest.Process{"old": first, "new": second} {
		for line := range strings.Lines(p.Log()) {
			if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`) && strings.Contains(line, "edis") {
				t.Errorf("the %s one says %s", name, line)
			}
		}
	}
	known := learned(t, second)
	first.Stop(syscall.SIGTERM)
	second.Stop(syscall.SIGTERM)
	back := start(old)
	proctest.Until(t, "the old one goes on from what the new one has left", func() bool { return learned(t, back) >= 0.99*known })
	load(t, back, 1, 1)
}
