package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// parse reads a configuration.
func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg := must.Get(config.Parse("test.yaml", []byte(text), func(string) (string, bool) { return "", false }))(t)
	return cfg
}

// engines is a configuration with a backend of each name, and a route on all of
// them. more are further fields of the first.
func engines(t *testing.T, more string, names ...string) *config.Config {
	t.Helper()
	var backends, targets []string
	for _, name := range names {
		backends = append(backends, fmt.Sprintf("{ name: %s, url: \"http://%s.test/v1\", kind: vllm%s }", name, name, more))
		targets = append(targets, fmt.Sprintf("{ backend: %s, model: m }", name))
		more = ""
	}
	return parse(t, "backends: [ "+strings.Join(backends, ", ")+" ]\nroutes: [ { model: chat, targets: [ "+strings.Join(targets, ", ")+" ] } ]\n")
}

// newFleet returns a fleet on a network where nobody is, and what its log says.
func newFleet(t *testing.T) (*Fleet, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	f := New(Options{
		Router: router.New(router.Options{Rand: func() float64 { return 0.5 }}), Book: profiles.NewBook(profiles.Options{}),
		Log:     slog.New(slog.NewTextHandler(&said, nil)),
		Install: func(_ Service, tellRouter func()) error { tellRouter(); return nil },
		Deliver: func([]router.Grant) {},
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("nobody is there")
		},
	})
	t.Cleanup(f.Close)
	return f, &said
}

func apply(t *testing.T, f *Fleet, cfg *config.Config) {
	t.Helper()
	must.Get(f.Apply(cfg, "test"))(t)
}

// health is what the router thinks of the backends.
func health(f *Fleet) string {
	var out []string
	for _, l := range f.o.Router.Loads() {
		out = append(out, l.Backend+" "+l.Health.String())
	}
	return strings.Join(out, ", ")
}

// The first configuration comes into force as every later one does, and one that
// the data port refuses changes nothing.
func TestApplyIsStartAndReload(t *testing.T) {
	f, said := newFleet(t)
	if f.Config() != nil {
		t.Error("there is a configuration before the first")
	}
	first := engines(t, "", "a", "b")
	apply(t, f, first)
	if got := health(f); got != "a up, b up" || f.Config() != first || said.Len() > 0 {
		t.Errorf("after the first: %q, and the log has %q", got, said)
	}
	f.o.Install = func(Service, func()) error { return errors.New("no") }
	before, known := f.Backends(), f.o.Book.Targets()
	if _, err := f.Apply(engines(t, ", api_key: other, prior: { 1: 50 }", "a", "d"), "refused"); err == nil {
		t.Error("a configuration that the data port refuses is in force")
	}
	if got := f.o.Book.Targets(); !slices.Equal(got, known) || f.o.Book.Curve(known[0]).Known() {
		t.Errorf("after a refusal the book has the targets %v, want %v without a prior", got, known)
	}
	if got := health(f); got != "a up, b up" || f.Config() != first || !maps.Equal(before, f.Backends()) {
		t.Errorf("after a refusal: %q", got)
	}
	f.o.Install = func(_ Service, tellRouter func()) error { tellRouter(); return nil }
	apply(t, f, engines(t, ", api_key: other", "a", "c"))
	after := f.Backends()
	if got := health(f); got != "a up, c up" || after["a"] == before["a"] || len(after) != 2 {
		t.Errorf("after another: %q, %d backends", got, len(after))
	}
	if s := said.String(); strings.Count(s, "msg=test") != 1 || !strings.Contains(s, "backends_added=c backends_removed=b backends_changed=a") {
		t.Errorf("the log has %s", s)
	}
}

// A reload keeps what cannot change while the program runs, and says so.
func TestWhatTakesARestart(t *testing.T) {
	old := engines(t, "", "a")
	next := *engines(t, "", "a")
	next.Limits.Streams = 7
	next.Listen, next.TLS.Cert = "127.0.0.1:1", "x.pem"
	got, fields := withRunning(old, &next)
	if s := strings.Join(fields, " "); s != "listen tls" {
		t.Errorf("%q take a restart, want listen and tls", s)
	}
	if got.Listen != old.Listen || got.TLS != old.TLS || got.Limits.Streams != 7 {
		t.Errorf("listen %s, tls %v, streams %d: want the old ones, and 7", got.Listen, got.TLS, got.Limits.Streams)
	}
}

// A reload that is still under way when the program ends starts nothing, and
// the one who waits for what runs is not disturbed.
func TestALateReloadStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newFleet(t)
		apply(t, f, engines(t, "", "a"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Run(ctx) }()
		time.Sleep(time.Second) // of the bubble
		if !loops(f, "a") {
			t.Error("no loop was started")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		apply(t, f, engines(t, ", api_key: other", "a"))
		if loops(f, "a") {
			t.Error("loops were started after the end")
		}
	})
}

// loops says whether the loops of a member were started.
func loops(f *Fleet, name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[name].stop != nil
}

// What a backend was replaced by is not spoken of in its name: its streams that
// break off later say nothing about the one in service.
func TestWhatIsReplacedIsSilent(t *testing.T) {
	f, said := newFleet(t)
	apply(t, f, engines(t, "", "a"))
	old := f.members["a"]
	apply(t, f, engines(t, ", api_key: other", "a"))
	said.Reset()
	old.hearBreaker(providers.Open)
	old.hearProber(providers.Failing, errors.New("refused"))
	if got := health(f); said.Len() > 0 || got != "a up" {
		t.Errorf("%q, and the log has %q", got, said.String())
	}
	f.members["a"].hearBreaker(providers.Open)
	if got := health(f); said.Len() == 0 || got != "a down" {
		t.Errorf("of the one in service: %q, and the log has %q", got, said.String())
	}
}

// Why a health page fails is told, since when, in one short line, and not with
// the keys that the server may repeat.
func TestWhyAPageFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, said := newFleet(t)
		apply(t, f, engines(t, ", api_key: s3cret, headers: { x-team: t0ken }", "a", "b"))
		m := f.members["a"]
		if got := f.Failing(); len(got) > 0 {
			t.Errorf("before anything was seen: %v", got)
		}
		began := time.Now()
		m.hearProber(providers.Failing, errors.New("no Bearer s3cret\nnor t0ken: "+strings.Repeat("ü", 200)))
		<-time.After(time.Minute)
		m.hearProber(providers.Loading, errors.New("it is loading its model"))
		want := map[string]Failure{"a": {"it is loading its model", began}}
		if got := f.Failing(); !maps.Equal(got, want) {
			t.Errorf("failing is %v, want %v: since it was well last", got, want)
		}
		m.hearProber(providers.Failing, errors.New("no Bearer s3cret\nnor t0ken: "+strings.Repeat("ü", 200)))
		got := f.Failing()["a"].Message
		if !strings.HasPrefix(got, "no Bearer *** nor ***: üü") || len(got) > maxFailureText || !utf8.ValidString(got) {
			t.Errorf("the reason is %q, want one line of at most %d bytes without keys", got, maxFailureText)
		}
		if strings.Contains(said.String(), "s3cret") || strings.Contains(said.String(), "t0ken") {
			t.Errorf("a key is in the log: %s", said)
		}
		m.hearProber(providers.Sound, nil)
		if got := f.Failing(); len(got) > 0 {
			t.Errorf("it is well again, and failing is %v", got)
		}
	})
}

// What the breaker, the health page and an operator say is one word: the
// operator's first, then the page's, then the breaker's.
func TestHealthIsOneWord(t *testing.T) {
	f, _ := newFleet(t)
	apply(t, f, engines(t, "", "a"))
	m := f.members["a"]
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"the breaker is half open", func() { m.hearBreaker(providers.HalfOpen) }, "probing"},
		{"and the page fails", func() { m.hearProber(providers.Failing, errors.New("500")) }, "down"},
		{"and says loading", func() { m.hearProber(providers.Loading, nil) }, "loading"},
		{"and it is drained", func() { f.Drain("a", true) }, "draining"},
		{"and the page is sound", func() { m.hearProber(providers.Sound, nil) }, "draining"},
		{"and it is resumed", func() { f.Drain("a", false) }, "probing"},
		{"and the breaker is closed", func() { m.hearBreaker(providers.Closed) }, "up"},
	} {
		step.do()
		if got := f.o.Router.Loads()[0].Health.String(); got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
}

// While a backend hangs its pages may begin to answer: who asks it then is told to the router,
// and the log says once that it hangs.
func TestPagesThatAnswerInAHangAreHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, said := newFleet(t)
		apply(t, f, engines(t, "", "a"))
		m := f.members["a"]
		p := m.backend.Pulse()
		p.Owe(time.Now())
		<-time.After(time.Minute)
		for i, stands := range []bool{true, false, true} {
			p.Stand(time.Now(), stands, false)
			if !m.hung || m.stands != stands {
				t.Errorf("%d: it hangs %v and its pages answer %v, want true and %v", i, m.hung, m.stands, stands)
			}
		}
		p.Hear(time.Now())
		if s := said.String(); m.hung || m.stands || strings.Count(s, "shows no life") != 1 || strings.Count(s, "shows life again") != 1 {
			t.Errorf("after a byte it hangs: %v; the log has %s", m.hung, s)
		}
		p.Settle()
	})
}

// A drained backend with another engine does not take a request before anybody
// is told of it.
func TestADrainHoldsForAnotherEngine(t *testing.T) {
	f, _ := newFleet(t)
	apply(t, f, engines(t, "", "a", "b"))
	if !f.Drain("a", true) {
		t.Fatal("there is no a")
	}
	swapped := engines(t, "", "a", "b")
	swapped.Backends[0].URL = "http://c.test/v1"
	x := must.Get(f.draft(swapped))(t)
	f.o.Router.Update(time.Now(), router.Configure{Topology: x.service.Topology})
	if got := health(f); got != "a draining, b up" {
		t.Errorf("%s before anybody is told of the new engine of a", got)
	}
}

// What the configuration accepts as a kind can be built.
func TestEveryKindIsBuilt(t *testing.T) {
	for kind, url := range map[string]string{
		"openai": "https://api.openai.com/v1", "vllm": "http://h/v1", "sglang": "http://h/v1", "llamacpp": "http://h/v1",
		"tgi": "http://h/v1", "ollama": "http://h/v1", "anthropic": "https://api.anthropic.com/v1",
		"azure": "https://r.openai.azure.com/openai?api-version=2024-10-21",
	} {
		f, _ := newFleet(t)
		apply(t, f, parse(t, fmt.Sprintf("backends: [ { name: a, kind: %s, url: %q, api_key: k } ]\nroutes: [ { model: m, targets: [ { backend: a } ] } ]\n", kind, url)))
		if !f.Backends()["a"].Serves("/messages") {
			t.Errorf("%s does not serve Messages", kind)
		}
	}
}

// That a pool is larger than what is used of it is said, once.
func TestTooManyEnginesAreSaid(t *testing.T) {
	cfg := parse(t, "backends: [ { name: pool, url: \"http://pool/v1\", discover: dns } ]\nroutes: [ { model: m, targets: [ { backend: pool } ] } ]\n")
	var addresses []string
	for i := range config.MaxDiscovered + 1 {
		addresses = append(addresses, fmt.Sprintf("10.0.%d.%d:80", i/256, i%256))
	}
	var said bytes.Buffer
	pool := &Discovery{Log: slog.New(slog.NewTextHandler(&said, nil)), Look: func(context.Context, providers.Source) ([]string, error) { return addresses, nil }}
	for range 3 {
		if n := len(pool.Of(t.Context(), cfg).Backends); n != config.MaxDiscovered {
			t.Errorf("%d are used", n)
		}
	}
	if n := strings.Count(said.String(), fmt.Sprintf("found=%d used=%d", config.MaxDiscovered+1, config.MaxDiscovered)); n != 1 {
		t.Errorf("said %d times: %q", n, said.String())
	}
}

// What is found at one place does not count at another, and what is configured
// no more is forgotten.
func TestDiscoveryForgetsWhatIsNotConfigured(t *testing.T) {
	at := func(host string) *config.Config {
		return parse(t, "backends: [ { name: pool, url: \"http://"+host+"/v1\", discover: dns } ]\nroutes: [ { model: m, targets: [ { backend: pool } ] } ]\n")
	}
	pool := &Discovery{Log: slog.New(slog.DiscardHandler), Look: func(_ context.Context, s providers.Source) ([]string, error) {
		if s.URL == "http://one/v1" {
			return []string{"10.0.0.1:80"}, nil
		}
		return nil, errors.New("no resolver")
	}}
	for host, want := range map[string]int{"one": 1, "two": 0} {
		if n := len(pool.Of(t.Context(), at(host)).Backends); n != want {
			t.Errorf("at %s: %d engines, want %d", host, n, want)
		}
	}
	pool.Keep(at("one"))
	if len(pool.known) != 1 || len(pool.ill) != 0 {
		t.Errorf("%d places are known and %d cannot be looked up, want the one that is configured", len(pool.known), len(pool.ill))
	}
	pool.Keep(at("two"))
	if len(pool.known) != 0 {
		t.Errorf("%d places are known that nobody asks for", len(pool.known))
	}
}
