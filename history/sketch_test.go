package history

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// quantileOf is the nearest rank.
func quantileOf(sorted []float64, share float64) float64 {
	return sorted[max(int(math.Ceil(share*float64(len(sorted)))), 1)-1]
}

func TestQuantilesAreWithinOnePercent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, count := range []int{1, 2, 10, 1000} {
		var d sketch
		var values []float64
		for range count {
			v := math.Exp(rng.NormFloat64() + 3)
			values = append(values, v)
			d.add(v, leastTPS)
		}
		slices.Sort(values)
		s := Sketch{least: leastTPS}
		s.addDense(&d)
		if s.Count() != uint64(count) {
			t.Fatalf("counted %d, want %d", s.Count(), count)
		}
		for _, share := range []float64{0, 0.1, 0.5, 0.9, 0.99, 1} {
			if got, want := s.Quantile(share), quantileOf(values, share); math.Abs(got/want-1) > 0.0101 {
				t.Errorf("p%g of %d values: got %.4g, want %.4g within 1 %%", share*100, count, got, want)
			}
		}
	}
}

// A packed sketch has no more than its entries, loses no count, and its quantiles
// are within 6 % however the values lie: here over two decades.
func TestAPackedSketchIsBounded(t *testing.T) {
	worst := 0.0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(3, seed))
		var d sketch
		var values []float64
		for range 400 {
			v := 0.05 * math.Exp(rng.Float64()*math.Log(100))
			if seed%2 == 1 {
				v = math.Exp(rng.NormFloat64()*0.5) * 0.3
			}
			values = append(values, v)
			d.add(v, leastTTFT)
		}
		slices.Sort(values)
		p := d.pack()
		if len(p) > packedMost || !slices.IsSorted(p) {
			t.Fatalf("%d entries, want %d at most, by bucket", len(p), packedMost)
		}
		s := Sketch{least: leastTTFT}
		s.addPacked(p)
		if s.Count() != 400 {
			t.Fatalf("%d of 400 are counted", s.Count())
		}
		for _, share := range []float64{0.1, 0.5, 0.9, 0.99} {
			worst = max(worst, math.Abs(s.Quantile(share)/quantileOf(values, share)-1))
		}
	}
	t.Logf("worst quantile is %.1f %% off", 100*worst)
	if worst > 0.06 {
		t.Errorf("a quantile is %.1f %% off", 100*worst)
	}
}

func TestWhatIsNoValueIsNotCounted(t *testing.T) {
	var d sketch
	for _, v := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		d.add(v, leastTPS)
	}
	s := Sketch{least: leastTPS}
	s.addDense(&d)
	if s.Count() != 0 || !math.IsNaN(s.Quantile(0.5)) {
		t.Errorf("%d values are counted, the median is %g", s.Count(), s.Quantile(0.5))
	}
	d.add(1e-12, leastTPS)
	d.add(1e12, leastTPS)
	s.addDense(&d)
	if s.Quantile(0) > leastTPS*1.02 || s.Quantile(1) < leastTPS*0.98e6 {
		t.Errorf("values outside of the range count as %g and %g, want its edges", s.Quantile(0), s.Quantile(1))
	}
}

func TestACountStaysAtTheMostThereIs(t *testing.T) {
	var d sketch
	d[5], d[9] = math.MaxUint32, 1
	if p := d.pack(); len(p) != 2 || p[0]>>countBits != 5 || p[0]&packedCount != packedCount || p[1]&packedCount != 1 {
		t.Errorf("packed as %v", p)
	}
}
