package redisload

import (
	"encoding/json"
	"math"

	"github.com/pacer-dev/pacer/router"
)

// report is what one replica says of itself. Its JSON is the stored form:
// {"v":1,"b":{"h200-a":[waiting,decoding,prompt tokens,floor]}}.
type report struct {
	Version  int                   `json:"v"`
	Backends map[string][4]float64 `json:"b"`
}

const reportVersion = 1

// maxCount bounds each number that is read: what comes from outside may be
// wrong, but not so wrong that a sum overflows.
const maxCount = 1e9

// encode writes what this replica runs, leaving out idle backends.
func encode(loads []router.BackendLoad) string {
	r := report{Version: reportVersion, Backends: map[string][4]float64{}}
	for _, b := range loads {
		if b.Waiting != 0 || b.Decoding != 0 || b.PromptTokens != 0 || b.Floor != 0 {
			r.Backends[b.Backend] = [4]float64{float64(b.Waiting), float64(b.Decoding), float64(b.PromptTokens), finite(b.Floor)}
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // a map of finite numbers always has a JSON form
	}
	return string(text)
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
			s.Waiting += int(finite(v[0]))
			s.Decoding += int(finite(v[1]))
			s.PromptTokens += int(finite(v[2]))
			s.Floor = max(s.Floor, finite(v[3]))
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
