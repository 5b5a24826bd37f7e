package peers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/share"
)

// Report is what one replica says of itself. Its JSON is the stored form:
// {"v":1,"b":{"h200-a":[…]}}, and where models are counted by themselves, the part
// of each: "m":{"api":{"gpt-4o":[…]}}; "w":{"h200-a":{"model":"…"}} says in base64 which prompts were sent there. Numbers are added at the end of a list: one
// that is missing is of a replica that does not tell it, and those beyond what is
// known here are left out.
type Report struct {
	Version  int                          `json:"v"`
	Backends map[string]counts            `json:"b"`
	Models   map[string]map[string]counts `json:"m,omitempty"`

	// Moves are how many more decoded, or fewer, and for how many milliseconds, in pairs,
	// by backend and model; "" is what is not counted by model. nil = of a replica that
	// does not tell it.
	Moves map[string]map[string][]int `json:"n"`

	// Prompts are how many tokens were prefilled, and so many milliseconds ago, likewise.
	Prompts map[string]map[string][]int `json:"p"`

	// At is when it was written, by the clock of who reads it; zero = not known.
	At time.Time `json:"-"`

	// Sent is which prompts went to which backend and model of late, as prefix.Index tells it.
	Sent map[string]map[string][]byte `json:"w,omitempty"`
}

// counts are the numbers of a router.Load, in this order.
type counts [19]float64

const (
	waiting = iota
	decoding
	promptTokens
	floor
	leads     // streams
	leastLead // seconds
	levelTokens
	levelSeconds
	levelAtN
	levelSteps
	levelTime
	jointTokens // the same where several targets are counted together: see router.Load
	jointSeconds
	jointAtN
	jointSteps
	jointTime
	prefillTime   // seconds times tokens
	prefillWeight // tokens²
	clearing
)

// most bounds each count of one replica: more was written by no gateway. A
// backend that is believed to run that much gets nothing.
var most = counts{
	waiting: 1e6, decoding: 1e6, promptTokens: 1e12, floor: 1e5, leads: 1e6, leastLead: 3600,
	levelTokens: 1e9, levelSeconds: 1e8, levelAtN: 1e14, levelSteps: 1e9, levelTime: 3600,
	jointTokens: 1e9, jointSeconds: 1e8, jointAtN: 1e14, jointSteps: 1e9, jointTime: 3600,
	prefillTime: 1e15, prefillWeight: 1e15, clearing: 3600,
}

func countsOf(l router.Load) counts {
	c := counts{
		waiting: float64(l.Waiting), decoding: float64(l.Decoding), promptTokens: float64(l.PromptTokens), floor: l.Floor,
		leads: float64(l.Leads.Streams), leastLead: l.Leads.Least.Seconds(),
		levelTokens: l.Level.Tokens, levelSeconds: l.Level.Seconds, levelAtN: l.Level.AtN, levelSteps: l.Level.Steps, levelTime: l.Level.Time,
		jointTokens: l.Joint.Tokens, jointSeconds: l.Joint.Seconds, jointAtN: l.Joint.AtN, jointSteps: l.Joint.Steps, jointTime: l.Joint.Time,
		prefillTime: l.Prefills.Time, prefillWeight: l.Prefills.Weight, clearing: l.Clearing.Seconds(),
	}
	for i, v := range c {
		if !(v >= 0) { // false for NaN
			c[i] = 0
		}
		c[i] = min(c[i], most[i])
	}
	return c
}

// possible reports whether a gateway can have written c.
func (c counts) possible() bool {
	for i, v := range c {
		if !(v >= 0 && v <= most[i]) {
			return false
		}
	}
	return true
}

func (c counts) load() router.Load {
	return router.Load{
		Waiting: int(c[waiting]), Decoding: int(c[decoding]), PromptTokens: int(c[promptTokens]), Floor: c[floor],
		Leads:    router.Leads{Streams: int(c[leads]), Least: time.Duration(c[leastLead] * float64(time.Second))},
		Level:    router.Level{Tokens: c[levelTokens], Seconds: c[levelSeconds], AtN: c[levelAtN], Steps: c[levelSteps], Time: c[levelTime]},
		Joint:    router.Level{Tokens: c[jointTokens], Seconds: c[jointSeconds], AtN: c[jointAtN], Steps: c[jointSteps], Time: c[jointTime]},
		Prefills: router.Prefills{Time: c[prefillTime], Weight: c[prefillWeight]}, Clearing: time.Duration(c[clearing] * float64(time.Second)),
	}
}

const reportVersion = 1

// Of is what a replica says at now that runs loads, and of late sent these prompts.
func Of(now time.Time, loads map[string]router.Load, sent map[router.Target][]byte) Report {
	r := Report{Version: reportVersion, Backends: map[string]counts{}, Moves: map[string]map[string][]int{}, Prompts: map[string]map[string][]int{}, At: now}
	for backend, l := range loads {
		r.Backends[backend] = countsOf(l)
		for model, part := range l.Models {
			r.addModel(backend, model, countsOf(part))
			r.addRecent(now, backend, model, part)
		}
		if l.Models == nil {
			r.addRecent(now, backend, "", l)
		}
	}
	for t, text := range sent {
		if r.Sent == nil {
			r.Sent = map[string]map[string][]byte{}
		}
		if r.Sent[t.Backend] == nil {
			r.Sent[t.Backend] = map[string][]byte{}
		}
		r.Sent[t.Backend][t.Model] = text
	}
	return r
}

// Encode writes Of in the stored form.
func Encode(now time.Time, loads map[string]router.Load, sent map[router.Target][]byte) string {
	text, err := json.Marshal(Of(now, loads, sent))
	if err != nil {
		panic(err) // a map of finite numbers always has a JSON form
	}
	return string(text)
}

func (r *Report) addModel(backend, model string, c counts) {
	if r.Models == nil {
		r.Models = map[string]map[string]counts{}
	}
	if r.Models[backend] == nil {
		r.Models[backend] = map[string]counts{}
	}
	r.Models[backend][model] = c
}

// mostRecent bounds what is read of one replica's moves, and of its prompts, in one group.
const mostRecent = 64

// addRecent adds the moves and prompts of l.
func (r *Report) addRecent(now time.Time, backend, model string, l router.Load) {
	for _, m := range l.Moves {
		add(r.Moves, backend, model, m.By, now.Sub(m.At))
	}
	for _, p := range l.Prompts {
		add(r.Prompts, backend, model, int(min(max(p.Tokens, 0), most[promptTokens])), now.Sub(p.At))
	}
}

func add(to map[string]map[string][]int, backend, model string, number int, ago time.Duration) {
	if to[backend] == nil {
		to[backend] = map[string][]int{}
	}
	to[backend][model] = append(to[backend][model], number, int(ago.Milliseconds()))
}

// addRecentTo adds to l what r says of moves and prompts in the groups of backend.
func (r *Report) addRecentTo(l *router.Load, backend string, of func(model string) bool) {
	each := func(list []int, take func(number int, at time.Time)) {
		for i := 0; i+1 < min(len(list), 2*mostRecent); i += 2 {
			if number, ago := list[i], list[i+1]; ago >= 0 && ago <= mostAgo {
				take(number, r.At.Add(-time.Duration(ago)*time.Millisecond))
			}
		}
	}
	if r.At.IsZero() {
		return
	}
	for model, list := range r.Moves[backend] {
		if of(model) {
			each(list, func(by int, at time.Time) {
				if float64(max(by, -by)) <= most[decoding] {
					l.Moves = append(l.Moves, router.Move{At: at, By: by})
				}
			})
		}
	}
	for model, list := range r.Prompts[backend] {
		if of(model) {
			each(list, func(tokens int, at time.Time) {
				if tokens > 0 && float64(tokens) <= most[promptTokens] {
					l.Prompts = append(l.Prompts, router.Prompt{At: at, Tokens: float64(tokens)})
				}
			})
		}
	}
}

// mostAgo is how old what is told may be, in milliseconds.
const mostAgo = 60_000

// Decode reads a report. One of another version is a replica that is alive and
// of which no more is known, and so is one that no gateway can have written,
// which is an error.
func Decode(text string) (Report, error) {
	var r Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Report{}, fmt.Errorf("peers: a report that cannot be read: %w", err)
	}
	if r.Version != reportVersion {
		return Report{}, nil
	}
	for name, c := range r.Backends {
		if !c.possible() {
			return Report{}, fmt.Errorf("peers: backend %q with %v", name, c)
		}
		for model, c := range r.Models[name] {
			if !c.possible() {
				return Report{}, fmt.Errorf("peers: backend %q, model %q with %v", name, model, c)
			}
		}
	}
	return r, nil
}

// EachSent calls take with what was sent to each target.
func (r *Report) EachSent(take func(t router.Target, text []byte)) {
	for backend, models := range r.Sent {
		for model, text := range models {
			take(router.Target{Backend: backend, Model: model}, text)
		}
	}
}

// Remote is what the router is to be told after an exchange that brought the
// reports of the others, by replica, or failed with err, and after which the
// verdict is state; false when the router should go on with what it has.
func Remote(state share.State, others map[string]Report, err error) (router.RemoteLoad, bool) {
	return Told(state, func() (map[string]router.Load, time.Time) { return total(others), told(others) }, err)
}

// told is until when all have told their moves and prompts.
func told(reports map[string]Report) (until time.Time) {
	for _, r := range reports {
		if r.Moves == nil || r.Prompts == nil || r.At.IsZero() {
			return time.Time{}
		}
		if until.IsZero() || r.At.Before(until) {
			until = r.At
		}
	}
	return until
}

// Told is Remote for who has the total of the others already, and until when all of them
// have told.
func Told(state share.State, total func() (map[string]router.Load, time.Time), err error) (router.RemoteLoad, bool) {
	switch {
	case state.Alone:
		return router.RemoteLoad{Replicas: state.Replicas, Lost: true}, true
	case err != nil: // what was read last still holds
		return router.RemoteLoad{}, false
	}
	loads, until := total()
	return router.RemoteLoad{ByBackend: loads, Replicas: state.Replicas, Told: until}, true
}

// total adds up the reports by backend, in the order of the replicas' names.
func total(reports map[string]Report) map[string]router.Load {
	sum := map[string]router.Load{}
	for _, replica := range slices.Sorted(maps.Keys(reports)) {
		r := reports[replica]
		for backend := range r.Backends {
			sum[backend] = Add(sum[backend], r.load(backend))
		}
	}
	return sum
}

// load is what r says of one backend.
func (r *Report) load(backend string) router.Load {
	l := r.Backends[backend].load()
	r.addRecentTo(&l, backend, func(string) bool { return true })
	for model, v := range r.Models[backend] {
		if l.Models == nil {
			l.Models = map[string]router.Load{}
		}
		part := v.load()
		r.addRecentTo(&part, backend, func(m string) bool { return m == model })
		l.Models[model] = part
	}
	return l
}

// Each calls take with what r says of each backend.
func (r *Report) Each(take func(backend string, l router.Load)) {
	for backend := range r.Backends {
		take(backend, r.load(backend))
	}
}

// Add returns sum and l together, with their models; sum's are changed in place.
func Add(sum, l router.Load) router.Load {
	sum = sum.Plus(l)
	for model, v := range l.Models {
		if sum.Models == nil {
			sum.Models = map[string]router.Load{}
		}
		sum.Models[model] = sum.Models[model].Plus(v)
	}
	return sum
}
