package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/plan"
)

// planned runs pacer plan --json.
func planned(t *testing.T, args ...string) plan.Answer {
	t.Helper()
	code, stdout, stderr := command(t, append([]string{"plan", "--json"}, args...)...)
	var answer plan.Answer
	if err := json.Unmarshal([]byte(stdout), &answer); code != 0 || stderr != "" || err != nil {
		t.Fatalf("plan %q: exit code %d, stderr %q, %v\n%s", args, code, stderr, err, stdout)
	}
	return answer
}

// inFile writes text to a file of the test and returns its path.
func inFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestPlanSaysWhatIsWrong(t *testing.T) {
	const twoRoutes = `
backends: [ { name: a, url: "http://a:1/v1", prior: { 1: 50 } }, { name: b, url: "http://b:1/v1" } ]
routes:
  - { model: chat, targets: [ { backend: a } ] }
  - { models: [ nightly, late ], class: batch, targets: [ { backend: b } ] }
`
	two := inFile(t, "two.yaml", twoRoutes)
	bare := inFile(t, "bare.yaml", "backends: [ { name: a, url: \"http://a:1/v1\" } ]\nroutes: [ { model: m, targets: [ { backend: a } ] } ]\n")
	broken := inFile(t, "broken.yaml", "backends: [ { nom: a } ]\n")
	trace := inFile(t, "t.csv", "arrival_s,prompt_tokens,output_tokens\n0,1,2\n1,1\n")
	brief := inFile(t, "brief.csv", "arrival_s,prompt_tokens,output_tokens\n0,1,2\n20,1,2\n")
	answered(t, []mistake{
		{[]string{"-c", bare}, "pacer: no load is given; write --trace FILE"},
		{[]string{"-c", bare, "--rate", "5/s"}, "pacer: no curve is known of a; give each a prior: in " + bare},
		{[]string{"-c", two, "--rate", "5/s"}, "pacer: there are 2 routes; say how the load is split, such as --share chat=0.5,nightly=0.5"},
		{[]string{"-c", two, "--rate", "5/s", "--share", "chat"}, `pacer: --share "chat" says no share`},
		{[]string{"-c", two, "--rate", "5/s", "--share", "chat=x"}, `pacer: --share "chat=x": "x" is no share`},
		{[]string{"-c", two, "--rate", "5/s", "--share", "chat=0"}, "pacer: --share leaves nothing"},
		{[]string{"-c", two, "--rate", "5/s", "--share", "talk=1"}, `pacer: --share: no route "talk"; known are chat, late, nightly`},
		{[]string{"-c", two, "--rate", "5/s", "--share", "late=1,late=2"}, "pacer: --share has late twice"},
		{[]string{"-c", two, "--rate", "5/s", "--share", "late=1"}, "pacer: no curve is known of b"},
		{[]string{"-c", broken, "--rate", "5/s"}, broken + ":1:"},
		{[]string{"-c", "none.yaml", "--rate", "5/s"}, "pacer: config: open none.yaml: "},
		{[]string{"--rate", "5/d"}, `pacer: --rate "5/d" is no rate`},
		{[]string{"--rate", "-1"}, `pacer: --rate "-1" is no rate`},
		{[]string{"--rate", "1e6/s", "--duration", "100h", "--scale", "1000", "--output", "fixed:1"}, "pacer: the load is more than 10000000 requests"},
		{[]string{"--rate", "0.0001/s"}, "pacer: no request comes within 10m0s"},
		{[]string{"--shape", "wave"}, `pacer: --shape: no shape "wave"`},
		{[]string{"--prompt", "many"}, `pacer: --prompt: "many" is no number`},
		{[]string{"--output", "0"}, "pacer: --output: a length is less than 1 token"},
		{[]string{"--trace", "none.csv"}, "pacer: stat none.csv: no such file"},
		{[]string{"--trace", "/dev/null"}, "pacer: /dev/null is no regular file"},
		{[]string{"--trace", ""}, "pacer: --trace names no file"},
		{[]string{"--trace", trace}, "pacer: " + trace + ":3: 2 columns, and the header has 3"},
		{[]string{"--trace", trace, "--rate", "5/s"}, "pacer: --trace and --rate are given; keep one"},
		{[]string{"--trace", trace, "--prompt", "5"}, "pacer: a trace has its own prompts"},
		{[]string{"--scale", "0"}, "pacer: --scale is 0"},
		{[]string{"--scale", "NaN"}, "pacer: --scale is NaN"},
		{[]string{"--duration", "1ms"}, "pacer: --duration is 1ms"},
		{[]string{"--duration", "1m", "--warmup", "1m"}, "pacer: --warmup is 1m0s; write less than the duration"},
		{[]string{"--warmup", "11m"}, "pacer: --warmup is 11m0s, and the load is over after 10m0s"},
		{[]string{"--policy", "fastest"}, `pacer: --policy: no policy "fastest"; known are all, `},
		{[]string{"--policy", ""}, "pacer: --policy"},
		{[]string{"--attainment", "99"}, "pacer: --attainment is 99"},
		{[]string{"--prefill", "-1"}, "pacer: --prefill is -1"},
		{[]string{"--sweep", "2..1"}, `pacer: --sweep "2..1" is no range`},
		{[]string{"--sweep", "1..2/1"}, `pacer: --sweep "1..2/1": "1" is no number of factors`},
		{[]string{"--sweep", "1..2", "--scale", "2"}, "pacer: --sweep and --scale are given; keep one"},
		{[]string{"--sweep", "1..2", "--replicas-of", "h200-a=1..2"}, "pacer: --sweep and a range of --replicas-of"},
		{[]string{"--replicas-of", "h200-a"}, `pacer: --replicas-of "h200-a" says no number`},
		{[]string{"--replicas-of", "x=1..2"}, `pacer: --replicas-of: no backend "x"; known are h100-a, h200-a`},
		{[]string{"--replicas-of", "h200-a=2..1"}, `pacer: --replicas-of "h200-a=2..1": "2..1" is no number`},
		{[]string{"--replicas-of", "h200-a=0"}, `pacer: --replicas-of "h200-a=0"`},
		{[]string{"--replicas-of", "h200-a=2", "--replicas-of", "h200-a=3"}, "pacer: --replicas-of h200-a is given twice"},
		{[]string{"--replicas-of", "h200-a=1..2", "--replicas-of", "h100-a=1..2"}, "pacer: --replicas-of has two ranges"},
		{[]string{"--fault", "kill:h200-a"}, `pacer: --fault "kill:h200-a" does not say when`},
		{[]string{"--fault", "kill@1m"}, `pacer: --fault "kill@1m" is no fault`},
		{[]string{"--fault", "kill:x@1m"}, `pacer: --fault "kill:x@1m": no backend "x"; known are h100-a, h200-a`},
		{[]string{"--fault", "drift:h200-a:0@1m"}, `pacer: --fault "drift:h200-a:0@1m": "0" is no factor`},
		{[]string{"--fault", "kill:h200-a@1m+x"}, `pacer: --fault "kill:h200-a@1m+x": "x" is no length of time`},
		{[]string{"--fault", "kill:h200-a@20m", "--fault", "redis_lost@1m"}, `pacer: --fault "kill:h200-a@20m": the load is over after 10m0s`},
		{[]string{"--trace", brief, "--scale", "2", "--fault", "kill:h200-a@25s+1m"}, `pacer: --fault "kill:h200-a@25s+1m": the load is over after 20s`},
		{[]string{"--admin", "ftp://x"}, "pacer: --admin is no address of an admin port"},
		{[]string{"--store", "redis://:s3cret@h:1"}, "pacer: --store needs -c FILE"},
		{[]string{"-c", bare, "--rate", "1", "--store", "redis://:s3cret@h:99999"}, "pacer: --store: the store's URL has no valid host"},
		{[]string{"--admin", "http://x", "--store", "redis://h"}, "pacer: --admin and --store are given; keep one"},
		{[]string{"--json", "--csv"}, "pacer: --json and --csv are given; keep one"},
		{[]string{"fleet.yaml"}, "pacer: plan takes no argument \"fleet.yaml\"; write pacer plan -c fleet.yaml"},
	}, "plan")
}

func TestPlanWithoutAGateway(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	if code, _, stderr := command(t, "plan", "--admin", s.URL); code != 1 || !strings.Contains(stderr, "no gateway at ") {
		t.Errorf("exit code %d, stderr %q; want 1 and that nobody is there", code, stderr)
	}
}
