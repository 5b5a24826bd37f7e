package arena

import (
	"reflect"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// twoGPUs is a small fleet under about all it carries.
func twoGPUs(policy Policy) Scenario {
	bs := []Backend{backend("r1", "deepseek-r1/h200/sglang"), backend("llama", "llama-3.1-70b/h200/vllm")}
	l := lengths{300, 0.8, 200, 0.7}
	return Scenario{
		Backends: bs, Routes: []Route{route("chat", 30, router.Interactive, 2*time.Second, bs)},
		Load: poisson(1, "chat", steady(20), 20, l.draw), Policy: policy,
		Duration: 30 * time.Second, Warmup: 5 * time.Second, Seed: 1,
	}
}

func TestTheSameScenarioGivesTheSameResult(t *testing.T) {
	for _, policy := range Policies() {
		var results [2]Result
		for i := range results {
			r, err := Run(t.Context(), twoGPUs(policy))
			if err != nil {
				t.Fatal(err)
			}
			r.Wall = 0
			results[i] = r
		}
		if !reflect.DeepEqual(results[0], results[1]) {
			t.Errorf("%s: two runs differ:\n%+v\n%+v", policy, results[0], results[1])
		}
		c := results[0].Routes[0].Counts
		if c.Offered == 0 || c.Offered != c.Met+c.Missed+c.Unmeasured+c.Shed+c.Failed {
			t.Errorf("%s: %+v do not add up", policy, c)
		}
	}
}
