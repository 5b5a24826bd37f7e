package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
)

// Forty reloads, each with ten routes and ten backends of new names, while
// streams run that outlive them. When they are gone /metrics is what it was:
// nothing bears their names, and what a late stream did is counted without.
func TestSeriesLeaveWithTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 10
		reloads := 40
		if racetest.On {
			reloads = 4 // a name that stays shows after one; make numbers does all of them
		}
		base := gpu{name: "a", model: carries64}
		gpus := []gpu{base}
		for k := range many {
			gpus = append(gpus, gpu{name: fmt.Sprintf("e%d", k), model: carries64})
		}
		const chat = "routes:\n  - { model: chat, targets: [ { backend: a, model: m } ], slo: { min_tps: 5 } }\n"
		h := newHouse(t, gpus, chat, options{})
		alone := houseConfig(t, []gpu{base}, chat)
		must.Do(t, h.program.reload(alone))
		stream := func(model string, tokens int) loadgen.Outcome {
			return h.client.Stream(context.Background(), loadgen.Request{Model: model, PromptTokens: 50, MaxTokens: tokens}).Outcome
		}
		if got := stream("chat", 200); got != loadgen.Done {
			t.Fatalf("the first stream: %v", got)
		}
		stream("unknown", 1)
		sleep(time.Minute)
		fresh := h.series()

		var users sync.WaitGroup
		most := 0
		for i := range reloads {
			world := []gpu{base}
			routes := chat
			for k := range many {
				name := fmt.Sprintf("gone-%d-%d", i, k)
				world = append(world, gpu{name: name, host: fmt.Sprintf("e%d", k)})
				routes += fmt.Sprintf("  - { model: %s, targets: [ { backend: %s, model: m } ], slo: { min_tps: 5 } }\n", name, name)
			}
			must.Do(t, h.program.reload(houseConfig(t, world, routes)))
			for k := range many {
				users.Go(func() { // the last of them end long after their names are gone
					if got := stream(fmt.Sprintf("gone-%d-%d", i, k), 20+40*k); got != loadgen.Done {
						t.Errorf("a stream of reload %d: %v", i, got)
					}
				})
				users.Go(func() { stream("chat", 20+10*k) })
			}
			sleep(3 * time.Second)
			most = max(most, len(h.series()))
		}
		if most <= len(fresh)+many {
			t.Fatalf("at most %d series in use, %d before: no load", most, len(fresh))
		}
		must.Do(t, h.program.reload(alone))
		users.Wait()
		sleep(time.Minute)
		after := h.series()
		if !slices.Equal(after, fresh) {
			added := slices.DeleteFunc(slices.Clone(after), func(s string) bool { return slices.Contains(fresh, s) })
			missing := slices.DeleteFunc(slices.Clone(fresh), func(s string) bool { return slices.Contains(after, s) })
			t.Errorf("%d series, %d at the start; %d more, as %.400q; %d less, as %.400q", len(after), len(fresh), len(added), added, len(missing), missing)
		}
	})
}

// series are the names of all series on /metrics, but for the levels of curves:
// how many of these there are follows from the load that a backend had.
func (h *house) series() (names []string) {
	h.t.Helper()
	for line := range strings.Lines(h.page("/metrics")) {
		name, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(name, "pacer_") && (!strings.HasPrefix(name, "pacer_curve_") || !strings.Contains(name, `"a"`)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
