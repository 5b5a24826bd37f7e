package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/demo"
	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
)

// runVirtualDemo runs a demo in virtual time and returns its report and what
// it printed.
func runVirtualDemo(t *testing.T, o demo.Options) (r demo.Report, printed string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		o.Dial, o.Listen = network.Dial, network.Listen
		o.Admin = "127.0.0.1:0"
		o.JSONFile = filepath.Join(t.TempDir(), "report.json")
		var out bytes.Buffer
		must.Do(t, runDemo(t.Context(), o, &out))
		printed = out.String()
		b := must.Get(os.ReadFile(o.JSONFile))(t)
		must.Do(t, json.Unmarshal(b, &r))
	})
	t.Log(printed)
	return r, printed
}

// Through ramp, spike and kill, those who are admitted keep their floor; with
// round-robin the same load breaks it.
func TestTheDemoKeepsItsFloor(t *testing.T) {
	if racetest.On {
		t.Skip("two minutes of a load of hundreds, twice: make numbers runs it")
	}
	const length, least = 2 * time.Minute, 1000
	ours, printed := runVirtualDemo(t, demo.Options{Duration: length, Policy: "pacer", Seed: 1})
	chat := ours.Routes[0]
	if judged := chat.Met + chat.Missed; judged < least || float64(chat.Met) < 0.99*float64(judged) {
		t.Errorf("%d of %d streams that their backend outlived kept the floor, want 99 %% of at least %d", chat.Met, judged, least)
	}
	if kept := ofAdmitted(chat); kept < 0.99 {
		t.Errorf("%.2f %% of all admitted kept the floor, those that died with their backend included; want 99 %%", 100*kept)
	}
	if chat.Offered != chat.Met+chat.Missed+chat.Unmeasured+chat.Shed+chat.Failed {
		t.Errorf("the columns of %+v do not add up", chat)
	}
	for _, b := range ours.Backends {
		if len(b.Levels) == 0 || b.MedianError > 0.05 {
			t.Errorf("%s: learned curve off by %.1f %% over %d levels, want ≤ 5 %% (median)", b.Backend, 100*b.MedianError, len(b.Levels))
		}
	}
	for _, want := range []string{"first learned point", "killed deepseek-r1-h200", "deepseek-r1-h200 is back", "watch it live: http://", "kept: met of"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the demo did not say %q", want)
		}
	}
	if at := firstLearned(t, printed); at > 15*time.Second {
		t.Errorf("first learned point after %v, want it within 15 s", at)
	}

	control, _ := runVirtualDemo(t, demo.Options{Duration: length, Policy: "round-robin", Seed: 1})
	if kept := ofAdmitted(control.Routes[0]); kept > 0.8 {
		t.Errorf("round-robin kept the floor of %.1f %% of the admitted: this load shows nothing", 100*kept)
	}
	if strings.Contains(printed, "too busy") {
		t.Error("the demo says that virtual time is too busy")
	}
}

// ofAdmitted is the share of the admitted that kept the floor; the report's kept
// is of the offered.
func ofAdmitted(r demo.RouteReport) float64 {
	return float64(r.Met) / float64(r.Met+r.Missed+r.Failed)
}

// firstLearned is when the demo said that it had learned a first point.
func firstLearned(t *testing.T, printed string) time.Duration {
	t.Helper()
	for line := range strings.Lines(printed) {
		if at, _, ok := strings.Cut(line, "first learned point"); ok {
			d := must.Get(time.ParseDuration(strings.TrimSpace(at)))(t)
			return d
		}
	}
	t.Fatal("no first learned point")
	return 0
}

// The first minute of a real trace: every request arrives as recorded.
func TestTheDemoReplaysATrace(t *testing.T) {
	r, _ := runVirtualDemo(t, demo.Options{
		Duration: 60 * time.Second, Policy: "pacer", Seed: 1,
		Replay: filepath.Join("..", "..", "examples", "traces", "azure-conv-2023.csv"),
	})
	if chat := r.Routes[0]; chat.Offered < 50 || chat.Met == 0 || chat.Failed != 0 {
		t.Errorf("got %+v, want the trace's requests, none failed", chat)
	}
}
