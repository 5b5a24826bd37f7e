package profiles

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// taught returns what an engine of every kind of evidence left behind.
func taught() Sums {
	b := NewBook(Options{})
	e := newEngine(1, b)
	e.run(40_000)
	e.drain()
	return b.profile(e.target).known
}

// stored writes s as a store holds it.
func stored(s *Sums) map[string]string {
	fields := map[string]string{}
	for _, g := range s.Groups() {
		for _, f := range g.Fields {
			fields[f.Name] = strconv.FormatFloat(f.Value, 'g', -1, 64)
		}
	}
	return fields
}

// What streams gave passes, also when it has faded and was added up.
func TestCheckTakesWhatStreamsGave(t *testing.T) {
	s := taught()
	must.Do(t, s.Check())
	sum := s
	for range 50 {
		sum.Add(Delta{Sums: s}, defaultHalfLife)
		sum.Fade(time.Hour)
		must.Do(t, sum.Check())
	}
}

// An engine that only plays one streams as fast as the connection goes, and is
// learned as well.
func TestCheckTakesTheFastestStreams(t *testing.T) {
	for _, gap := range []time.Duration{20 * time.Microsecond, time.Millisecond} {
		b := newBench(t)
		now := start
		for range 20 {
			s := b.open(Open{Sent: now})
			for i := range 2000 { // 200 chunks a read
				now = now.Add(gap)
				s.ReadCounted(now, 200, 200*(i+1))
			}
			s.Usage(Usage{CompletionTokens: 400_000})
			s.Close(now, true)
			now = now.Add(time.Second)
		}
		b.book.Fold(now.Add(time.Hour))
		known := b.book.profile(target).known
		if err := known.Check(); err != nil || known.bins[0].Y == 0 {
			t.Errorf("200 tokens every %v: %v tokens learned, %v", gap, known.bins[0].Y, err)
		}
	}
}

// What a shift spares was forgotten at another pace than the bin it is taken from: a bin
// of 12 and 13 sequences was left with a mean of 13.1.
func TestCheckTakesWhatAShiftLeaves(t *testing.T) {
	s := taught()
	b := &s.bins[BinOf(12)]
	b.S, b.T = 131.48, 10.0087
	b.Y, b.K, b.R, b.N = 0, 0, 0, 0
	must.Do(t, s.Check())
	b.S = 30 * b.T
	if s.Check() == nil {
		t.Error("30 sequences in the bin of 12")
	}
}

// A hundred replicas come back after a week without a store, of which each tells
// what it gathered: the slow copy of their deltas has not faded.
func TestCheckTakesALongOutage(t *testing.T) {
	s := taught()
	var seconds float64
	for _, r := range s.slow {
		seconds += r.T
	}
	week := Sums{}
	for i := range s.slow {
		to, from := week.slow[i].fields(), s.slow[i].fields()
		for j := range to {
			*to[j] = *from[j] * 100 * (7 * 24 * time.Hour).Seconds() / seconds
		}
	}
	if err := week.Check(); err != nil {
		t.Error(err)
	}
}

// mayBeNegative are the sums that may be below 0: products of what may be, logarithms, and
// prompts that were taken back.
var mayBeNegative = map[string]bool{"p": true, "pn": true, "sy": true, "a01": true, "a02": true, "a03": true, "a12": true, "a13": true, "a23": true, "b1": true, "b2": true, "b3": true, "ln": true, "txx": true, "txy": true}

// Each sum by itself, replaced by what no streams can give: the reader says which
// it is.
func TestPoisonOfEachSum(t *testing.T) {
	s := taught()
	fields := stored(&s)
	if len(fields) < 200 {
		t.Fatalf("%d sums: the test poisons too little", len(fields))
	}
	for name, honest := range fields {
		poisons := []string{"nan", "-nan", "inf", "-inf", "1e31", "-1e29", "x", "", "0x", "1,5", "9" + honest + "e"}
		_, sum, _ := strings.Cut(name, ".")
		if !mayBeNegative[sum] {
			poisons = append(poisons, "-5", "-0.001")
		}
		for _, poison := range poisons {
			fields[name] = poison
			_, err := ParseSums(fields, start)
			var impossible *ImpossibleError
			if !errors.As(err, &impossible) {
				t.Errorf("%s = %q is taken (%v)", name, poison, err)
			}
		}
		fields[name] = honest
	}
	if _, err := ParseSums(fields, start); err != nil {
		t.Errorf("the honest ones: %v", err)
	}
}

// One kind of sums a thousand times too large: too many streams for the time,
// too many tokens for the streams, too much time for anybody.
func TestPoisonOfEachSize(t *testing.T) {
	s := taught()
	for _, sum := range []string{"s", "t", "y", "k", "r", "n", "sy"} {
		fields := stored(&s)
		for name, text := range fields {
			if group, field, _ := strings.Cut(name, "."); group[0] == 'b' && field == sum {
				v, _ := strconv.ParseFloat(text, 64)
				fields[name] = strconv.FormatFloat(v*1e6, 'g', -1, 64)
			}
		}
		if _, err := ParseSums(fields, start); err == nil {
			t.Errorf("%s of all bins a million times too large is taken", sum)
		}
	}
	fields := stored(&s)
	for name, text := range fields {
		v, _ := strconv.ParseFloat(text, 64)
		fields[name] = strconv.FormatFloat(v*1e4, 'g', -1, 64)
	}
	if _, err := ParseSums(fields, start); err == nil {
		t.Error("everything ten thousand times too large is taken")
	}
}

// Whatever a store holds is refused, or gives a curve of numbers that is within
// what can be measured.
func FuzzParseSums(f *testing.F) {
	s := taught()
	honest := stored(&s)
	for _, name := range []string{"b0.y", "b47.s", "f.a01", "s3.k", "t.answers", "ft.wx", "kn.nn", "d.3", "d.t", "zz"} {
		f.Add(name, "1e9", "b3.p", "-5")
	}
	f.Add("b0.s", "0", "b0.y", "900")
	f.Fuzz(func(t *testing.T, name, text, name2, text2 string) {
		fields := map[string]string{name: text, name2: text2}
		for k, v := range honest {
			if _, ok := fields[k]; !ok {
				fields[k] = v
			}
		}
		s, err := ParseSums(fields, start)
		if err != nil {
			return
		}
		for _, g := range s.Groups() {
			for _, v := range g.Fields {
				if !(math.Abs(v.Value) <= maxSum) {
					t.Fatalf("%s = %v is taken", v.Name, v.Value)
				}
			}
		}
		c := newCurve(&s, nil, startMargin)
		for _, n := range []int{1, 8, 100, maxLevel} {
			if p := c.At(n); c.Known() && !(p.TPS >= 0 && p.TPS <= 1/minTPOT && p.Low >= 0 && p.Low <= 1/minTPOT) {
				t.Fatalf("%s = %q and %s = %q give %+v", name, text, name2, text2, p)
			}
		}
	})
}
