package profiles

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Rule is what holds among the sums of one group, whatever was streamed: a
// bound of one of them in terms of another, or, of a product, in terms of two.
// Sums that break a rule were written by nobody who measured. It is written for
// whoever stores sums and for Check alike.
type Rule struct {
	Kind string // of the group: the letters that its names begin with
	X    int    // the index of the sum that is bounded, as in Group.Fields

	// Least·Of − Slack ≤ X ≤ Most·Of + Slack, where Of < 0 stands for 1. With
	// Level > 0 a group that is a bin multiplies Most by that power of its highest
	// n, and Least by that of its lowest, or if Least < 0 of its highest.
	Of          int
	Least, Most float64
	Level       float64
	Slack       float64

	// Square says that instead X² ≤ Of·And, as for all second moments.
	Square bool
	And    int
}

// The bounds of what can be measured. They are wide: they are for what is no
// measurement at all, and none may ever refuse an honest gateway.
const (
	// mostTPS is beyond every stream: engines give 3,000 tokens/s, and one that
	// only plays one, or tells from memory, all that a connection takes.
	mostTPS = 1 / minTPOT

	// mostSeconds is how much occupied time the sums can hold that halve every
	// 600 s of it: 1,400 s, and what the oldest stream hands over at once.
	mostSeconds = 36_000

	// mostSlow is the same of the slow copy, which halves in a day: what a hundred
	// replicas gather that nobody hears of for a week.
	mostSlow = 1e8

	// mostPerSecond are prompt tokens that are prefilled in a second, and
	// promptSlack those that came where nothing was measured. Below 0 are
	// prompts that were taken back, because a cache had them, when what they
	// were booked to had faded.
	mostPerSecond = 1e6
	promptSlack   = 1e8

	// mostLevel is beyond every n: Occupancy ends there.
	mostLevel = 1 << 31

	// few are the tokens that may come where hardly any time is booked: those of
	// one burst.
	few = 1000

	// exact is the relative error that adding up may make.
	exact = 1e-6
)

// rules is all that Check knows.
var rules = slices.Concat(
	// A bin: time and tokens, their sums over n, and the moments of its windows.
	positive("b", binNames[:], "s", "t", "y", "k", "r", "n", "w", "ss", "yy", "tq", "kq", "td", "kd", "pd", "wq", "vq", "ch", "to"),
	[]Rule{
		{Kind: "b", X: 1, Of: -1, Most: mostSeconds, Slack: exact},
		// Half and twice: what a shift spares of a bin was forgotten at another pace than
		// the bin, and their difference may have a mean n beside its levels.
		{Kind: "b", X: 0, Of: 1, Least: 0.5, Most: 2, Level: 1, Slack: exact},
		{Kind: "b", X: 2, Of: 0, Most: mostTPS, Slack: few},
		{Kind: "b", X: 2, Of: 3, Least: 0.5, Most: 2, Level: 1, Slack: few},
		{Kind: "b", X: 4, Of: 2, Least: 0.5, Most: 2, Level: 0.5, Slack: few},
		{Kind: "b", X: 5, Of: 2, Least: 0.5, Most: 2, Level: 1, Slack: few},
		{Kind: "b", X: 6, Of: 1, Least: -mostPerSecond, Most: mostPerSecond, Slack: promptSlack},
		{Kind: "b", X: 7, Of: 1, Least: -mostPerSecond, Most: mostPerSecond, Level: 1, Slack: promptSlack * maxLevel},
		{Kind: "b", X: 11, Of: 9, And: 10, Square: true},
		{Kind: "b", X: 12, Of: -1, Most: mostSeconds, Slack: exact},
		{Kind: "b", X: 13, Of: 12, Most: mostTPS, Slack: few},
		{Kind: "b", X: 14, Of: -1, Most: mostSeconds, Slack: exact},
		{Kind: "b", X: 15, Of: 14, Most: mostTPS, Slack: few},
		{Kind: "b", X: 16, Of: 14, Most: mostPerSecond, Slack: promptSlack},
		{Kind: "b", X: 20, Of: 19, Most: 1.1 * mostPerChunk, Slack: few},
	},
	normal("f"), normal("s"),
	[]Rule{{Kind: "f", X: rowT, Of: -1, Most: mostSeconds, Slack: exact}, {Kind: "s", X: rowT, Of: -1, Most: mostSlow, Slack: exact}},
	partsOf("f", rowK, len(rowNames), len(rowNames)+numOctaves),
	// The totals.
	positive("t", totalNames[:], "t", "answers", "output", "cal", "counted", "chunks", "est", "pre", "txc", "txb", "txxx", "txyy"),
	[]Rule{
		{Kind: "t", X: 0, Of: -1, Most: mostSeconds, Slack: exact},
		{Kind: "t", X: 2, Of: 1, Most: 1e8, Slack: few},
		{Kind: "t", X: 4, Of: 5, Most: 1.1 * mostPerChunk, Slack: few},
		{Kind: "t", X: 5, Of: 4, Most: 1.1 * maxPerChunk, Slack: few},
		{Kind: "t", X: 7, Of: 6, Most: 1.1 * maxPerChunk, Slack: few},
		{Kind: "t", X: 10, Of: 8, And: 11, Square: true},
		{Kind: "t", X: 12, Of: 8, And: 13, Square: true},
	},
	// First tokens.
	positive("ft", firstNames[:], firstNames[:]...),
	[]Rule{
		{Kind: "ft", X: 0, Of: -1, Most: mostSeconds, Slack: exact},
		{Kind: "ft", X: 2, Of: 1, And: 3, Square: true},
		{Kind: "ft", X: 4, Of: 1, Most: longestTTFT, Slack: exact},
		{Kind: "ft", X: 5, Of: 2, Most: longestTTFT, Slack: exact},
		{Kind: "ft", X: 7, Of: 6, Most: longestTTFT, Slack: exact},
		{Kind: "ft", X: 10, Of: 9, Most: 1, Slack: exact},
	},
	// The knee. Its seconds are no time: each stream beyond it counts as minutes.
	positive("kn", kneeNames[:], kneeNames[:]...),
	[]Rule{
		{Kind: "kn", X: 2, Of: 1, Most: mostLevel, Slack: exact},
		{Kind: "kn", X: 2, Of: 1, And: 3, Square: true},
	},
	// Deliveries.
	positive("d", storedDeliveries, storedDeliveries...),
	[]Rule{{Kind: "d", X: 0, Of: -1, Most: marginSlowness * mostSeconds, Slack: exact}},
	// What shifts are remembered.
	positive("g", []string{"t", "ln"}, "t"),
	[]Rule{
		{Kind: "g", X: 0, Of: -1, Most: paceSlowness * mostSeconds, Slack: exact},
		{Kind: "g", X: 1, Of: -1, Least: -4 * mostPace, Most: 4 * mostPace},
	},
	// What requests bring. A prompt may be taken back when it has faded.
	positive("m", mixNames[:], "t", "y", "n", "x"),
	[]Rule{
		{Kind: "m", X: 0, Of: -1, Most: mostSeconds, Slack: exact},
		{Kind: "m", X: 1, Of: 0, Least: -mostPerSecond, Most: mostPerSecond, Slack: promptSlack},
		{Kind: "m", X: 2, Of: 0, Most: mostTPS * mostLevel, Slack: few},
	},
	// Of those of late. A change counts as hours.
	positive("q", recentNames[:], recentNames[:]...),
)

// The places of T and K among the rows.
const rowT, rowK = 15, 16

// positive returns that the named sums are at least 0, to rounding.
func positive(kind string, names []string, which ...string) []Rule {
	var list []Rule
	for _, name := range which {
		list = append(list, Rule{Kind: kind, X: slices.Index(names, name), Of: -1, Most: maxSum, Slack: exact})
	}
	return list
}

// partsOf returns that each sum from the first to before the last is a part of
// whole.
func partsOf(kind string, whole, first, last int) []Rule {
	var list []Rule
	for x := first; x < last; x++ {
		list = append(list, Rule{Kind: kind, X: x, Of: whole, Most: 1, Slack: exact})
	}
	return list
}

// normal returns what holds of normal equations: every product is bounded by
// the squares (Cauchy and Schwarz), and steps by their seconds.
func normal(kind string) []Rule {
	list := positive(kind, rowNames[:], "a00", "a11", "a22", "a33", "b0", "yy", "t", "k")
	at := func(name string) int { return slices.Index(rowNames[:], name) }
	for i := range 4 {
		square := "a" + strconv.Itoa(i) + strconv.Itoa(i)
		for j := i + 1; j < 4; j++ {
			list = append(list, Rule{
				Kind: kind, Square: true, X: at("a" + strconv.Itoa(i) + strconv.Itoa(j)),
				Of: at(square), And: at("a" + strconv.Itoa(j) + strconv.Itoa(j)),
			})
		}
		list = append(list, Rule{Kind: kind, Square: true, X: at("b" + strconv.Itoa(i)), Of: at(square), And: at("yy")})
	}
	return append(list,
		Rule{Kind: kind, X: at("b0"), Of: at("a00"), Most: maxTPOT, Slack: exact},
		Rule{Kind: kind, X: rowK, Of: rowT, Most: mostTPS, Slack: few})
}

// Rules returns what Check checks, for a store that checks sums where it adds
// them.
func Rules() []Rule { return slices.Clone(rules) }

// rulesOf returns the rules of a kind, for groups that lie between these levels of
// concurrency: their bounds are worked out once, and Level says nothing any more.
func rulesOf(kind string, lo, hi float64) (list []Rule) {
	for _, r := range rules {
		if r.Kind != kind {
			continue
		}
		if r.Level > 0 {
			low := lo
			if r.Least < 0 {
				low = hi
			}
			r.Least, r.Most, r.Level = r.Least*math.Pow(low, r.Level), r.Most*math.Pow(hi, r.Level), 0
		}
		list = append(list, r)
	}
	return list
}

// checked is how a group of sums is checked: its names, and its rules.
type checked struct {
	names []string
	rules []Rule
}

var (
	checkedBins = func() (list [NumBins]checked) {
		for i := range list {
			lo, hi := BinBounds(i)
			most := float64(hi)
			if i == NumBins-1 {
				most = mostLevel
			}
			list[i] = checked{storedBins[i], rulesOf("b", float64(lo), most)}
		}
		return list
	}()
	checkedSlow = func() (list [numOctaves]checked) {
		for i := range list {
			list[i] = checked{storedSlow[i], rulesOf("s", 1, mostLevel)}
		}
		return list
	}()
	checkedRows       = checked{storedRows, rulesOf("f", 1, mostLevel)}
	checkedTotals     = checked{storedTotals, rulesOf("t", 1, mostLevel)}
	checkedFirsts     = checked{storedFirsts, rulesOf("ft", 1, mostLevel)}
	checkedKnee       = checked{storedKnee, rulesOf("kn", 1, mostLevel)}
	checkedDeliveries = checked{storedDeliveries, rulesOf("d", 1, mostLevel)}
	checkedPace       = checked{storedPace, rulesOf("g", 1, mostLevel)}
	checkedMix        = checked{storedMix, rulesOf("m", 1, mostLevel)}
	checkedRecent     = checked{storedRecent, rulesOf("q", 1, mostLevel)}
)

// ImpossibleError reports sums that no streams can have given.
type ImpossibleError struct {
	Field string // the stored name of one of them
	Found string // what it is
}

// Error names the sum.
func (e *ImpossibleError) Error() string {
	return fmt.Sprintf("profiles: %s = %s is no sum of streams", e.Field, e.Found)
}

// Check returns an *ImpossibleError if no streams can have given s. A store
// asks before it hands on what others wrote: a curve drawn from that could be
// anything, for as long as it takes to be forgotten.
func (s *Sums) Check() error {
	var buffer [mostFields]float64 // nothing of s has to be on the heap for it
	for i := range s.bins {
		if s.bins[i] != (binSums{}) {
			if err := checkedBins[i].check(read(buffer[:0], s.bins[i].fields())); err != nil {
				return err
			}
		}
	}
	if err := checkedRows.check(append(read(buffer[:0], s.rows.rowSums.fields()), s.rows.Octaves[:]...)); err != nil {
		return err
	}
	for i := range s.slow {
		if s.slow[i] != (rowSums{}) {
			if err := checkedSlow[i].check(read(buffer[:0], s.slow[i].fields())); err != nil {
				return err
			}
		}
	}
	return cmp.Or(
		checkedTotals.check(read(buffer[:0], s.totals.fields())),
		checkedFirsts.check(read(buffer[:0], s.firsts.fields())),
		checkedKnee.check(read(buffer[:0], s.knee.fields())),
		checkedDeliveries.check(append(append(buffer[:0], s.deliveries.T), s.deliveries.Streams[:]...)),
		checkedPace.check(read(buffer[:0], s.pace.fields())),
		checkedMix.check(read(buffer[:0], s.mix.fields())),
		checkedRecent.check(read(buffer[:0], s.recent.fields())))
}

// mostFields is more than any group has.
const mostFields = 64

func read(buffer []float64, fields []*float64) []float64 {
	for _, f := range fields {
		buffer = append(buffer, *f)
	}
	return buffer
}

func (c *checked) check(values []float64) error {
	for i, v := range values {
		if !(math.Abs(v) <= maxSum) {
			return c.impossible(i, v)
		}
	}
	for i := range c.rules {
		if r := &c.rules[i]; !r.holds(values) {
			return c.impossible(r.X, values[r.X])
		}
	}
	return nil
}

func (c *checked) impossible(i int, found float64) error {
	return &ImpossibleError{Field: c.names[i], Found: strconv.FormatFloat(found, 'g', -1, 64)}
}

// holds reports whether r does, as rulesOf returns it; false when one of the values is
// no number.
func (r *Rule) holds(values []float64) bool {
	x, of := values[r.X], 1.0
	if r.Of >= 0 {
		of = values[r.Of]
	}
	if r.Square {
		return x*x <= of*values[r.And]*(1+exact)+exact
	}
	slack := r.Slack + exact*math.Abs(x)
	return r.Least*of-slack <= x && x <= r.Most*of+slack
}

// ParseSums reads sums as a store holds them: the inverse of Groups, of text
// that anybody may have written. The error is an *ImpossibleError. Names that it
// does not know are ignored.
func ParseSums(fields map[string]string, updated time.Time) (Sums, error) {
	numbers := make(map[string]float64, len(fields))
	for _, names := range storedNames() {
		for _, name := range names {
			text, ok := fields[name]
			if !ok {
				continue
			}
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || !(math.Abs(v) <= maxSum) {
				return Sums{}, &ImpossibleError{Field: name, Found: strconv.Quote(text[:min(len(text), 40)])}
			}
			numbers[name] = v
		}
	}
	s := SumsFrom(numbers, updated)
	return s, s.Check()
}

// storedNames returns the names of all sums, by group.
func storedNames() [][]string {
	return slices.Concat(storedBins[:], storedSlow[:], [][]string{storedRows, storedTotals, storedFirsts, storedKnee, storedDeliveries, storedPace, storedMix, storedRecent})
}
