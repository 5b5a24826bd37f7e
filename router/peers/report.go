package peers

import (
	"encoding/json"
	"fmt"

	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/share"
)

// Report is what one replica says of itself. Its JSON is the stored form:
// {"v":1,"b":{"h200-a":[waiting,decoding,prompt tokens,floor]}}, and where models
// are counted by themselves, the part of each: "m":{"api":{"gpt-4o":[…]}}.
type Report struct {
	Version  int                          `json:"v"`
	Backends map[string]counts            `json:"b"`
	Models   map[string]map[string]counts `json:"m,omitempty"`
}

// counts are waiting, decoding, prompt tokens and floor.
type counts [4]float64

func countsOf(l router.Load) counts {
	c := counts{float64(l.Waiting), float64(l.Decoding), float64(l.PromptTokens), l.Floor}
	for i, v := range c {
		if !(v >= 0) { // false for NaN
			c[i] = 0
		}
		c[i] = min(c[i], most[i])
	}
	return c
}

// most bounds each count of one replica: more was written by no gateway. A
// backend that is believed to run that much gets nothing.
var most = counts{1e6, 1e6, 1e12, 1e5}

// possible reports whether a gateway can have written c.
func (c counts) possible() bool {
	for i, v := range c {
		if !(v >= 0 && v <= most[i]) {
			return false
		}
	}
	return true
}

// addTo adds c to l.
func (c counts) addTo(l *router.Load) {
	l.Waiting += int(c[0])
	l.Decoding += int(c[1])
	l.PromptTokens += int(c[2])
	l.Floor = max(l.Floor, c[3])
}

const reportVersion = 1

// Encode writes what this replica runs, leaving out idle backends.
func Encode(loads []router.BackendLoad) string {
	r := Report{Version: reportVersion, Backends: map[string]counts{}}
	for _, b := range loads {
		all := countsOf(router.Load{Waiting: b.Waiting, Decoding: b.Decoding, PromptTokens: b.PromptTokens, Floor: b.Floor})
		if all == (counts{}) {
			continue
		}
		r.Backends[b.Backend] = all
		for _, m := range b.Models {
			if c := countsOf(m.Load); c != (counts{}) {
				r.addModel(b.Backend, m.Model, c)
			}
		}
	}
	text, err := json.Marshal(r)
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

// Remote is what the router is to be told after an exchange that brought the
// reports of the others, by replica, or failed with err, and after which the
// verdict is state; false when the router should go on with what it has.
func Remote(state share.State, others map[string]Report, err error) (router.RemoteLoad, bool) {
	switch {
	case state.Alone:
		return router.RemoteLoad{Replicas: state.Replicas, Lost: true}, true
	case err != nil: // what was read last still holds
		return router.RemoteLoad{}, false
	}
	return router.RemoteLoad{ByBackend: total(others), Replicas: state.Replicas}, true
}

// total adds up the reports by backend.
func total(reports map[string]Report) map[string]router.Load {
	sum := map[string]router.Load{}
	for _, r := range reports {
		for backend, v := range r.Backends {
			s := sum[backend]
			v.addTo(&s)
			for model, v := range r.Models[backend] {
				if s.Models == nil {
					s.Models = map[string]router.Load{}
				}
				part := s.Models[model]
				v.addTo(&part)
				s.Models[model] = part
			}
			sum[backend] = s
		}
	}
	return sum
}
