package redisload

import (
	"encoding/json"
	"math"

	"github.com/pacer-dev/pacer/router"
)

// report is what one replica says of itself. Its JSON is the stored form:
// {"v":1,"b":{"h200-a":[waiting,decoding,prompt tokens,floor]}}, and where models
// are counted by themselves, the part of each: "m":{"api":{"gpt-4o":[…]}}.
type report struct {
	Version  int                          `json:"v"`
	Backends map[string]counts            `json:"b"`
	Models   map[string]map[string]counts `json:"m,omitempty"`
}

// counts are waiting, decoding, prompt tokens and floor.
type counts [4]float64

func countsOf(l router.Load) counts {
	return counts{float64(l.Waiting), float64(l.Decoding), float64(l.PromptTokens), finite(l.Floor)}
}

// addTo adds c to l, within limits.
func (c counts) addTo(l *router.Load) {
	l.Waiting += int(finite(c[0]))
	l.Decoding += int(finite(c[1]))
	l.PromptTokens += int(finite(c[2]))
	l.Floor = max(l.Floor, finite(c[3]))
}

const reportVersion = 1

// maxCount bounds each number that is read: what comes from outside may be
// wrong, but not so wrong that a sum overflows.
const maxCount = 1e9

// encode writes what this replica runs, leaving out idle backends.
func encode(loads []router.BackendLoad) string {
	r := report{Version: reportVersion, Backends: map[string]counts{}}
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

func (r *report) addModel(backend, model string, c counts) {
	if r.Models == nil {
		r.Models = map[string]map[string]counts{}
	}
	if r.Models[backend] == nil {
		r.Models[backend] = map[string]counts{}
	}
	r.Models[backend][model] = c
}

// decode reads a report. One that it cannot read is a replica that is alive
// and of which no more is known.
func decode(text string) report {
	var r report
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Version != reportVersion {
		return report{}
	}
	return r
}

// total adds up the reports by backend.
func total(reports map[string]report) map[string]router.Load {
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

// finite returns v within 0 and maxCount, 0 for NaN.
func finite(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return min(max(v, 0), maxCount)
}
