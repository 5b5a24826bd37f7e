package engines

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/timings"
)

const (
	// enough is how many tokens a level needs, of the clients' own count, to be
	// compared: below, chance says more than the engine.
	enough = 500
	// taught is how many tokens the bursts bring.
	taught = 50_000
)

// asked returns the gateway's curve at the levels, with more of a query.
func asked(t *testing.T, gateway *proctest.Process, ns []int, query string) map[int]float64 {
	t.Helper()
	var list []string
	for _, n := range ns {
		list = append(list, fmt.Sprint(n))
	}
	page := proctest.JSON[api.Profiles](t, gateway.Ready["admin"]+"/api/v1/profiles?n="+strings.Join(list, ",")+query)
	if len(page.Targets) != 1 {
		t.Fatalf("profiles: %+v", page)
	}
	out := map[int]float64{}
	for _, p := range page.Targets[0].Points {
		if p.TPS.Known() {
			out[p.N] = float64(p.TPS)
		}
	}
	return out
}

// apart is how far got is from want, in percent, at the levels that both have;
// a level that got does not have is 100 % off.
func apart(got, want map[int]float64) (off []float64) {
	for n, w := range want {
		g, ok := got[n]
		if !ok {
			off = append(off, 100)
			continue
		}
		off = append(off, 100*math.Abs(g/w-1))
	}
	return off
}

// known returns the TPS of the levels with enough tokens, and how many prompt
// tokens were prefilled at each for each token of an answer.
func known(all []timings.Answer, perPromptToken float64) (tps, rho map[int]float64) {
	tps, rho = map[int]float64{}, map[int]float64{}
	prompts := timings.PromptsAt(all, perPromptToken)
	for n, l := range timings.Levels(all) {
		if l.Tokens >= enough {
			tps[n], rho[n] = l.TPS(), prompts[n]/l.Tokens
		}
	}
	return tps, rho
}

// quantile is the q-th of a list, which it sorts; NaN of an empty one.
func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return list[int(math.Round(q*float64(len(list)-1)))]
}

// swept is what a sweep says: the speed of one user of so many, by the size of
// their prompts.
type swept map[int]map[int]float64

// promptWords are the prompts of a sweep, in words: almost none, those of the
// bursts, and longer ones.
var promptWords = []int{8, 64, 192}

const sweepTokens = 96 // of an answer, on average

// sweep measures the engine itself: n users without a pause, for each n and size
// of prompt.
func sweep(t *testing.T, e *running, part string, r *recording) swept {
	t.Helper()
	u := newUser(e.url+"/v1", e.name)
	out := swept{}
	for _, words := range promptWords {
		out[words] = map[int]float64{}
		for _, n := range []int{1, 2, 4, 8, 12, 16} {
			all := closed(t, u, n, max(2, 16/n), func() int { return words }, func() int { return sweepTokens/2 + rand.IntN(sweepTokens) })
			r.add(fmt.Sprintf("%s %d words %d users", part, words, n), all)
			if l := timings.Users(whole(all))[n]; l.Tokens >= enough {
				out[words][n] = l.TPS()
			}
		}
	}
	return out
}

// TestCurve teaches Pacer with bursts of mixed requests and holds what it says
// then against what those users saw, and against a direct sweep of the engine.
func TestCurve(t *testing.T) {
	for _, kind := range []engine{llamacpp, vllm} {
		t.Run(kind.name, func(t *testing.T) {
			e := kind.start(t)
			g := gateway(t, fmt.Sprintf("routes: [ { model: chat, targets: [ { backend: %s, model: %s } ] } ]\n", e.name, e.name), e)
			r := record(t, e.name)
			direct := sweep(t, e, "before", r)
			begun := time.Now()
			all := bursts(t, newUser(g.Ready["data"]+"/v1", "chat"), taught, time.Second)
			took := time.Since(begun)
			r.add("bursts", all)
			again := sweep(t, e, "after", r)
			r.write(t)

			users, rho := known(whole(all), timings.PerPromptToken(r.alone()))
			shown := map[int]float64{}
			for _, n := range slices.Sorted(maps.Keys(users)) {
				maps.Copy(shown, asked(t, g, []int{n}, fmt.Sprintf("&rho=%g", rho[n])))
				t.Logf("n = %2d, %5.1f prompt tokens a step: users got %.1f, Pacer says %.1f (%+.1f %%)", n, rho[n]*float64(n), users[n], shown[n], 100*(shown[n]/users[n]-1))
			}
			same := apart(shown, users)
			var off, repeat []float64
			for _, words := range promptWords {
				prompts := closed(t, newUser(e.url+"/v1", e.name), 1, 1, func() int { return words }, func() int { return 16 })[0].Prompt
				atLoad := asked(t, g, slices.Sorted(maps.Keys(direct[words])), fmt.Sprintf("&rho=%g", float64(prompts)/sweepTokens))
				for _, n := range slices.Sorted(maps.Keys(direct[words])) {
					t.Logf("%d words, %2d users: the sweep says %.1f, then %.1f; Pacer, at its prompts, %.1f (%+.1f %%)", words, n, direct[words][n], again[words][n], atLoad[n], 100*(atLoad[n]/again[words][n]-1))
				}
				off = append(off, apart(atLoad, again[words])...)
				repeat = append(repeat, apart(direct[words], again[words])...)
			}
			row := fmt.Sprintf("| %s | %d tokens, %d s | %.1f / %.1f / %.1f | %.1f / %.1f | %.1f / %.1f |", e.version, taught, int(took.Seconds()),
				quantile(same, 0.5), quantile(same, 0.9), quantile(same, 1), quantile(off, 0.5), quantile(off, 0.9), quantile(repeat, 0.5), quantile(repeat, 0.9))
			t.Log("\n| engine | taught by | off from what users got, median / p90 / worst % | off from the sweep, median / p90 % | the sweep from itself, median / p90 % |\n" + row)
			if m := quantile(same, 0.5); !(m <= medianGoal) {
				t.Errorf("the curve is %.1f %% (median) off from what its own users got, want at most %.0f", m, medianGoal)
			}
			if m := quantile(same, 0.9); !(m <= p90Goal) {
				t.Errorf("the curve is %.1f %% (p90) off from what its own users got, want at most %.0f", m, p90Goal)
			}
			if m, r := quantile(off, 0.5), quantile(repeat, 0.5); !(m <= r+sweepGoal) {
				t.Errorf("the curve is %.1f %% (median) off from the sweep, which is %.1f %% off from itself; want at most %.0f more", m, r, sweepGoal)
			}
		})
	}
}

// The goals, in percent.
const (
	medianGoal = 3.0
	p90Goal    = 8.0
	sweepGoal  = 3.0
)
