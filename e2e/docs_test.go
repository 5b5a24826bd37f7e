package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// scene is where a page's commands run: what a reader has beside the page.
type scene struct {
	pages   []string // in this order
	setup   string   // before the first command
	replace []string // pairs: what the test has to have otherwise
	want    map[string]string
}

// scenes are all pages that have commands.
var scenes = []scene{
	{
		pages: []string{"docs/START.md", "docs/PAY.md", "docs/UNDERSTAND.md"},
		want: map[string]string{
			"usage.json": `"usd_per_million_tokens":`, "usage.csv": "key,route,model,requests",
			"answer.json": "choices", "before.json": "goodput_per_s", "curve.txt": "TOKENS/S EACH", "curve.html": "<svg", "verdict.txt": "gpu",
		},
	},
	{
		// The configuration is the page's own, with simulated engines behind it.
		pages: []string{"README.md"},
		setup: `pacer sim --listen 127.0.0.1:$ENGINE_PORT --preset llama-3.1-70b/h200/vllm --model meta-llama/Llama-3.1-70B-Instruct 2> big.log &
pacer sim --listen 127.0.0.1:$OTHER_PORT --preset llama-3.1-70b/h200/vllm --model meta-llama/Llama-3.1-70B-Instruct 2> small.log &
for port in $ENGINE_PORT $OTHER_PORT; do until curl -sf http://127.0.0.1:$port/v1/models > models.json; do sleep 0.1; done; done
`,
		replace: []string{
			// It would run until it is ended: it is, once it serves. The next one is without a file,
			// though pacer.yaml stays where the page has put it.
			"bin/pacer serve -c pacer.yaml  ", "bin/pacer serve -c pacer.yaml & SERVED=$!; until curl -sf http://127.0.0.1:$DATA_PORT/readyz; do sleep 0.1; done; kill $SERVED; wait $SERVED; kill %1 #",
			"../bin/pacer serve) &", "../bin/pacer serve) & until curl -sf http://127.0.0.1:$DATA_PORT/readyz; do sleep 0.1; done",
			"curl -N http", "curl -sf -N -o answer.txt http",
			"bin/pacer slo export -c pacer.yaml ", "bin/pacer slo export -c pacer.yaml > slo.yaml ",
			"10.0.0.11:8000", "127.0.0.1:$ENGINE_PORT", "10.0.0.12:8000", "127.0.0.1:$OTHER_PORT",
		},
		want: map[string]string{"answer.txt": "data: [DONE]", "slo.yaml": "kind: SLO"},
	},
	{
		pages: []string{"docs/OPERATE.md"},
		setup: `export ADMIN_TOKEN=of-the-test
pacer sim --listen 127.0.0.1:$ENGINE_PORT --preset llama-3.1-70b/h200/vllm 2> sim.log &
until curl -sf http://127.0.0.1:$ENGINE_PORT/v1/models > models.json; do sleep 0.1; done
go build -o bin/pacer ./cmd/pacer
cp -r "$REPOSITORY/deploy" .
mkdir -p usr/local/bin etc/systemd/system
cat > pacer.yaml <<'CONF'
listen: 127.0.0.1:$DATA_PORT
admin: { listen: 127.0.0.1:$ADMIN_PORT, token: "${ADMIN_TOKEN}" }
backends:
  - { name: gpu, url: http://127.0.0.1:$ENGINE_PORT/v1, kind: vllm, prior: llama-3.1-70b/h200/vllm }
routes:
  - { model: chat, targets: [ { backend: gpu, model: llama-3.1-70b } ], slo: { min_tps: 30 } }
CONF
`,
		replace: []string{
			" /etc/", " $ROOT/etc/", "/usr/local/bin", "$ROOT/usr/local/bin",
		},
	},
	{
		pages: []string{"docs/OPERATIONS.md"},
		setup: `pacer sim --listen 127.0.0.1:$ENGINE_PORT --preset llama-3.1-70b/h200/vllm 2> sim.log &
cat > pacer.yaml <<CONF
listen: 127.0.0.1:$DATA_PORT
admin: { listen: 127.0.0.1:$ADMIN_PORT, token: of-the-test }
state_dir: $ROOT/state
keys: [ { name: of-file, key: sk-of-the-file } ]
backends: [ { name: gpu, url: http://127.0.0.1:$ENGINE_PORT/v1, kind: vllm } ]
routes: [ { model: chat, targets: [ { backend: gpu, model: llama-3.1-70b } ] } ]
CONF
sed "s|$ROOT/state|$ROOT/other|" pacer.yaml > new.yaml
pacer serve -c pacer.yaml 2> pacer.log &
until curl -sf http://127.0.0.1:$DATA_PORT/healthz; do sleep 0.1; done
`,
		replace: []string{"PACER_ADMIN_TOKEN=…", "PACER_ADMIN_TOKEN=of-the-test", "pacer keys audit", "pacer keys audit > audit.txt"},
		want:    map[string]string{"audit.txt": "mobile"},
	},
	{
		pages: []string{"docs/MIGRATE.md"},
		setup: `cat > config.yaml <<'CONF'
model_list:
  - { model_name: chat, litellm_params: { model: hosted_vllm/llama, api_base: "http://10.0.0.11:8000/v1" } }
CONF
echo 'vllm-router --static-backends "http://10.0.0.11:8000" --static-models "facebook/opt-125m"' > router.sh
echo 'http { upstream llm { server 10.0.0.11:8000; } server { listen 80; location / { proxy_pass http://llm; } } }' > nginx.conf
`,
		replace: []string{"/etc/nginx/nginx.conf > pacer.yaml", "nginx.conf > of-nginx.yaml", "router.sh > pacer.yaml", "router.sh > of-router.yaml"},
		want:    map[string]string{"pacer.yaml": "model: llama", "of-router.yaml": "facebook/opt-125m", "of-nginx.yaml": "http://10.0.0.11:8000/v1"},
	},
}

// What stands in for the world around the program: it adds the ports of the test, and
// does what systemd does with the unit that was installed.
const (
	pacerThere = `case "$1" in
explain|top|keys|scorecard) exec "$PACER" "$@" --admin "127.0.0.1:$ADMIN_PORT" ;;
serve) exec "$PACER" "$@" --listen "127.0.0.1:$DATA_PORT" --admin "127.0.0.1:$ADMIN_PORT" ;;
*) exec "$PACER" "$@" ;;
esac`
	goThere = `case "$*" in
"build -o bin/pacer ./cmd/pacer") mkdir -p bin && cp "$(command -v pacer)" bin/pacer ;;
"run ./cmd/pacer demo") exec "$PACER" demo --duration 10s > demo.txt 2>&1 ;;
*) echo "nobody is here for: go $*" >&2; exit 1 ;;
esac`
	systemctlThere = `unit="$ROOT/etc/systemd/system/pacer.service"
start() {
	exec="$(sed -n 's/^ExecStart=//p' "$unit")"
	exec="${exec//\/etc\//$ROOT/etc/}"
	bash -c "exec ${exec//\/usr\/local\/bin/$ROOT/usr/local/bin}" 2>> "$ROOT/pacer.log" > "$ROOT/out" &
	echo $! > "$ROOT/pid"
	until curl -sf "http://127.0.0.1:$DATA_PORT/readyz" > "$ROOT/ready"; do kill -0 "$(cat "$ROOT/pid")"; sleep 0.1; done
}
end() { kill "$(cat "$ROOT/pid")"; while kill -0 "$(cat "$ROOT/pid")" 2> /dev/null; do sleep 0.1; done; }
case "$1" in
daemon-reload) test -s "$unit" ;;
enable) start ;;
reload) kill -HUP "$(cat "$ROOT/pid")" ;;
restart) end; start ;;
esac`
	sudoThere = `exec "$@"`
)

var shellBlock = regexp.MustCompile("(?s)\n```sh\n(.*?)```")

// Every command in a block of the documentation runs as it stands there, in the order
// of its page, on ports that are free.
func TestTheCommandsOfTheDocumentation(t *testing.T) {
	var staged []string
	for _, s := range scenes {
		staged = append(staged, s.pages...)
		t.Run(filepath.Base(s.pages[0]), s.run)
	}
	pages := must.Get(filepath.Glob("../docs/*.md"))(t)
	more := must.Get(filepath.Glob("../docs/decisions/*.md"))(t)
	for _, page := range append(append(pages, more...), "../README.md", "../CONTRIBUTING.md", "../SECURITY.md") {
		text := must.Get(os.ReadFile(page))(t)
		if name := strings.TrimPrefix(page, "../"); shellBlock.Match(text) != slices.Contains(staged, name) {
			t.Errorf("%s has commands: %v, and a scene for them: %v", name, shellBlock.Match(text), slices.Contains(staged, name))
		}
	}
}

func (s scene) run(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ports := []string{"DATA_PORT", redistest.FreePort(t), "ADMIN_PORT", redistest.FreePort(t), "ENGINE_PORT", redistest.FreePort(t), "OTHER_PORT", redistest.FreePort(t)}
	env := append(os.Environ(), "PACER="+proctest.Binary(t), "ROOT="+dir, "REPOSITORY="+repository(t), "PATH="+filepath.Join(dir, "tools")+":"+os.Getenv("PATH"))
	pairs := slices.Clone(s.replace)
	for i := 0; i < len(ports); i += 2 {
		env = append(env, ports[i]+"="+ports[i+1])
		pairs = append(pairs, "$"+ports[i], ports[i+1])
	}
	pairs = append(pairs, "127.0.0.1:8080", "127.0.0.1:"+ports[1], "127.0.0.1:9090", "127.0.0.1:"+ports[3], "127.0.0.1:9101", "127.0.0.1:"+ports[5])
	for name, text := range map[string]string{"pacer": pacerThere, "go": goThere, "systemctl": systemctlThere, "sudo": sudoThere} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, "tools"), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(dir, "tools", name), []byte("#!/bin/bash\nset -eu\n"+text+"\n"), 0o755))
	}
	script := "set -euo pipefail\ntrap 'kill $(jobs -p) $(cat pid 2> /dev/null) 2> /dev/null || true; wait' EXIT\n" + s.setup
	yaml := regexp.MustCompile("(?s)\n```yaml\n# pacer.yaml\n(.*?)```")
	for _, page := range s.pages {
		text := must.Get(os.ReadFile("../" + page))(t)
		if conf := yaml.FindSubmatch(text); conf != nil {
			script += "cat > pacer.yaml <<'CONF'\n" + string(conf[1]) + "CONF\n"
		}
		for i, block := range shellBlock.FindAllSubmatch(text, -1) {
			script += fmt.Sprintf("echo '== %s, block %d'\n%s", page, i+1, block[1])
		}
	}
	script = strings.NewReplacer(pairs...).Replace(script)
	for i := 0; i < len(ports); i += 2 { // what a replacement has brought in
		script = strings.ReplaceAll(script, "$"+ports[i], ports[i+1])
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	// timeout ends what the script began, too, even when this process is killed.
	cmd := exec.CommandContext(ctx, "timeout", "-k", "5", "180", "bash", "-c", script)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Dir, cmd.Env = dir, env
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "pacer.log"))
		t.Fatalf("%v:\n%s\npacer.log:\n%s\nthe script:\n%s", err, out, log, script)
	}
	for file, want := range s.want {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s lacks %s (%v):\n%.300s", file, want, err, data)
		}
	}
}

// repository is the root of the sources.
func repository(t *testing.T) string {
	t.Helper()
	root := must.Get(filepath.Abs(".."))(t)
	return root
}
