package bench

import (
	"math"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

func TestCard(t *testing.T) {
	answer := func(url string, points ...Point) *Answer {
		return &Answer{URL: url, Model: "m|x", Prompt: "100", Output: "64", Points: points}
	}
	a := answer("http://a", Point{N: 1, TPS: 90}, Point{N: 8, TPS: 40, AggregateTPS: 320, Streams: 18, Failed: 1, Shed: 1, TPOT: Spread{P50: 0.025, P90: 0.05}}, Point{N: 8, Rate: 3, TPS: 7})
	b := answer("http://b", Point{N: 8, TPS: 50, AggregateTPS: 400, Streams: 20}, Point{N: 64, TPS: 9})
	c := must.Get(NewCard([]*Answer{a, b, answer("http://c", Point{N: 2, TPS: 1})}, 0, []float64{3.6, 3.6, 1}))(t)
	if c.N != 8 || c.Results[0].URL != "http://b" || c.Results[1].URL != "http://a" || c.Results[2].At != nil {
		t.Fatalf("%+v: want b, a and c at 8, the level that most have", c)
	}
	if got := *c.Results[1].FailedShare; got != 0.1 {
		t.Errorf("failed %v, want 0.1", got)
	}
	if got := *c.Results[0].USDPerMillion; math.Abs(got-2.5) > 1e-9 { // 3.60 USD for 1.44 million tokens
		t.Errorf("%v USD per million, want 2.5", got)
	}
	var out strings.Builder
	must.Do(t, c.Print(&out))
	for _, want := range []string{"| http://a · m\\|x | 40 | 20 / 40 |", "10.0 %", "| http://c · m\\|x | – |", "TPS at n = 8"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if _, err := NewCard([]*Answer{a, b}, 16, nil); err == nil || !strings.Contains(err.Error(), "--n 16") {
		t.Errorf("a level that nobody has: %v", err)
	}
	if _, err := NewCard([]*Answer{a, b}, 8, []float64{1}); err == nil {
		t.Error("one price for two results is taken")
	}
}
