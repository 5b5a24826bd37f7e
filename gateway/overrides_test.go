package gateway

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/router"
)

func TestWishesAreReadFromHeaders(t *testing.T) {
	tps := func(v float64) func(overrides) bool {
		return func(w overrides) bool { return w.minTPS != nil && *w.minTPS == v }
	}
	ttft := func(d time.Duration) func(overrides) bool {
		return func(w overrides) bool { return w.maxTTFT != nil && *w.maxTTFT == d }
	}
	class := func(c router.Class) func(overrides) bool {
		return func(w overrides) bool { return w.class != nil && *w.class == c }
	}
	for _, c := range []struct {
		header []string
		want   func(overrides) bool // nil = malformed
	}{
		{nil, func(w overrides) bool { return w == overrides{} }},
		{[]string{"x-pacer-min-tps", "30"}, tps(30)},
		{[]string{"x-pacer-min-tps", " 12.5 "}, tps(12.5)},
		{[]string{"x-pacer-min-tps", "0"}, tps(0)},
		{[]string{"x-llm-d-slo-tpot-ms", "50"}, tps(20)},
		{[]string{"x-slo-tpot-ms", "100"}, tps(10)},
		{[]string{"x-slo-tpot-ms", "100", "x-pacer-min-tps", "40"}, tps(40)},
		{[]string{"x-pacer-max-ttft-ms", "1500"}, ttft(1500 * time.Millisecond)},
		{[]string{"x-llm-d-slo-ttft-ms", "200"}, ttft(200 * time.Millisecond)},
		{[]string{"x-slo-ttft-ms", "0.5"}, ttft(500 * time.Microsecond)},
		{[]string{"x-pacer-class", "batch"}, class(router.Batch)},
		{[]string{"x-pacer-class", "interactive"}, class(router.Interactive)},

		{[]string{"x-pacer-min-tps", ""}, nil},
		{[]string{"x-pacer-min-tps", "fast"}, nil},
		{[]string{"x-pacer-min-tps", "-1"}, nil},
		{[]string{"x-pacer-min-tps", "-0"}, nil},
		{[]string{"x-pacer-min-tps", "NaN"}, nil},
		{[]string{"x-pacer-min-tps", "Inf"}, nil},
		{[]string{"x-pacer-min-tps", "1e9"}, nil},
		{[]string{"x-pacer-min-tps", "1e999"}, nil},
		{[]string{"x-pacer-min-tps", "1_0"}, nil},
		{[]string{"x-pacer-min-tps", "0x1p4"}, nil},
		{[]string{"x-pacer-min-tps", "1e-300"}, nil},
		{[]string{"x-slo-tpot-ms", "1e308"}, nil},
		{[]string{"x-pacer-max-ttft-ms", "1e-7"}, nil}, // would round to "no limit"
		{[]string{"x-pacer-min-tps", "3", "x-pacer-min-tps", "4"}, nil},
		{[]string{"x-pacer-min-tps", "40", "x-slo-tpot-ms", "soon"}, nil},
		{[]string{"x-slo-tpot-ms", "0"}, nil},
		{[]string{"x-pacer-max-ttft-ms", "0"}, nil},
		{[]string{"x-pacer-max-ttft-ms", "2s"}, nil},
		{[]string{"x-pacer-max-ttft-ms", "1e12"}, nil},
		{[]string{"x-pacer-class", "Batch"}, nil},
		{[]string{"x-pacer-class", ""}, nil},
	} {
		h := http.Header{}
		for i := 0; i < len(c.header); i += 2 {
			h.Add(c.header[i], c.header[i+1])
		}
		w, err := parseOverrides(h)
		var bad *headerError
		switch {
		case c.want == nil && !errors.As(err, &bad):
			t.Errorf("%q: got error %v, want it refused as malformed", c.header, err)
		case c.want != nil && err != nil:
			t.Errorf("%q: got error %v", c.header, err)
		case c.want != nil && !c.want(w):
			t.Errorf("%q: got the wrong override", c.header)
		}
	}
}

func TestAKeyAllowsLooserAlwaysAndStricterAsFarAsItSays(t *testing.T) {
	promises := config.SLO{MinTPS: 30, MaxTTFT: 2 * time.Second}
	wide := config.Allow{Classes: []string{"interactive"}, MinTPSMax: 60, MaxTTFTMin: 500 * time.Millisecond}
	for _, c := range []struct {
		name          string
		allow         config.Allow
		class         string // of the route
		slo           config.SLO
		header, value string
		want          bool
	}{
		{"lower floor", config.Allow{}, "interactive", promises, "x-pacer-min-tps", "10", true},
		{"no floor", config.Allow{}, "interactive", promises, "x-pacer-min-tps", "0", true},
		{"the same floor", config.Allow{}, "interactive", promises, "x-pacer-min-tps", "30", true},
		{"higher floor", config.Allow{}, "interactive", promises, "x-pacer-min-tps", "31", false},
		{"higher floor, allowed", wide, "interactive", promises, "x-pacer-min-tps", "60", true},
		{"higher floor, beyond", wide, "interactive", promises, "x-pacer-min-tps", "61", false},
		{"any floor where the route has none", config.Allow{}, "interactive", config.SLO{}, "x-pacer-min-tps", "1", false},
		{"more patience", config.Allow{}, "interactive", promises, "x-pacer-max-ttft-ms", "3000", true},
		{"less patience", config.Allow{}, "interactive", promises, "x-pacer-max-ttft-ms", "1999", false},
		{"less patience, allowed", wide, "interactive", promises, "x-pacer-max-ttft-ms", "500", true},
		{"less patience, beyond", wide, "interactive", promises, "x-pacer-max-ttft-ms", "499", false},
		{"any patience where the route has none", config.Allow{}, "interactive", config.SLO{}, "x-pacer-max-ttft-ms", "60000", false},
		{"to batch", config.Allow{}, "interactive", promises, "x-pacer-class", "batch", true},
		{"to interactive", config.Allow{}, "batch", config.SLO{}, "x-pacer-class", "interactive", false},
		{"to interactive, allowed", wide, "batch", config.SLO{}, "x-pacer-class", "interactive", true},
		{"to what it is", config.Allow{}, "interactive", promises, "x-pacer-class", "interactive", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := must.Get(parseOverrides(http.Header{http.CanonicalHeaderKey(c.header): {c.value}}))(t)
			r := &route{conf: &config.Route{Class: c.class, SLO: c.slo}}
			if c.class == "batch" {
				r.class = router.Batch
			}
			err := (&tenant{conf: &config.Key{Allow: c.allow}}).grants(r, w)
			var denied *permissionError
			if got := !errors.As(err, &denied); got != c.want {
				t.Errorf("allowed: %v (%v), want %v", got, err, c.want)
			}
			if err := anyone.grants(r, w); err != nil {
				t.Errorf("an open gateway refused: %v", err)
			}
		})
	}
}

func TestAFloorForBatchIsRefusedByTheHeaderItCameBy(t *testing.T) {
	for _, name := range []string{"x-pacer-min-tps", "x-slo-tpot-ms", "x-llm-d-slo-tpot-ms"} {
		h := http.Header{}
		h.Set(name, "20")
		h.Set("x-pacer-class", "batch")
		_, err := parseOverrides(h)
		var bad *headerError
		if !errors.As(err, &bad) || bad.header != name {
			t.Errorf("%s with batch: got %v, want an error about %s", name, err, name)
		}
	}
}

// What is refused is called as the client wrote it.
func TestARefusedWishIsCalledByItsHeader(t *testing.T) {
	rt := &route{conf: &config.Route{SLO: config.SLO{MinTPS: 10, MaxTTFT: time.Second}}}
	for name, value := range map[string]string{
		"x-pacer-min-tps": "50", "x-slo-tpot-ms": "20", "x-llm-d-slo-tpot-ms": "20",
		"x-pacer-max-ttft-ms": "500", "x-slo-ttft-ms": "500", "x-llm-d-slo-ttft-ms": "500",
	} {
		h := http.Header{}
		h.Set(name, value)
		w, err := parseOverrides(h)
		if err == nil {
			err = (&tenant{conf: &config.Key{}}).grants(rt, w)
		}
		var refused *permissionError
		if !errors.As(err, &refused) || refused.header != name {
			t.Errorf("%s: %v, want it refused by this name", name, err)
		}
	}
}
