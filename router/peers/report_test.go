package peers

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/share"
)

var errDown = errors.New("down")

// What a failed exchange means for the router is the verdict's: nothing yet, or
// that the others are lost.
func TestRemote(t *testing.T) {
	others := map[string]Report{"b": {Version: 1, Backends: map[string]counts{"gpu": {1, 2, 300, 30}}}}
	gpu := map[string]router.Load{"gpu": {Waiting: 1, Decoding: 2, PromptTokens: 300, Floor: 30}}
	for name, c := range map[string]struct {
		state  share.State
		others map[string]Report
		err    error
		want   *router.RemoteLoad
	}{
		"shared":       {share.State{Replicas: 2}, others, nil, &router.RemoteLoad{Replicas: 2, ByBackend: gpu}},
		"alone":        {share.State{Replicas: 3, Alone: true}, others, nil, &router.RemoteLoad{Replicas: 3, Lost: true}},
		"out":          {share.State{Replicas: 3, Alone: true}, nil, errDown, &router.RemoteLoad{Replicas: 3, Lost: true}},
		"a failure":    {share.State{Replicas: 2}, nil, errDown, nil},
		"nobody there": {share.State{Replicas: 1}, nil, nil, &router.RemoteLoad{Replicas: 1, ByBackend: map[string]router.Load{}}},
	} {
		got, ok := Remote(c.state, c.others, c.err)
		if ok != (c.want != nil) {
			t.Fatalf("%s: the router is told something = %v", name, ok)
		}
		if ok {
			if diff := cmp.Diff(*c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestReportSurvivesTheTrip(t *testing.T) {
	told := router.Load{
		Waiting: 3, Decoding: 17, PromptTokens: 123456, Floor: 32.5,
		Leads: router.Leads{Streams: 16, Least: 250 * time.Millisecond},
		Level: router.Level{Tokens: 600, Seconds: 20, AtN: 80, Steps: 150, Time: 9.5},
		Joint: router.Level{Tokens: 30, Seconds: 40, AtN: 160, Steps: 7.5, Time: 9}, Prefills: router.Prefills{Time: 64000, Weight: 2.56e8}, Clearing: 3 * time.Second,
	}
	loads := map[string]router.Load{
		`odd "name" {a}/b: ü`: told,
		"api": {Waiting: 2, Decoding: 9, PromptTokens: 70, Floor: 20, Models: map[string]router.Load{
			`{"odd"}`: told, "": {Decoding: 6, Floor: 20},
		}},
	}
	got := total(map[string]Report{"x": read(t, Encode(time.Time{}, loads, nil))})
	if diff := cmp.Diff(loads, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	odd := map[string]router.Load{"b": {Decoding: 1, Floor: math.NaN(), Leads: router.Leads{Streams: 1, Least: -time.Second}}}
	if got, want := Encode(time.Time{}, odd, nil), `{"v":1,"b":{"b":[0,1,0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},"n":{},"p":{}}`; got != want {
		t.Errorf("a floor that is no number and a lead that is lost are written as %s, want %s", got, want)
	}
}

// Replicas of several versions stand side by side during an upgrade. What an older
// one does not tell is unknown: it takes nothing from what the others tell. An older
// one reads of ours what it knows.
func TestVersionsUnderstandEachOther(t *testing.T) {
	ours := Encode(time.Time{}, map[string]router.Load{"gpu": {
		Waiting: 1, Decoding: 2, PromptTokens: 300, Floor: 30,
		Leads: router.Leads{Streams: 2, Least: time.Second}, Level: router.Level{Tokens: 60, Seconds: 2, AtN: 4, Steps: 30, Time: 2},
	}}, map[router.Target][]byte{{Backend: "gpu", Model: "m"}: []byte("sent")})
	older := `{"v":1,"b":{"gpu":[1,4,500,20]}}`
	newer := `{"v":1,"b":{"gpu":[0,1,0,0,1,3,0,0,0,0,0,0,0,0,0,0,0,0,0,7,8]},"later":{"gpu":[1]}}`
	want := map[string]router.Load{"gpu": {
		Waiting: 2, Decoding: 7, PromptTokens: 800, Floor: 30,
		Leads: router.Leads{Streams: 3, Least: time.Second}, Level: router.Level{Tokens: 60, Seconds: 2, AtN: 4, Steps: 30, Time: 2},
	}}
	got := total(map[string]Report{"a": read(t, older), "b": read(t, ours), "c": read(t, newer)})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	var asBefore struct { // what a report was when it had four numbers
		Version  int                   `json:"v"`
		Backends map[string][4]float64 `json:"b"`
	}
	if err := json.Unmarshal([]byte(ours), &asBefore); err != nil || asBefore.Version != 1 || asBefore.Backends["gpu"] != [4]float64{1, 2, 300, 30} {
		t.Errorf("an older replica reads %+v of %s, %v", asBefore, ours, err)
	}
}

// What came and went of late arrives by the clock of who reads it, whatever that of the
// writer says: by backend, and by model where these are counted by themselves.
func TestMovesSurviveTheTrip(t *testing.T) {
	written, here := time.Unix(1e9, 0), time.Unix(2e9, 0)
	ago := func(ms int, by int) router.Move {
		return router.Move{At: written.Add(-time.Duration(ms) * time.Millisecond), By: by}
	}
	text := Encode(written, map[string]router.Load{
		"gpu": {
			Decoding: 2, Moves: []router.Move{ago(150, 3), ago(20, -1)},
			Prompts: []router.Prompt{{At: ago(100, 0).At, Tokens: 700.9}, {At: ago(90, 0).At, Tokens: 0.4}},
		},
		"api": {Decoding: 9, Moves: []router.Move{ago(5, 1), ago(7, 2)}, Models: map[string]router.Load{
			"a": {Decoding: 4, Moves: []router.Move{ago(5, 1)}}, "b": {Decoding: 5, Moves: []router.Move{ago(7, 2)}},
		}},
	}, nil)
	r := read(t, text)
	r.At = here
	after := func(ms int, by int) router.Move {
		return router.Move{At: here.Add(-time.Duration(ms) * time.Millisecond), By: by}
	}
	got := total(map[string]Report{"x": r})
	if diff := cmp.Diff([]router.Move{after(150, 3), after(20, -1)}, got["gpu"].Moves); diff != "" {
		t.Errorf("one count (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]router.Prompt{{At: after(100, 0).At, Tokens: 700}}, got["gpu"].Prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]router.Move{after(7, 2)}, got["api"].Models["b"].Moves); diff != "" {
		t.Errorf("one of two models (-want +got):\n%s", diff)
	}
	if got := len(got["api"].Moves); got != 2 {
		t.Errorf("%d moves of both models, want 2", got)
	}

	// Until when all have told is until when the first of them has, and nothing where one
	// tells nothing or does not say when.
	older := read(t, `{"v":1,"b":{"gpu":[1,4,500,20]}}`)
	older.At = here
	later, lost := r, r
	later.At, lost.At = here.Add(time.Second), time.Time{}
	for name, c := range map[string]struct {
		reports map[string]Report
		want    time.Time
	}{
		"two": {map[string]Report{"x": r, "y": later}, here}, "an older one": {map[string]Report{"x": r, "y": older}, time.Time{}},
		"one of no time": {map[string]Report{"x": r, "y": lost}, time.Time{}}, "nobody": {nil, time.Time{}},
	} {
		if got := told(c.reports); !got.Equal(c.want) {
			t.Errorf("%s: told until %v, want %v", name, got, c.want)
		}
	}
	hostile := read(t, `{"v":1,"b":{"gpu":[0,1]},"n":{"gpu":{"":[1,-5,1,5,2000000,5,1,70000,1]}},"p":{"gpu":{"":[-7,5]}}}`)
	hostile.At = here
	if got := total(map[string]Report{"x": hostile})["gpu"]; len(got.Moves) != 1 || len(got.Prompts) > 0 {
		t.Errorf("of moves from the future, too large, too old and without a time, and of a prompt below 0, %v and %v are believed", got.Moves, got.Prompts)
	}
}

// read is Decode of what has to be readable.
func read(t *testing.T, text string) Report {
	t.Helper()
	r := must.Get(Decode(text))(t)
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
		``:                                        {odd: true},
		`not json`:                                {odd: true},
		`[]`:                                      {odd: true},
		`{"v":2,"b":{"gpu":[1,1,1,1]}}`:           {},
		`{"v":1}`:                                 {},
		`{"v":1,"b":{"gpu":[1]}}`:                 {load: gpu},
		`{"v":1,"b":{"gpu":[1000000,1e6,0,99]}}`:  {load: map[string]router.Load{"gpu": {Waiting: 1e6, Decoding: 1e6, Floor: 99}}},
		`{"v":1,"b":{"gpu":["x"]}}`:               {odd: true},
		`{"v":1,"b":{"gpu":[-5,2,1,0]}}`:          {odd: true},
		`{"v":1,"b":{"gpu":[0,1e300,0,0]}}`:       {odd: true},
		`{"v":1,"b":{"gpu":[0,1e400,0,0]}}`:       {odd: true},
		`{"v":1,"b":{"gpu":[1000001,0,0,0]}}`:     {odd: true},
		`{"v":1,"b":{"gpu":[0,0,1e13,0]}}`:        {odd: true},
		`{"v":1,"b":{"gpu":[0,0,0,1e6]}}`:         {odd: true},
		`{"v":1,"b":{"gpu":[NaN,0,0,0]}}`:         {odd: true},
		`{"v":1,"b":{"gpu":[0,1,0,0,1,-2]}}`:      {odd: true},
		`{"v":1,"b":{"gpu":[0,1,0,0,0,0,1e300]}}`: {odd: true},
		`{"v":1,"b":{"gpu":[0,3]},"m":{"gpu":{"a":[-1,1]},"gone":{"b":[1,1]}}}`: {odd: true},
		`{"v":1,"b":{"gpu":[1]},"m":{"gone":{"b":[-1,1]}}}`:                     {load: gpu},
	} {
		r, err := Decode(text)
		if (err != nil) != want.odd {
			t.Errorf("%s: %v, want an error: %v", text, err, want.odd)
		}
		if want.load == nil {
			want.load = map[string]router.Load{}
		}
		if diff := cmp.Diff(want.load, total(map[string]Report{"x": r})); diff != "" {
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
		r, _ := Decode(text)
		for name, l := range total(map[string]Report{"x": r}) {
			for _, l := range append([]router.Load{l}, slices.Collect(maps.Values(l.Models))...) {
				if l.Waiting < 0 || l.Decoding < 0 || l.PromptTokens < 0 || !(l.Floor >= 0) || l.Waiting > 1e6 || l.Decoding > 1e6 || l.PromptTokens > 1e12 || l.Floor > 1e5 {
					t.Fatalf("%q: %s runs %+v", text, name, l)
				}
			}
		}
		own := Encode(time.Time{}, map[string]router.Load{text: {
			Waiting: count, Decoding: -count, PromptTokens: count, Floor: floor,
			Leads: router.Leads{Streams: count, Least: time.Duration(count)}, Level: router.Level{Tokens: floor, Time: -floor},
		}}, nil)
		if _, err := Decode(own); err != nil {
			t.Fatalf("%s: %v", own, err)
		}
	})
}

// The parts of a backend add up like the whole, over all replicas.
func TestModelsAddUp(t *testing.T) {
	one := read(t, Encode(time.Time{}, map[string]router.Load{"api": {Decoding: 5, Models: map[string]router.Load{
		"a": {Decoding: 2, Floor: 20}, "b": {Decoding: 3},
	}}}, nil))
	other := read(t, Encode(time.Time{}, map[string]router.Load{"api": {Waiting: 1, Decoding: 4, Models: map[string]router.Load{
		"a": {Waiting: 1, Decoding: 4, Floor: 30},
	}}}, nil))
	together := read(t, Encode(time.Time{}, map[string]router.Load{"api": {Decoding: 7}}, nil))
	want := map[string]router.Load{"api": {Waiting: 1, Decoding: 16, Models: map[string]router.Load{
		"a": {Waiting: 1, Decoding: 6, Floor: 30}, "b": {Decoding: 3},
	}}}
	if diff := cmp.Diff(want, total(map[string]Report{"x": one, "y": other, "z": together})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
