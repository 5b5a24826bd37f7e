package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pacer-dev/pacer/internal/must"
)

const examples = "../examples"

// fleet is the shortest valid configuration; tests add to it.
const fleet = `backends: [ { name: a, url: "http://a:1/v1" } ]
routes: [ { model: m, targets: [ { backend: a } ] } ]
`

func nothing(string) (string, bool) { return "", false }

func mustParse(t *testing.T, text string, getenv func(string) (string, bool)) *Config {
	t.Helper()
	cfg, err := Parse("f", []byte(text), getenv)
	if err != nil {
		t.Fatalf("Parse:\n%v\nof:\n%s", err, text)
	}
	return cfg
}

// TestContractExample reads the example that names every field.
func TestContractExample(t *testing.T) {
	data := must.Get(os.ReadFile(filepath.Join(examples, "contract.yaml")))(t)
	got := mustParse(t, string(data), variables(map[string]string{"ADMIN_TOKEN": "admin-token", "H200_KEY": "h200-key"}))
	small := Target{Backend: "l40s-a", Model: "meta-llama/Llama-3.1-8B-Instruct"}
	want := &Config{
		Listen:   "0.0.0.0:8080",
		Admin:    Admin{Listen: "127.0.0.1:9090", Token: "admin-token", OIDC: OIDC{Claim: "groups", Session: 8 * time.Hour}},
		Store:    Store{Addrs: []string{"redis:6379"}, Prefix: "pacer"},
		Replicas: 1, Relay: "loop",
		Log:  Log{Level: "info", Format: "json"},
		CORS: CORS{MaxAge: 10 * time.Minute},
		Timeouts: Timeouts{
			Connect: 5 * time.Second, FirstByte: 2 * time.Minute, Silence: time.Minute,
			Total: 30 * time.Minute, Write: 30 * time.Second, Drain: 30 * time.Second, Linger: 3 * time.Second,
		},
		Limits:   Limits{Body: 32 << 20, Header: 64 << 10, Streams: 20000, Queue: 1000, Buffered: 1 << 30, Prefixes: 64 << 20},
		Batches:  Batches{Slots: 64, Bytes: 256 << 20, Keep: 168 * time.Hour},
		Picker:   Picker{Listen: "127.0.0.1:9002", Fail: FailOpen},
		Realtime: Realtime{Idle: 5 * time.Minute, Total: time.Hour, Message: 16 << 20},
		Backends: []Backend{
			{
				Name: "h200-a", URL: "http://10.0.0.11:8000/v1", Kind: "vllm", APIKey: "h200-key",
				Headers: map[string]Secret{}, MaxConcurrency: 256, Models: "shared", Usage: "inject", Client: "own",
				Price:  Price{Input: 0.20, Output: 0.60},
				Labels: map[string]string{"gpu": "H200", "region": "eu"},
				Prior:  Prior{Preset: "llama-3.1-70b/h200/vllm"},
			},
			{
				Name: "l40s-a", URL: "http://10.0.0.12:8000/v1", Kind: "vllm", Models: "shared", Usage: "inject", Client: "own",
				Labels: map[string]string{"gpu": "L40S", "region": "eu"},
			},
		},
		Routes: []Route{
			{
				Models: []string{"chat"}, Class: "interactive",
				Targets: []Target{{Backend: "h200-a", Model: "meta-llama/Llama-3.1-70B-Instruct"}, small},
				SLO:     SLO{MinTPS: 30, MaxTTFT: 2 * time.Second, Attainment: 0.99, Grace: time.Second},
				Prefer:  "headroom", Reserve: 1, BatchShare: 0.02, Affinity: "auto", Isolation: "none",
				OnInfeasible: []Step{{Queue: 2 * time.Second}, {Spill: "chat-small"}, {Shed: true}},
			},
			{
				Models: []string{"chat-small"}, Class: "interactive", Targets: []Target{small},
				SLO: SLO{Attainment: 0.99, Grace: time.Second}, Prefer: "headroom", Reserve: 1, BatchShare: 0.02, Affinity: "auto", Isolation: "none",
				OnInfeasible: []Step{{Queue: 2 * time.Second}, {Shed: true}},
			},
			{
				Models: []string{"nightly"}, Class: "batch", Targets: []Target{small},
				SLO: SLO{Attainment: 0.99, Grace: time.Second}, Prefer: "headroom", Reserve: 1, BatchShare: 0.02, Affinity: "auto", Isolation: "none",
				OnInfeasible: []Step{{Queue: time.Minute}, {Shed: true}},
			},
		},
		Keys: []Key{{
			Name: "mobile", SHA256: sha256.Sum256([]byte("my-mobile-key")), Routes: []string{"chat"},
			Allow:   Allow{Classes: []string{"interactive", "batch"}, MinTPSMax: 60, MaxTTFTMin: 500 * time.Millisecond},
			Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
			Limits:  KeyLimits{RequestsPerMinute: 600, TokensPerMinute: 200000, Concurrency: 50},
		}},
	}
	same(t, "contract.yaml", want, got, cmpopts.IgnoreUnexported(Config{}))
}

func TestExamplesAreValid(t *testing.T) {
	t.Setenv("ADMIN_TOKEN", "x")
	t.Setenv("H200_KEY", "y")
	paths, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("found %d examples, want at least 3 (%v)", len(paths), err)
	}
	for _, path := range paths {
		cfg, err := Load(path)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if len(cfg.Source().Warnings) > 0 {
			t.Errorf("%s: warnings %q, want none", path, cfg.Source().Warnings)
		}
	}
}

func TestDefaults(t *testing.T) {
	got := mustParse(t, fleet, nothing)
	want := &Config{
		Listen:   "127.0.0.1:8080",
		Admin:    Admin{Listen: "127.0.0.1:9090", OIDC: OIDC{Claim: "groups", Session: 8 * time.Hour}},
		Store:    Store{Memory: true, Prefix: "pacer"},
		Replicas: 1, Relay: "loop",
		Log:  Log{Level: "info"},
		CORS: CORS{MaxAge: 10 * time.Minute},
		Timeouts: Timeouts{
			Connect: 5 * time.Second, FirstByte: 2 * time.Minute, Silence: time.Minute,
			Total: 30 * time.Minute, Write: 30 * time.Second, Drain: 30 * time.Second, Linger: 3 * time.Second,
		},
		Limits:   Limits{Body: 32 << 20, Header: 64 << 10, Streams: 20000, Queue: 1000, Buffered: 1 << 30, Prefixes: 64 << 20},
		Batches:  Batches{Slots: 64, Bytes: 256 << 20, Keep: 168 * time.Hour},
		Picker:   Picker{Listen: "127.0.0.1:9002", Fail: FailOpen},
		Realtime: Realtime{Idle: 5 * time.Minute, Total: time.Hour, Message: 16 << 20},
		Backends: []Backend{{Name: "a", URL: "http://a:1/v1", Kind: "openai", Models: "shared", Usage: "inject", Client: "own"}},
		Routes: []Route{{
			Models: []string{"m"}, Class: "interactive", Targets: []Target{{Backend: "a"}},
			SLO: SLO{Attainment: 0.99, Grace: time.Second}, Prefer: "headroom", Reserve: 1, BatchShare: 0.02, Affinity: "auto", Isolation: "none",
			OnInfeasible: []Step{{Queue: 2 * time.Second}, {Shed: true}},
		}},
	}
	same(t, "defaults", want, got, cmpopts.IgnoreUnexported(Config{}))
}

func TestFromEnvironment(t *testing.T) {
	cfg := must.Get(FromEnvironment(variables(map[string]string{"OPENAI_BASE_URL": "http://gpu:8000/v1/", "OPENAI_API_KEY": "sk-1"})))(t)
	wantBackends := []Backend{{Name: "default", URL: "http://gpu:8000/v1", Kind: "openai", Models: "shared", Usage: "inject", Client: "own", APIKey: "sk-1"}}
	same(t, "backends", wantBackends, cfg.Backends)
	// The same as the file that a user would write.
	file := mustParse(t, "backends: [ { name: default, url: http://gpu:8000/v1, api_key: sk-1 } ]\nroutes: [ { model: \"*\", targets: [ { backend: default } ] } ]\n", nothing)
	if diff := cmp.Diff(file, cfg, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Errorf("against a file (-file +environment):\n%s", diff)
	}

	for _, test := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "environment: there is no configuration; name a file with -c pacer.yaml, or set OPENAI_BASE_URL to a backend such as http://127.0.0.1:8000/v1"},
		{map[string]string{"OPENAI_BASE_URL": "gpu:8000"}, "environment: OPENAI_BASE_URL: the url must start with http:// or https://; write one such as http://10.0.0.11:8000/v1"},
		{
			map[string]string{"OPENAI_BASE_URL": "http://gpu/v1", "OPENAI_API_KEY": "s3cret\n"},
			"environment: OPENAI_API_KEY holds a line break, a control character or outer blanks, which no HTTP header can carry; take them out",
		},
	} {
		cfg, err := FromEnvironment(variables(test.env))
		var problems Errors
		if cfg != nil || !errors.As(err, &problems) || err.Error() != test.want {
			t.Errorf("FromEnvironment(%v) = %v, %v; want Errors %q", test.env, cfg, err, test.want)
		}
	}
}

// A configuration knows what it was made of, and which variables a start without a
// file would have taken: those that the file itself refers to are used.
func TestSource(t *testing.T) {
	const file = "backends: [ { name: a, url: %q, api_key: %q } ]\nroutes: [ { model: a, targets: [ { backend: a } ] } ]\n"
	for _, test := range []struct {
		name, url, key, text string
		ignored              []string
	}{
		{"both", "http://gpu:8000/v1", "sk-1", fmt.Sprintf(file, "http://h/v1", "k"), []string{"OPENAI_BASE_URL", "OPENAI_API_KEY"}},
		{"the key is referred to", "http://gpu:8000/v1", "sk-1", fmt.Sprintf(file, "http://h/v1", "${OPENAI_API_KEY}"), []string{"OPENAI_BASE_URL"}},
		{"the address is referred to", "http://gpu:8000/v1", "sk-1", fmt.Sprintf(file, "${OPENAI_BASE_URL}", "k"), nil},
		{"the key alone is set", "", "sk-1", fmt.Sprintf(file, "http://h/v1", "k"), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("OPENAI_BASE_URL", test.url)
			t.Setenv("OPENAI_API_KEY", test.key)
			must.Do(t, os.WriteFile("pacer.yaml", []byte(test.text), 0o600))
			s := must.Get(Load("pacer.yaml"))(t).Source()
			if !filepath.IsAbs(s.File) || filepath.Base(s.File) != "pacer.yaml" || s.Variables != nil || !slices.Equal(s.Ignored, test.ignored) {
				t.Errorf("made of %+v, want pacer.yaml, and %q ignored", s, test.ignored)
			}
		})
	}
	cfg := must.Get(FromEnvironment(variables(map[string]string{"OPENAI_BASE_URL": "http://gpu:8000/v1"})))(t)
	if s := cfg.Source(); s.File != "" || s.Ignored != nil || !slices.Equal(s.Variables, []string{"OPENAI_BASE_URL"}) {
		t.Errorf("of the environment: made of %+v", s)
	}
}

// Every kind has its form of URL; those of Azure keep their version.
func TestKinds(t *testing.T) {
	for _, tt := range []struct{ kind, url, want string }{
		{"openai", "HTTPS://API.openai.com:443/v1/", "https://api.openai.com/v1"},
		{"vllm", "http://h:8000/v1", "http://h:8000/v1"},
		{"sglang", "http://h:30000/v1", "http://h:30000/v1"},
		{"llamacpp", "http://h:8080/v1", "http://h:8080/v1"},
		{"tgi", "http://h:8080/v1", "http://h:8080/v1"},
		{"ollama", "http://h:11434/v1/", "http://h:11434/v1"},
		{"azure", "https://R.openai.azure.com/openai/?api-version=2024-10-21", "https://r.openai.azure.com/openai?api-version=2024-10-21"},
		{"azure", "https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21", "https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21"},
		{"azure", "https://r.openai.azure.com/openai/v1/", "https://r.openai.azure.com/openai/v1"},
		{"azure", "https://r.openai.azure.com/openai/v1?api-version=preview", "https://r.openai.azure.com/openai/v1?api-version=preview"},
		{"anthropic", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1"},
	} {
		for _, order := range []string{"kind: %s, url: %q", "url: %[2]q, kind: %[1]s"} {
			backend := fmt.Sprintf(order, tt.kind, tt.url)
			cfg := mustParse(t, "backends: [ { name: a, "+backend+", api_key: k } ]\nroutes: [ { model: m, targets: [ { backend: a } ] } ]\n", nothing)
			if b := cfg.Backends[0]; b.URL != tt.want || b.Kind != tt.kind {
				t.Errorf("%s: %s of kind %s, want %s", backend, b.URL, b.Kind, tt.want)
			}
			if len(cfg.Source().Warnings) > 0 {
				t.Errorf("%s: %q", backend, cfg.Source().Warnings)
			}
		}
	}
}

func TestStores(t *testing.T) {
	for _, test := range []struct {
		text string
		want Store
	}{
		{"memory", Store{Memory: true, Prefix: "pacer"}},
		{"redis://db", Store{Addrs: []string{"db:6379"}, Prefix: "pacer"}},
		{"redis://db:7000/3", Store{Addrs: []string{"db:7000"}, DB: 3, Prefix: "pacer"}},
		{`"redis://[::1]:6379/"`, Store{Addrs: []string{"[::1]:6379"}, Prefix: "pacer"}},
		{"rediss://u:p%40ss@db/0", Store{Addrs: []string{"db:6379"}, Username: "u", Password: "p@ss", TLS: true, Prefix: "pacer"}},
		{"redis://:p@db", Store{Addrs: []string{"db:6379"}, Password: "p", Prefix: "pacer"}},
		{`{ addrs: [ "a:1", "b:2" ], prefix: "x:y" }`, Store{Addrs: []string{"a:1", "b:2"}, Prefix: "x:y"}},
		{
			`{ addrs: [ "s:26379" ], master: main, db: 2, username: u, password: "#p", tls: {} }`,
			Store{Addrs: []string{"s:26379"}, Master: "main", DB: 2, Username: "u", Password: "#p", TLS: true, Prefix: "pacer"},
		},
		{`{ addrs: [ "a:1" ], tls: { ca_file: /ca.pem } }`, Store{Addrs: []string{"a:1"}, TLS: true, CAFile: "/ca.pem", Prefix: "pacer"}},
		{
			`{ addrs: [ "a:1" ], master: m, sentinel: { username: u, password: "#s" } }`,
			Store{Addrs: []string{"a:1"}, Master: "m", Prefix: "pacer", Sentinel: Login{"u", "#s"}},
		},
		{`{ addrs: [ "a:1" ], tls: false }`, Store{Addrs: []string{"a:1"}, Prefix: "pacer"}},
		{
			`{ addrs: [ "eu:1" ], global: { addrs: [ "all:2" ], prefix: g } }`,
			Store{Addrs: []string{"eu:1"}, Prefix: "pacer", Global: &Store{Addrs: []string{"all:2"}, Prefix: "g"}},
		},
		{
			`{ addrs: [ "eu:1" ], global: "${URL}" }`,
			Store{Addrs: []string{"eu:1"}, Prefix: "pacer", Global: &Store{Addrs: []string{"env:1"}, DB: 1, Prefix: "pacer"}},
		},
		{"${URL}", Store{Addrs: []string{"env:1"}, DB: 1, Prefix: "pacer"}},
		{"${NOPE:-memory}", Store{Memory: true, Prefix: "pacer"}},
	} {
		cfg := mustParse(t, fleet+"store: "+test.text+"\n", variables(map[string]string{"URL": "redis://env:1/1"}))
		same(t, "store: "+test.text, test.want, cfg.Store)
	}
}

// TestSLOPresets holds the floors against 1000/TPOT in ms of the published
// limits.
func TestSLOPresets(t *testing.T) {
	for name, want := range map[string]struct{ tps, ttft float64 }{
		"llama2-70b-server":         {1000.0 / 200, 2},
		"llama2-70b-interactive":    {1000.0 / 40, 0.45},
		"llama3.1-405b-server":      {1000.0 / 175, 6},
		"llama3.1-405b-interactive": {1000.0 / 80, 4.5},
		"llama3.1-8b-server":        {1000.0 / 100, 2},
		"llama3.1-8b-interactive":   {1000.0 / 30, 0.5},
		"deepseek-r1-server":        {1000.0 / 80, 2},
		"deepseek-r1-interactive":   {1000.0 / 15, 1.5},
	} {
		text := strings.Replace(fleet, "model: m,", "model: m, slo: { preset: "+name+", grace: 0s },", 1)
		slo := mustParse(t, text, nothing).Routes[0].SLO
		if d := slo.MinTPS - want.tps; d > 1e-9 || d < -1e-9 || slo.MaxTTFT.Seconds() != want.ttft {
			t.Errorf("%s: floor %v tokens/s, TTFT %v; want %v and %vs", name, slo.MinTPS, slo.MaxTTFT, want.tps, want.ttft)
		}
		if slo.Attainment != 0.99 || slo.Grace != 0 {
			t.Errorf("%s: attainment %v, grace %v; want 0.99 and the 0s of the file", name, slo.Attainment, slo.Grace)
		}
	}
}

func TestRouteForms(t *testing.T) {
	cfg := mustParse(t, `
backends:
  - { name: a, url: "HTTPS://GPU.Example:443/v1/", usd_per_hour: 2.5, price: { input: 1e-1, output: 3 }, prior: { points: { 1: 52, 64: 31.5 } } }
routes:
  - { models: [ gpt-4o, org/model ], targets: [ { backend: a, model: x }, { backend: a, model: y } ], prefer: cheapest, reserve: 0, batch_share: 0.1, hedge: true }
  - { model: "*", targets: [ { backend: a } ], on_infeasible: [ { spill: org/model }, best_effort ] }
keys:
  - { name: all, key: k1, routes: "*" }
  - { name: all-too, key: k2, routes: [ gpt-4o, "*" ] }
  - { name: any, key: k3 }
  - { name: one, key: k4, routes: [ org/model ], allow: { max_ttft_min: 1s } }
expose_decision: true
`, nothing)
	if got, want := cfg.Backends[0].URL, "https://gpu.example/v1"; got != want {
		t.Errorf("url = %q, want %q", got, want)
	}
	if got, want := cfg.Backends[0].Price, (Price{Input: 0.1, Output: 3}); got != want {
		t.Errorf("price = %v, want %v", got, want)
	}
	if got := cfg.Backends[0].USDPerHour; got != 2.5 {
		t.Errorf("usd_per_hour = %v, want 2.5", got)
	}
	same(t, "prior", Prior{Points: map[int]float64{1: 52, 64: 31.5}}, cfg.Backends[0].Prior)
	same(t, "models", []string{"gpt-4o", "org/model"}, cfg.Routes[0].Models)
	if got := cfg.Routes[0].BatchShare; got != 0.1 {
		t.Errorf("batch_share = %v, want the 0.1 of the file", got)
	}
	if cfg.Routes[0].Reserve != 0 {
		t.Errorf("reserve = %d, want the 0 of the file", cfg.Routes[0].Reserve)
	}
	if !cfg.Routes[0].Hedge || defaulted[Route]().Hedge {
		t.Errorf("hedge = %v, want the true of the file; it is false by default", cfg.Routes[0].Hedge)
	}
	same(t, "on_infeasible", []Step{{Spill: "org/model"}, {BestEffort: true}, {Shed: true}}, cfg.Routes[1].OnInfeasible)
	for _, k := range cfg.Keys[:3] {
		if k.Routes != nil {
			t.Errorf("key %s has routes %q, want nil for all", k.Name, k.Routes)
		}
	}
	same(t, "routes of a key", []string{"org/model"}, cfg.Keys[3].Routes)
	if !cfg.ExposeDecision {
		t.Error("expose_decision = false, want the true of the file")
	}
}

// A floor needs a curve, and a curve needs usage: said before the night it
// matters.
func TestUsageThatServesNoFloor(t *testing.T) {
	const text = `
backends:
  - { name: mute, url: http://a:1/v1, usage: never }
  - { name: told, url: http://b:1/v1, usage: never, prior: { 1: 50, 8: 40 } }
  - { name: asked, url: http://c:1/v1, kind: vllm, usage: continuous }
  - { name: other, url: http://d:1/v1, usage: continuous }
routes:
  - { model: floor, slo: { min_tps: 30 }, targets: [ { backend: asked }, { backend: told }, { backend: mute } ] }
  - { model: free, targets: [ { backend: mute }, { backend: other } ] }
`
	cfg := must.Get(Parse("f", []byte(text), nil))(t)
	want := []string{
		"f:6:47: usage: continuous is understood by vLLM and SGLang; other engines ignore it, or refuse every stream: write the kind: of the engine, or usage: inject",
		`f:8:104: min_tps needs to know how fast backend "mute" is, and with usage: never the tokens of answers that do not tell them unasked are counted by their text, which may be far off in other scripts than Latin; write usage: inject for it, or give it a prior:`,
	}
	same(t, "warnings", want, cfg.Source().Warnings)
}

func TestHosts(t *testing.T) {
	cfg := mustParse(t, fleet+"hosts: [ Pacer.Example.com, gateway., ${NAME}, 10.0.0.7 ]\n", variables(map[string]string{"NAME": "llm.internal"}))
	want := "[pacer.example.com gateway llm.internal 10.0.0.7]"
	if got := fmt.Sprint(cfg.Hosts); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTrustedProxies(t *testing.T) {
	cfg := mustParse(t, fleet+"trusted_proxies: [ 10.0.0.7, 192.168.0.0/16, \"fd00::/8\", ${PROXY} ]\n", variables(map[string]string{"PROXY": "2001:db8::1"}))
	want := "[10.0.0.7/32 192.168.0.0/16 fd00::/8 2001:db8::1/128]"
	if got := fmt.Sprint(cfg.TrustedProxies); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWarnings(t *testing.T) {
	cfg := mustParse(t, `listen: 0.0.0.0:8080
admin: { listen: "[::]:9090" }
replicas: 2
backends:
  - { name: a, url: "http://a:8000" }
  - { name: idle, url: "http://b:8000/v1" }
  - { name: gemini, url: "https://g.example/v1beta/openai" }
routes:
  - { model: m, targets: [ { backend: a }, { backend: gemini } ], prefer: cheapest }
  - { model: alone, targets: [ { backend: a, model: x }, { backend: a, model: y } ], hedge: true }
  - { model: night, class: batch, targets: [ { backend: a }, { backend: gemini } ], hedge: true }
  - { model: good, targets: [ { backend: a }, { backend: gemini } ], hedge: true }
  - { model: ends, targets: [ { backend: a }, { backend: gemini } ], continue: true }
  - { model: vague, targets: [ { backend: a } ], slo: { attainment: 0.999 } }
  - { model: clear, targets: [ { backend: a } ], slo: { attainment: 0.999, max_ttft: 2s } }
`, nothing)
	want := []string{
		"f:1:9: listen 0.0.0.0:8080 is reachable from other machines and no keys are configured: anyone there may use the backends; add keys:, or listen on 127.0.0.1",
		"f:2:18: admin.listen [::]:9090 is reachable from other machines and has no token: changing calls are refused; add token:, or listen on 127.0.0.1",
		"f:3:11: replicas is 2 but the store is memory: each gateway learns alone and assumes the others carry as much as itself; write store: redis://host:6379/0",
		"f:5:21: the url does not end in a version; most engines serve under /v1, as in http://10.0.0.11:8000/v1",
		"f:6:13: no route has a target on the backend \"idle\": it serves nobody",
		"f:9:75: prefer is cheapest but no target has a price: all cost the same; add price: to the backends",
		"f:10:93: hedge has no effect: all targets of the route are on one backend; add a target on another one",
		"f:11:92: hedge has no effect on a batch route, but for requests that ask to be interactive; leave it out",
		"f:13:80: continue has no effect: a stream goes on at another backend of kind vllm, sglang or llamacpp, and the route has not two of them; write kind:, or add a target",
		"f:14:57: attainment is the share of streams that keep min_tps or max_ttft, and there is neither: no objective is exported for the route, and PacerFloorMissed does not look at it; add one of the two, or leave attainment out",
	}
	same(t, "warnings", want, cfg.Source().Warnings)

	cfg = mustParse(t, fleet+"listen: 0.0.0.0:8080\nkeys: [ { name: k, key: s3cret } ]\nhosts: [ pacer ]\n", nothing)
	want = []string{
		"f:4:25: the key is configured as plain text; better write key_sha256: with the hash that printf %s KEY | sha256sum prints, or key_file:",
		"f:5:8: hosts has no effect where there are keys: a page needs one; leave it out",
	}
	same(t, "warnings with a key", want, cfg.Source().Warnings)
}

// A key in plain text is warned of once, however often the file is read and wherever the key
// stands by then. What else is to be said is said each time.
func TestAPlainKeyIsWarnedOfOnce(t *testing.T) {
	keys := func(before string, keys ...string) *Config {
		text := before + fleet + "hosts: [ pacer ]\nkeys:\n"
		for i, key := range keys {
			text += fmt.Sprintf("  - { name: k%d, key: %s }\n", i, key)
		}
		return mustParse(t, text, nothing)
	}
	old := keys("", "first", "second")
	for _, c := range []struct {
		next *Config
		want int // warnings of keys
	}{
		{keys("", "first", "second"), 0},
		{keys("# moved\n\n", "second", "first"), 0},
		{keys("", "first", "third"), 1},
		{keys("", "first"), 0},
	} {
		got := c.next.WarningsSince(old)
		if len(got) != c.want+1 {
			t.Errorf("%q, want %d of keys and the one of hosts", got, c.want)
		}
	}
	if got := old.WarningsSince(&Config{}); len(got) != 3 {
		t.Errorf("at the start: %q, want all three", got)
	}
}

func TestWarningsOfGuarantees(t *testing.T) {
	cfg := mustParse(t, `backends:
  - { name: a, url: "http://a:8000/v1", max_concurrency: 8 }
  - { name: b, url: "http://b:8000/v1" }
routes:
  - { models: [ m, n ], targets: [ { backend: a } ], slo: { min_tps: 30, guarantee: 4 } }
  - { model: o, targets: [ { backend: a } ], slo: { guarantee: 1 } }
  - { model: p, targets: [ { backend: b } ], slo: { min_tps: 30, guarantee: 60% } }
  - { model: q, targets: [ { backend: b } ], slo: { min_tps: 30, guarantee: 50.5% } }
  - { model: r, targets: [ { backend: a }, { backend: b } ], slo: { min_tps: 30, guarantee: 100 } }
`, nothing)
	want := []string{
		"f:2:58: 9 places are guaranteed on backend \"a\", which takes 8 at once: who comes first has them; lower a guarantee, or raise max_concurrency",
		"f:3:5: 110 % of backend \"b\" are guaranteed: who comes first has them; lower a guarantee",
	}
	same(t, "warnings", want, cfg.Source().Warnings)
	if got := cfg.Routes[3].SLO.Guarantee; got != (Guarantee{Share: 0.505}) {
		t.Errorf("a guarantee of 50.5 %% is %+v", got)
	}
	if got := cfg.Routes[0].SLO.Guarantee; got != (Guarantee{Places: 4}) {
		t.Errorf("a guarantee of 4 is %+v", got)
	}
}

// TestBounds feeds files that are too large in one way or another; each has
// to be refused.
func TestBounds(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, test := range []struct{ name, text, want string }{
		{"bytes", strings.Repeat("#", 1<<20+1), "f: the file is larger than 1 MiB; split the fleet over several gateways"},
		{"words", "labels: [" + strings.Repeat("a,", 120_000) + "]", "f: the file has more than 100000 words; split the fleet over several gateways"},
		{"commas", "labels: [" + strings.Repeat(",", 1<<19), "f:1:10: a value is missing here; write one, or take out a comma or a bracket too many"},
		{"braces", "labels: " + strings.Repeat("{a: ", 100_000), "f:1:265: this is nested too deep; a configuration needs no more than 8 levels"},
		{"entries", strings.Repeat("- ", 400_000), "f:1:129: this is nested too deep; a configuration needs no more than 8 levels"},
		{"anchors", "a: &a [1]\nb: &b [*a, *a]\nc: [*b, *b]\n", "f:1:4: an anchor (&name) is not supported; write the value out, or quote it if a & is meant"},
	} {
		cfg, err := Parse("f", []byte(test.text), nothing)
		if cfg != nil || err == nil || err.Error() != test.want {
			t.Errorf("%s: Parse = %v, %.200v; want %q", test.name, cfg, err, test.want)
		}
	}

	_, err := Parse("f", []byte(fleet+"tls:\n"+many(900, "  k%d: v\n")+"log: { "+many(900, "k%d: v, ")+"}\n"), nothing)
	var problems Errors
	if !errors.As(err, &problems) || len(problems) != maxProblems+1 || problems[maxProblems].Message != "and 800 more problems; mend these first" {
		t.Errorf("1800 problems were reported as %d, the last %q", len(problems), problems[len(problems)-1].Message)
	}
}

// A mapping of many fields, and each of them once, takes no longer than the
// same text in many mappings.
func TestWideMapping(t *testing.T) {
	var b strings.Builder
	b.WriteString("backends:\n  - name: a\n    url: http://a:1/v1\n    labels:\n")
	for i := range 16_000 {
		fmt.Fprintf(&b, "      k%d: v\n", i)
	}
	b.WriteString("routes: [ { model: m, targets: [ { backend: a } ] } ]\n")
	if cfg := mustParse(t, b.String(), nothing); len(cfg.Backends[0].Labels) != 16_000 {
		t.Errorf("read %d labels, want 16000", len(cfg.Backends[0].Labels))
	}
}

// TestLargeFleet parses as much as the bounds are meant to allow.
func TestLargeFleet(t *testing.T) {
	var b strings.Builder
	b.WriteString("backends:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  - name: gpu-%d\n    url: http://10.0.%d.%d:8000/v1\n    kind: vllm\n    api_key: ${KEY}\n    labels: { gpu: H200 }\n", i, i/250, i%250)
	}
	b.WriteString("routes:\n  - model: chat\n    targets:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "      - { backend: gpu-%d, model: m }\n", i)
	}
	b.WriteString("keys:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  - name: team-%d\n    key_sha256: %x\n", i, sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
	}
	cfg := mustParse(t, b.String(), variables(map[string]string{"KEY": "k"}))
	if len(cfg.Backends) != 1000 || len(cfg.Routes[0].Targets) != 1000 || len(cfg.Keys) != 1000 {
		t.Errorf("read %d backends, %d targets, %d keys; want 1000 each", len(cfg.Backends), len(cfg.Routes[0].Targets), len(cfg.Keys))
	}
}

// A page of metrics is named by a path on the backend's server, or as a whole.
func TestMetricsURL(t *testing.T) {
	for _, c := range []struct{ url, metrics, want string }{
		{"http://a:1/v1", "/metrics", "http://a:1/metrics"},
		{"https://A.example/v1", "/engine/metrics?model=x", "https://a.example/engine/metrics?model=x"},
		{"http://[::1]:8000/v1", "/metrics", "http://[::1]:8000/metrics"},
		{"http://a:1/v1", "http://B:9100/metrics", "http://b:9100/metrics"},
		{"https://name.openai.azure.com/openai?api-version=2024-10-21", "/metrics", "https://name.openai.azure.com/metrics"},
		{"http://a:1/v1", "${PAGE}", "http://a:1/page"},
		{"http://a:1/v1", "", ""},
	} {
		kind := "vllm"
		if strings.Contains(c.url, "azure") {
			kind = "azure"
		}
		text := fmt.Sprintf("backends: [ { metrics_url: %q, name: a, url: %q, kind: %s } ]\nroutes: [ { model: m, targets: [ { backend: a } ] } ]\n", c.metrics, c.url, kind)
		if got := mustParse(t, text, variables(map[string]string{"PAGE": "/page"})).Backends[0].MetricsURL; got != c.want {
			t.Errorf("%s beside %s is %q, want %q", c.metrics, c.url, got, c.want)
		}
	}
	if _, err := Parse("f", []byte("backends:\n  - name: a\n    url: http://a:1/v1\n    metrics_url:\nroutes: [ { model: m, targets: [ { backend: a } ] } ]\n"), nothing); err == nil || !strings.Contains(err.Error(), "metrics_url") {
		t.Errorf("a metrics_url without a value: %v, want an error", err)
	}
}

// Some kinds have no such page, so that nothing would ever be heard.
func TestMetricsURLOfAKindWithoutAPage(t *testing.T) {
	for kind, warned := range map[string]bool{
		"anthropic": true, "azure": true, "ollama": true, "openai": false, "vllm": false, "sglang": false, "tgi": false, "llamacpp": false,
	} {
		text := "backends: [ { name: a, url: \"http://a:1/v1\", kind: " + kind + ", metrics_url: /metrics } ]\nroutes: [ { model: m, targets: [ { backend: a } ] } ]\n"
		got := mustParse(t, text, nothing).Source().Warnings
		if warned != (len(got) == 1 && strings.Contains(got[0], "a backend of kind "+kind+" has no page of metrics")) || !warned && len(got) > 0 {
			t.Errorf("kind %s: warnings %q, want one: %v", kind, got, warned)
		}
	}
}

func same(t *testing.T, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
