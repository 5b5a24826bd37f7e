package accuracy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/timings"
	"github.com/pacer-dev/pacer/profiles"
)

// recording is what a real engine sent when, as its users saw it: bursts of
// mixed requests through Pacer, and a sweep of the engine alone before and after
// (e2e/engines wrote it down; testdata/README.md says when and on what).
func recording(t *testing.T, engine string) []timings.Answer {
	t.Helper()
	f := must.Get(os.Open(filepath.Join("testdata", engine+".csv.gz")))(t)
	defer f.Close()
	all := must.Get(timings.Read(f))(t)
	return all
}

// partOf returns the answers of one part of a recording.
func partOf(all []timings.Answer, part string) (out []timings.Answer) {
	for _, a := range all {
		if a.Part == part {
			out = append(out, a)
		}
	}
	return out
}

// happening is one thing that the relay sees of an answer: that it was asked for,
// an arrival, and the end.
type happening struct {
	at     time.Duration
	answer int
	which  int // -1 = sent, then the arrivals, then the end
}

// relayed gives a book what the relay saw of the answers, in its order.
type relayed struct {
	book    *profiles.Book
	occ     *profiles.Occupancy
	answers []timings.Answer
	counts  bool // the backend was asked for a count in every chunk
	streams []*profiles.Stream
	n       int // that decode
	prompts int // tokens of the prompts that wait for their first token, as guessed
	waiting int // requests in flight
}

// happenings lists what happens in a replay, in time.
func (r *relayed) happenings() (list []happening) {
	for i := range r.answers {
		a := &r.answers[i]
		list = append(list, happening{a.Sent, i, -1}, happening{a.Ended, i, len(a.Arrivals)})
		for j, arrival := range a.Arrivals {
			list = append(list, happening{arrival.At, i, j})
		}
	}
	slices.SortStableFunc(list, func(a, b happening) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.which, b.which)) })
	return list
}

// run replays all of it, with a fold at each second, and lets the windows close.
func (r *relayed) run(folded func(now time.Duration)) {
	list := r.happenings()
	begin := list[0].at
	zero := start.Add(-begin)
	r.occ = profiles.NewOccupancy(start)
	r.streams = make([]*profiles.Stream, len(r.answers))
	r.book.Fold(start)
	next := begin + time.Second
	for _, h := range list {
		for ; next <= h.at; next += time.Second {
			r.book.Fold(zero.Add(next))
			if folded != nil {
				folded(next - begin)
			}
		}
		r.happens(zero, h)
	}
	r.book.Fold(zero.Add(next + 20*time.Second))
}

// happens does what the relay does.
func (r *relayed) happens(zero time.Time, h happening) {
	a, now := &r.answers[h.answer], zero.Add(h.at)
	switch s := r.streams[h.answer]; h.which {
	case -1:
		r.streams[h.answer] = r.book.Open(target, profiles.Open{
			Sent: now, Occupancy: r.occ, PromptTokens: a.Guess,
			Ahead: profiles.Ahead{Known: true, PromptTokens: r.prompts, Sequences: r.waiting},
		})
		r.prompts += a.Guess
		r.waiting++
	case len(a.Arrivals):
		s.Usage(profiles.Usage{PromptTokens: a.Prompt, CompletionTokens: a.Tokens})
		r.waiting--
		r.n--
		r.occ.Set(now, r.n)
		s.Close(now, true)
	default:
		arrival, text := a.Arrivals[h.which], a.FirstText
		if h.which == 0 {
			r.prompts -= a.Guess
			r.n++
			r.occ.Set(now, r.n)
		} else {
			text = (a.Text - a.FirstText) / max(len(a.Arrivals)-1, 1)
		}
		s.Text(text)
		total := 0
		if r.counts {
			total = arrival.Total
		}
		s.ReadCounted(now, arrival.Chunks, total)
	}
}

// recordedEnough is how many tokens a level needs to be compared: below, chance
// says more than the engine.
const recordedEnough = 500

// grade says how far a curve is from what users got, in percent, at each of
// their levels.
func grade(levels map[int]timings.Level, curve func(n int) float64) (off []float64) {
	for n, l := range levels {
		if l.Tokens >= recordedEnough {
			off = append(off, 100*math.Abs(curve(n)/l.TPS()-1))
		}
	}
	return off
}

// whole says how far the curve is from what whole answers got, each for as long as
// it lived at each n, in percent: at each mean n of a life, without sign, and of all
// answers together.
func whole(all []timings.Answer, curve func(n int) float64) (off []float64, together float64) {
	type life struct{ tokens, seconds, shown float64 }
	lives := map[int]life{}
	var sum life
	for i := range all {
		a := &all[i]
		parts, took, n, shown := timings.During(all, a.First(), a.Last()), (a.Last() - a.First()).Seconds(), 0.0, 0.0
		for _, k := range slices.Sorted(maps.Keys(parts)) {
			n += parts[k] * float64(k)
			shown += parts[k] * took * curve(k)
		}
		at := int(math.Round(n))
		l := lives[at]
		lives[at] = life{l.tokens + a.After(), l.seconds + took, l.shown + shown}
		sum = life{sum.tokens + a.After(), sum.seconds + took, sum.shown + shown}
	}
	for _, l := range lives {
		if l.tokens >= recordedEnough {
			off = append(off, 100*math.Abs(l.shown/l.tokens-1))
		}
	}
	return off, 100 * (sum.shown/sum.tokens - 1)
}

// perPromptToken is what a prompt token took in the recording's sweeps with one
// user.
func perPromptToken(all []timings.Answer) float64 {
	var alone []timings.Answer
	for _, a := range all {
		if strings.HasSuffix(a.Part, " 1 users") {
			alone = append(alone, a)
		}
	}
	return timings.PerPromptToken(alone)
}

// sweepOff says how far a curve is from the sweeps of the engine alone, asked at
// their prompts, and how far the second sweep is from the first, in percent.
func sweepOff(t *testing.T, all []timings.Answer, c *profiles.Curve) (off, repeat []float64) {
	for _, words := range []int{8, 64, 192} {
		for _, n := range []int{1, 2, 4, 8, 12, 16} {
			before := partOf(all, fmt.Sprintf("before %d words %d users", words, n))
			after := partOf(all, fmt.Sprintf("after %d words %d users", words, n))
			var prompts, tokens float64
			for _, a := range slices.Concat(before, after) {
				prompts += float64(a.Prompt)
				tokens += float64(a.Tokens)
			}
			first, second := timings.Users(before)[n], timings.Users(after)[n]
			got, want := c.AtRho(n, prompts/tokens).TPS, (first.Tokens+second.Tokens)/(first.Seconds+second.Seconds)
			t.Logf("sweep, %3d words, %2d users: %.1f, then %.1f; the curve at their prompts %.1f (%+.1f %%)", words, n, first.TPS(), second.TPS(), got, 100*(got/want-1))
			off = append(off, 100*math.Abs(got/want-1))
			repeat = append(repeat, 100*math.Abs(second.TPS()/first.TPS()-1))
		}
	}
	return off, repeat
}

// replayGates is what a replay holds where its goal is out of reach.
type replayGates struct{ same, sweep errs }

// replayRow teaches a book with what a real engine sent, and holds its curve
// against what the users of that very run got: as shown, at the prompts that
// each level had, and against a sweep of the engine alone.
func replayRow(name, engine string, g replayGates) row {
	return row{name, func(t *testing.T) []line {
		all := recording(t, engine)
		taught := partOf(all, "bursts")
		r := &relayed{book: profiles.NewBook(profiles.Options{}), answers: taught}
		r.run(nil)
		c, levels := r.book.Curve(target), timings.Levels(taught)
		prompts := timings.PromptsAt(taught, perPromptToken(all))
		load := func(n int) float64 { return prompts[n] / (levels[n].Tokens / float64(n)) }
		asked := func(n int) float64 { return c.AtRho(n, load(n)/float64(n)).TPS }
		for _, n := range slices.Sorted(maps.Keys(levels)) {
			t.Logf("n = %2d: %5.0f tokens, %5.1f prompt tokens a step, users got %6.1f, shown %6.1f (%+5.1f %%), at their prompts %6.1f (%+5.1f %%)", n, levels[n].Tokens, load(n), levels[n].TPS(),
				c.TPS(n), 100*(c.TPS(n)/levels[n].TPS()-1), asked(n), 100*(asked(n)/levels[n].TPS()-1))
		}
		fit, _ := c.Fit()
		t.Logf("fit %+v; a prompt token took %.3f ms before the first tokens of the sweep", fit, 1e3*perPromptToken(all))
		shown, same := grade(levels, c.TPS), grade(levels, asked)
		swept, repeat := sweepOff(t, all, c)
		answers, together := whole(taught, c.TPS)
		again := quantile(repeat, 0.5)
		return []line{
			{what: name + ", as shown, " + tokensName(taught), figures: []figure{
				{name: "median %", got: quantile(shown, 0.5)},
				{name: "p90 %", got: quantile(shown, 0.9)},
				{name: "worst", got: quantile(shown, 1)},
				{name: "of whole answers by their mean n, median %", got: quantile(answers, 0.5)},
				{name: "of all answers together, %", got: math.Abs(together), goal: 6},
			}, controls: []string{"it is shown at the load that n streams bring, and each level had another"}, why: "answers had other prompts beside them than n streams bring"},
			{what: name + ", at the prompts that each level had", figures: []figure{
				{name: "median %", got: quantile(same, 0.5), goal: 3, gate: g.same.median},
				{name: "p90 %", got: quantile(same, 0.9), goal: 8, gate: g.same.p90},
				{name: "worst", got: quantile(same, 1)},
			}, why: unsteady},
			{what: name + ", against a sweep of the engine alone, at its prompts", figures: []figure{
				{name: "beyond the sweep's own repeatability, median %", got: quantile(swept, 0.5) - again, goal: 3, gate: g.sweep.median},
				{name: "the sweep from itself", got: again},
				{name: "p90 %", got: quantile(swept, 0.9), gate: g.sweep.p90},
				{name: "worst", got: quantile(swept, 1)},
			}, why: engineAlone},
		}
	}}
}

// tokensName is how many tokens taught, in words.
func tokensName(all []timings.Answer) string {
	tokens := 0
	for _, a := range all {
		tokens += a.Tokens
	}
	return fmt.Sprintf("%dk", tokens/1000)
}
