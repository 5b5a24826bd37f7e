package config

import (
	"errors"
	"strings"
	"testing"
)

// hostile holds everything that would become structure if it were put into
// the text.
const hostile = "a # b: {c} [d], \"e\" 'f' \\ ${HOME} $${x} &g *h !i |\n- j: k\n\ttab"

func TestVariablesNeverBecomeStructure(t *testing.T) {
	env := variables(map[string]string{"S": hostile, "H": strings.ReplaceAll(hostile, "\n", " "), "URL": "http://x:1/v1", "N": "7", "EMPTY": ""})
	cfg := mustParse(t, `
admin: { token: ${H}, listen: 127.0.0.1:${PORT:-9090} }
store: { addrs: [ "r:1" ], username: '${S}', password: ${S} }
replicas: ${N}
limits: { streams: "${N}", body: ${N}KiB }
expose_decision: ${YES:-true}
backends:
  - name: a
    url: ${URL}
    api_key: "pre ${H} post"
    labels: { plain: "$${H}", none: "${EMPTY}", fallback: "${EMPTY:-x y}", cash: $5, two: "${N}-${N}", block: "a$" }
routes: [ { model: m, targets: [ { backend: a } ] } ]
`, env)
	oneLine := strings.ReplaceAll(hostile, "\n", " ")
	for _, test := range []struct{ name, got, want string }{
		{"token", cfg.Admin.Token.Reveal(), oneLine},
		{"admin.listen", cfg.Admin.Listen, "127.0.0.1:9090"},
		{"username", cfg.Store.Username, hostile},
		{"password", cfg.Store.Password.Reveal(), hostile},
		{"url", cfg.Backends[0].URL, "http://x:1/v1"},
		{"api_key", cfg.Backends[0].APIKey.Reveal(), "pre " + oneLine + " post"},
		{"plain", cfg.Backends[0].Labels["plain"], "${H}"},
		{"none", cfg.Backends[0].Labels["none"], ""},
		{"fallback", cfg.Backends[0].Labels["fallback"], "x y"},
		{"cash", cfg.Backends[0].Labels["cash"], "$5"},
		{"two", cfg.Backends[0].Labels["two"], "7-7"},
		{"block", cfg.Backends[0].Labels["block"], "a$"},
	} {
		if test.got != test.want {
			t.Errorf("%s = %q, want %q", test.name, test.got, test.want)
		}
	}
	if cfg.Replicas != 7 || cfg.Limits.Streams != 7 || cfg.Limits.Body != 7<<10 || !cfg.ExposeDecision {
		t.Errorf("replicas %d, streams %d, body %d, expose_decision %v; want 7, 7, 7168, true",
			cfg.Replicas, cfg.Limits.Streams, cfg.Limits.Body, cfg.ExposeDecision)
	}
}

// TestVariablesNeverShow puts a secret into every kind of field, where it is
// wrong, and looks for it in what is said.
func TestVariablesNeverShow(t *testing.T) {
	env := variables(map[string]string{"S": "s3cret value\n"})
	fields := strings.Split(`listen admin store replicas log tls cors timeouts limits backends routes keys expose_decision hosts trusted_proxies state_dir
admin.listen admin.token store.addrs store.prefix store.tls store.db log.level log.format tls.cert cors.origins cors.max_age
timeouts.connect limits.body limits.streams`, "\n")
	for _, field := range strings.Fields(strings.Join(fields, " ")) {
		outer, inner, nested := strings.Cut(field, ".")
		text := outer + ": ${S}\n"
		if nested {
			text = outer + ": { " + inner + ": ${S} }\n"
		}
		cfg, err := Parse("f", []byte(text), env)
		if cfg != nil || err == nil {
			t.Errorf("%s: no error", field)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s shows the secret: %v", field, err)
		}
	}
	for _, field := range strings.Fields("name url discover kind api_key headers models max_concurrency usage metrics_url health_url ca_file price usd_per_hour labels prior") {
		_, err := Parse("f", []byte("backends: [ { "+field+": ${S} } ]\nroutes: [ { model: ${S}, class: ${S}, targets: [ { backend: ${S} } ], prefer: ${S}, slo: { preset: ${S}, min_tps: ${S} }, on_infeasible: [ ${S}, { spill: ${S} } ] } ]\nkeys: [ { name: ${S}, key: ${S}, routes: [ ${S} ] }, { name: b, key_sha256: ${S} }, { name: c, key_file: ${S} } ]\n"), env)
		var problems Errors
		if !errors.As(err, &problems) {
			t.Errorf("%s is accepted", field)
		}
		for _, p := range problems {
			if strings.Contains(p.Message, "s3cret") {
				t.Errorf("%s shows the secret: %v", field, p)
			}
		}
	}
}

func TestExpansionIsBounded(t *testing.T) {
	env := variables(map[string]string{"BIG": strings.Repeat("x", 100<<10)})
	text := fleet + "cors: { origins: [ " + strings.Repeat("${BIG}, ", 20) + "] }\n"
	_, err := Parse("f", []byte(text), env)
	if err == nil || !strings.Contains(err.Error(), "put in more than 1 MiB") {
		t.Errorf("2 MiB of variables: %.300v; want a refusal above 1 MiB", err)
	}
}

func TestMask(t *testing.T) {
	for _, text := range []string{"", "a", "${A}", "x ${A:-ü b} y", "$${A}", "${A\n}", `"${A:-"x"}"`, "{ a: ${B}, c: ${D:-[]} }"} {
		m := mask(text)
		if got := unmask(m); got != text {
			t.Errorf("unmask(mask(%q)) = %q", text, got)
		}
		if len([]rune(m)) != len([]rune(text)) {
			t.Errorf("mask(%q) has %d characters, want %d", text, len([]rune(m)), len([]rune(text)))
		}
	}
}
