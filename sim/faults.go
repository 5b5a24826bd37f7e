package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// faultState is what is wrong with a Server at the moment. It is immutable
// once published.
type faultState struct {
	Refuse bool    `json:"refuse"`
	Status int     `json:"status"` // 0 = none
	Stall  bool    `json:"stall"`
	Cut    int     `json:"cut"`   // tokens; 0 = none
	Drift  float64 `json:"drift"` // 1 = none

	Garbage   bool `json:"garbage"`
	SlowStart int  `json:"slow-start"` // seconds until it is as fast as usual; 0 = it always is
	cold      bool // a slow start was asked for and has not begun

	Hidden int  `json:"hidden"` // most sequences of a tenant that nobody sees; 0 = none
	Forget bool `json:"-"`      // the prefix cache is to be emptied

	Metrics string `json:"metrics"` // what is wrong with the page of metrics; "" = nothing
}

// fault is one way to be broken. Its value comes as text, from a flag or from
// JSON; empty means that only the kind was given.
type fault struct {
	Named
	set func(f *faultState, value string) error
}

// faults is every fault there is; one line makes a new one known.
var faults = []fault{
	{Named{"cut", "abort the connection of every answer after so many tokens, a stream within the next event (default 1, 0 ends it)"}, func(f *faultState, v string) error { return setInt(&f.Cut, v, 1, 0, math.MaxInt32) }},
	{Named{"drift", "every step takes so many times as long (1 ends it)"}, func(f *faultState, v string) error { return setFactor(&f.Drift, v) }},
	{Named{"forget", "empty the prefix cache, but for what runs, once"}, func(f *faultState, v string) error { return setSwitch(&f.Forget, v) }},
	{Named{"garbage", "answer generations with what is no JSON and, in a stream, has no [DONE] (false ends it)"}, func(f *faultState, v string) error { return setSwitch(&f.Garbage, v) }},
	{Named{"hidden", "a tenant beside the clients, of none to so many sequences that come and go (default 20, 0 ends it)"}, func(f *faultState, v string) error { return setInt(&f.Hidden, v, 20, 0, 10_000) }},
	{Named{"metrics", "the page of metrics is gone, nonsense, slow, or stands still: 404, garbage, slow or stale (default 404, off ends it)"}, setMetrics},
	{Named{"refuse", "reset every new connection (false ends it)"}, func(f *faultState, v string) error { return setSwitch(&f.Refuse, v) }},
	{Named{"slow-start", "every step takes 4 times as long at first, and as long as usual after so many seconds (default 30, 0 ends it)"}, setSlowStart},
	{Named{"stall", "take no step: no token, no slot (false ends it)"}, func(f *faultState, v string) error { return setSwitch(&f.Stall, v) }},
	{Named{"status", "answer generations with this status, 500, 429, 503 … (default 503, 0 ends it)"}, setStatus},
}

// Faults lists what Options.Faults and /sim/set may name, by name.
func Faults() []Named {
	var list []Named
	for _, f := range faults {
		list = append(list, f.Named)
	}
	return list
}

// setFault changes one fault of f.
func setFault(f *faultState, name, value string) error {
	for _, known := range faults {
		if known.Name != name {
			continue
		}
		if err := known.set(f, value); err != nil {
			return fmt.Errorf("sim: fault %s: %w", name, err)
		}
		return nil
	}
	return fmt.Errorf("sim: no fault %q; there are %s", name, known(Faults()))
}

// timedFault is a fault that begins, or ends, some time after Run.
type timedFault struct {
	after       time.Duration
	name, value string
}

// parseFaults reads "kind[:value][@delay]" and sorts by delay.
func parseFaults(specs []string) ([]timedFault, error) {
	var list []timedFault
	for _, spec := range specs {
		var t timedFault
		rest, delay, timed := strings.Cut(spec, "@")
		if timed {
			var err error
			if t.after, err = time.ParseDuration(delay); err != nil || t.after < 0 {
				return nil, fmt.Errorf("sim: fault %q: %q is no delay; write it as 30s", spec, delay)
			}
		}
		t.name, t.value, _ = strings.Cut(rest, ":")
		if err := setFault(&faultState{}, t.name, t.value); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b timedFault) int { return cmp.Compare(a.after, b.after) })
	return list, nil
}

// applyNext applies the first fault of the schedule. The caller holds s.mu, or
// is the only one who knows s.
func (s *Server) applyNext() {
	f := *s.faults.Load()
	if err := setFault(&f, s.schedule[0].name, s.schedule[0].value); err != nil {
		panic(err) // parseFaults tried it
	}
	s.schedule = s.schedule[1:]
	s.publish(f)
}

// publish puts f in force. The caller holds s.mu, or is the only one who knows
// s.
func (s *Server) publish(f faultState) {
	if f.cold {
		s.coldSince, f.cold = time.Time{}, false
	}
	if f.Forget {
		s.engine.Forget()
		f.Forget = false
	}
	if f.Metrics == "stale" && s.faults.Load().Metrics != "stale" {
		s.staleMetrics = s.exported
	}
	s.faults.Store(&f)
	s.nudge()
}

// coldFactor is how many times as long the first step of a slow start takes.
const coldFactor = 4

// slowness is the factor on the steps that begin at now. The caller holds s.mu.
func (s *Server) slowness(now time.Time) float64 {
	f := s.faults.Load()
	if f.SlowStart == 0 {
		return f.Drift
	}
	if s.coldSince.IsZero() {
		s.coldSince = now
	}
	left := 1 - now.Sub(s.coldSince).Seconds()/float64(f.SlowStart)
	return f.Drift * (1 + (coldFactor-1)*max(left, 0))
}

func setSlowStart(f *faultState, value string) error {
	f.cold = true
	return setInt(&f.SlowStart, value, 30, 0, 3600)
}

func setInt(to *int, value string, standard, low, high int) error {
	if value == "" {
		*to = standard
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < low || n > high {
		return fmt.Errorf("%q is no number from %d to %d", value, low, high)
	}
	*to = n
	return nil
}

func setStatus(f *faultState, value string) error {
	if value == "0" {
		f.Status = 0
		return nil
	}
	return setInt(&f.Status, value, 503, 400, 599)
}

func setFactor(to *float64, value string) error {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || !(x >= 0.001 && x <= 1000) {
		return fmt.Errorf("%q is no factor from 0.001 to 1000", value)
	}
	*to = x
	return nil
}

func setSwitch(to *bool, value string) error {
	switch value {
	case "", "true", "on", "1":
		*to = true
	case "false", "off", "0":
		*to = false
	default:
		return fmt.Errorf("%q is neither true nor false", value)
	}
	return nil
}
