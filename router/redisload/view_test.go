package redisload

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-dev/pacer/router"
)

var errDown = errors.New("down")

func TestView(t *testing.T) {
	one := map[string]report{"b": {Version: 1, Backends: map[string]counts{"gpu": {1, 2, 300, 30}}}}
	two := map[string]report{"b": one["b"], "c": {Version: 1, Backends: map[string]counts{"gpu": {4, 5, 6, 20}, "cpu": {0, 1, 0, 0}}}}
	gpu := router.Load{Waiting: 1, Decoding: 2, PromptTokens: 300, Floor: 30}

	type step struct {
		at     time.Duration
		others map[string]report
		err    error
		want   *router.RemoteLoad // nil: the router goes on with what it has
	}
	lost := func(replicas int) *router.RemoteLoad { return &router.RemoteLoad{Replicas: replicas, Lost: true} }
	shared := func(replicas int, by map[string]router.Load) *router.RemoteLoad {
		return &router.RemoteLoad{Replicas: replicas, ByBackend: by}
	}
	for name, steps := range map[string][]step{
		"no redis at the start: as many as configured": {
			{at: 0, err: errDown, want: lost(4)},
			{at: 200 * time.Millisecond, err: errDown, want: lost(4)},
		},
		"redis tells how many there are": {
			{at: 0, others: nil, want: shared(1, map[string]router.Load{})},
			{at: 200 * time.Millisecond, others: one, want: shared(2, map[string]router.Load{"gpu": gpu})},
			{at: 400 * time.Millisecond, others: two, want: shared(3, map[string]router.Load{
				"gpu": {Waiting: 5, Decoding: 7, PromptTokens: 306, Floor: 30}, "cpu": {Decoding: 1},
			})},
			{at: 600 * time.Millisecond, others: one, want: shared(2, map[string]router.Load{"gpu": gpu})}, // c died
		},
		"a short silence means nothing, a long one is a loss": {
			{at: 0, others: two, want: shared(3, total(two))},
			{at: 500 * time.Millisecond, err: errDown},
			{at: time.Second, err: errDown},
			{at: 1200 * time.Millisecond, err: errDown, want: lost(3)},
			{at: 1400 * time.Millisecond, err: errDown, want: lost(3)},
			{at: 1600 * time.Millisecond, others: two, want: shared(3, total(two))},
		},
		"the first to come back to an emptied redis does not believe that it is alone": {
			{at: 0, others: two, want: shared(3, total(two))},
			{at: 2 * time.Second, err: errDown, want: lost(3)},
			{at: 3 * time.Second, others: nil, want: lost(3)},
			{at: 5 * time.Second, others: one, want: lost(3)},
			{at: 6 * time.Second, others: two, want: shared(3, total(two))},
			{at: 7 * time.Second, others: one, want: shared(2, total(one))},
		},
		"… but not for ever": {
			{at: 0, others: one, want: shared(2, total(one))},
			{at: 2 * time.Second, err: errDown, want: lost(2)},
			{at: 3 * time.Second, others: nil, want: lost(2)},
			{at: 16 * time.Second, others: nil, want: lost(2)},
			{at: 16*time.Second + 1, others: nil, want: shared(1, map[string]router.Load{})},
		},
		"a failure within the grace starts it anew": {
			{at: 0, others: one, want: shared(2, total(one))},
			{at: 2 * time.Second, err: errDown, want: lost(2)},
			{at: 3 * time.Second, others: nil, want: lost(2)},
			{at: 12 * time.Second, err: errDown, want: lost(2)},
			{at: 17 * time.Second, others: nil, want: lost(2)},
			{at: 30*time.Second + 1, others: nil, want: shared(1, map[string]router.Load{})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := view{replicas: 4, expiry: time.Second, grace: returnGrace}
			start := time.Unix(1000, 0)
			for i, s := range steps {
				got, ok := v.see(start.Add(s.at), s.others, s.err)
				if ok != (s.want != nil) {
					t.Fatalf("step %d at %v: told the router = %v, want %v", i, s.at, ok, s.want != nil)
				}
				if ok {
					if diff := cmp.Diff(*s.want, got); diff != "" {
						t.Errorf("step %d at %v (-want +got):\n%s", i, s.at, diff)
					}
				}
			}
		})
	}
}

func TestReportSurvivesTheTrip(t *testing.T) {
	loads := []router.BackendLoad{
		{Backend: `odd "name" {a}/b: ü`, Waiting: 3, Decoding: 17, N: 40, M: 60, PromptTokens: 123456, Floor: 32.5},
		{Backend: "idle"},
		{Backend: "api", Waiting: 2, Decoding: 9, PromptTokens: 70, Floor: 20, Models: []router.ModelLoad{
			{Model: `{"odd"}`, Load: router.Load{Waiting: 2, Decoding: 3, PromptTokens: 70}, N: 30, M: 50},
			{Model: "", Load: router.Load{Decoding: 6, Floor: 20}},
			{Model: "idle"},
		}},
	}
	got := total(map[string]report{"x": read(t, encode(loads))})
	want := map[string]router.Load{
		loads[0].Backend: {Waiting: 3, Decoding: 17, PromptTokens: 123456, Floor: 32.5},
		"api": {Waiting: 2, Decoding: 9, PromptTokens: 70, Floor: 20, Models: map[string]router.Load{
			`{"odd"}`: {Waiting: 2, Decoding: 3, PromptTokens: 70}, "": {Decoding: 6, Floor: 20},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := encode([]router.BackendLoad{{Backend: "b", Decoding: 1, Floor: math.NaN()}}); got != `{"v":1,"b":{"b":[0,1,0,0]}}` {
		t.Errorf("a floor that is no number is written as %s", got)
	}
}

// read is decode of what has to be readable.
func read(t *testing.T, text string) report {
	t.Helper()
	r, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What another version or a stranger wrote is a replica of which nothing is
// known, and never a negative or an endless load.
func TestDecodeBelievesWhatAGatewayCanWrite(t *testing.T) {
	gpu := map[string]router.Load{"gpu": {Waiting: 1}}
	for text, want := range map[string]struct {
		load map[string]router.Load
		odd  bool
	}{
		``:                                       {odd: true},
		`not json`:                               {odd: true},
		`[]`:                                     {odd: true},
		`{"v":2,"b":{"gpu":[1,1,1,1]}}`:          {},
		`{"v":1}`:                                {},
		`{"v":1,"b":{"gpu":[1]}}`:                {load: gpu},
		`{"v":1,"b":{"gpu":[1000000,1e6,0,99]}}`: {load: map[string]router.Load{"gpu": {Waiting: 1e6, Decoding: 1e6, Floor: 99}}},
		`{"v":1,"b":{"gpu":["x"]}}`:              {odd: true},
		`{"v":1,"b":{"gpu":[-5,2,1,0]}}`:         {odd: true},
		`{"v":1,"b":{"gpu":[0,1e300,0,0]}}`:      {odd: true},
		`{"v":1,"b":{"gpu":[0,1e400,0,0]}}`:      {odd: true},
		`{"v":1,"b":{"gpu":[1000001,0,0,0]}}`:    {odd: true},
		`{"v":1,"b":{"gpu":[0,0,1e13,0]}}`:       {odd: true},
		`{"v":1,"b":{"gpu":[0,0,0,1e6]}}`:        {odd: true},
		`{"v":1,"b":{"gpu":[NaN,0,0,0]}}`:        {odd: true},
		`{"v":1,"b":{"gpu":[0,3]},"m":{"gpu":{"a":[-1,1]},"gone":{"b":[1,1]}}}`: {odd: true},
		`{"v":1,"b":{"gpu":[1]},"m":{"gone":{"b":[-1,1]}}}`:                     {load: gpu},
	} {
		r, err := decode(text)
		if (err != nil) != want.odd {
			t.Errorf("%s: %v, want an error: %v", text, err, want.odd)
		}
		if want.load == nil {
			want.load = map[string]router.Load{}
		}
		if diff := cmp.Diff(want.load, total(map[string]report{"x": r})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// Whatever is written, what is believed is within the bounds, and what a
// gateway writes is believed.
func FuzzDecode(f *testing.F) {
	f.Add(`{"v":1,"b":{"gpu":[1,2,300,30]},"m":{"gpu":{"a":[1,1,1,1]}}}`, 3, 4.5)
	f.Add(`{"v":1,"b":{"gpu":[-1,2e9]}}`, -3, math.Inf(1))
	f.Fuzz(func(t *testing.T, text string, count int, floor float64) {
		r, _ := decode(text)
		for name, l := range total(map[string]report{"x": r}) {
			for _, l := range append([]router.Load{l}, slices.Collect(maps.Values(l.Models))...) {
				if l.Waiting < 0 || l.Decoding < 0 || l.PromptTokens < 0 || !(l.Floor >= 0) || l.Waiting > 1e6 || l.Decoding > 1e6 || l.PromptTokens > 1e12 || l.Floor > 1e5 {
					t.Fatalf("%q: %s runs %+v", text, name, l)
				}
			}
		}
		own := encode([]router.BackendLoad{{Backend: text, Waiting: count, Decoding: -count, PromptTokens: count, Floor: floor}})
		if _, err := decode(own); err != nil {
			t.Fatalf("%s: %v", own, err)
		}
	})
}

// The parts of a backend add up like the whole, over all replicas.
func TestModelsAddUp(t *testing.T) {
	one := read(t, encode([]router.BackendLoad{{Backend: "api", Decoding: 5, Models: []router.ModelLoad{
		{Model: "a", Load: router.Load{Decoding: 2, Floor: 20}}, {Model: "b", Load: router.Load{Decoding: 3}},
	}}}))
	other := read(t, encode([]router.BackendLoad{{Backend: "api", Waiting: 1, Decoding: 4, Models: []router.ModelLoad{
		{Model: "a", Load: router.Load{Waiting: 1, Decoding: 4, Floor: 30}},
	}}}))
	together := read(t, encode([]router.BackendLoad{{Backend: "api", Decoding: 7}}))
	want := map[string]router.Load{"api": {Waiting: 1, Decoding: 16, Models: map[string]router.Load{
		"a": {Waiting: 1, Decoding: 6, Floor: 30}, "b": {Decoding: 3},
	}}}
	if diff := cmp.Diff(want, total(map[string]report{"x": one, "y": other, "z": together})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
