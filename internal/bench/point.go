package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/report"
)

// Spread is how some seconds are spread over requests.
type Spread struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
}

// Point is one level.
type Point struct {
	N    int     `json:"n"`                    // users; of an open loop the mean of those at once
	Rate float64 `json:"rate,omitempty"`       // of an open loop: requests per second that were asked for
	Sent float64 `json:"sent_per_s,omitempty"` // of an open loop: that were sent

	TPS          float64 `json:"tps"`                 // of ONE stream, after its first chunk
	TPSCI        float64 `json:"tps_ci,omitempty"`    // half of the 95 % confidence of TPS, over repeats; 0 = not known
	AggregateTPS float64 `json:"aggregate_tps"`       // tokens of all streams per second of the level
	OutputTPS    float64 `json:"output_tokens_per_s"` // of the streams that came to their end, with their first
	Requests     float64 `json:"requests_per_s"`      // that came to their end
	Goodput      float64 `json:"goodput_per_s"`       // of these, those that met the SLO
	Good         float64 `json:"good_share"`          // of all that ended, were shed or failed

	TTFT    float64 `json:"ttft_s"` // mean
	TTFTP99 float64 `json:"ttft_p99_s"`
	Connect float64 `json:"connect_s"` // mean: of TTFT, what passed until there was a connection
	TTFTs   Spread  `json:"ttft"`
	TPOT    Spread  `json:"tpot"`
	E2E     Spread  `json:"e2e"`

	StreamS float64 `json:"stream_seconds"`
	Tokens  float64 `json:"tokens"`
	Streams int     `json:"streams"` // that came to their end
	Shed    int     `json:"shed"`
	Failed  int     `json:"failed"`
	Error   string  `json:"error,omitempty"` // the last one of Failed
}

// pointOf sums up what the users of one level saw. TPS is tokens over
// stream-seconds. An event counts for as many tokens as the engine says it had.
func pointOf(l Level, all []timed, lasted time.Duration, o *Options) (Point, error) {
	p := Point{N: l.N, Rate: l.Rate}
	measured := slices.DeleteFunc(slices.Clone(all), func(r timed) bool { return r.at < o.Warmup && o.Requests == 0 })
	window := o.Duration
	if o.Requests > 0 {
		window = lasted
	} else if !slices.ContainsFunc(measured, func(r timed) bool { return r.Outcome == loadgen.Done && r.Tokens > r.First }) {
		// Streams are longer than the level: of those that began within it there are
		// only the first tokens, and nobody has said how many an event had.
		measured, window = all, o.Warmup+o.Duration
	}
	perEvent := tokensPerEvent(measured)
	var ttft, tpot, e2e []float64
	var events, busy, whole, connect float64
	good := 0
	for i := range measured {
		r := &measured[i].Result
		p.count(r)
		if r.TTFT > 0 {
			ttft = append(ttft, r.TTFT.Seconds())
			connect += r.Connect.Seconds()
		}
		events += float64(max(r.Tokens-r.First, 0))
		p.StreamS += r.Decode.Seconds()
		busy += (r.TTFT + r.Decode).Seconds()
		if r.Outcome != loadgen.Done {
			continue
		}
		e2e = append(e2e, (r.TTFT + r.Decode).Seconds())
		whole += float64(r.Tokens)
		if after := r.Tokens - r.First; after > 0 && r.Decode > 0 {
			tpot = append(tpot, r.Decode.Seconds()/(float64(after)*perEvent))
		}
		if o.SLO.met(r) {
			good++
		}
	}
	p.Tokens = events * perEvent
	if !(p.Tokens > 0 && p.StreamS > 0) {
		return p, p.nothing()
	}
	p.TPS = p.Tokens / p.StreamS
	if l.N > 0 {
		p.AggregateTPS = float64(l.N) * p.TPS
	} else {
		p.N = max(1, int(math.Round(busy/window.Seconds())))
		p.Sent = float64(len(measured)) / window.Seconds()
		if p.Rate == 0 { // a trace: over the time in which it sends
			p.Rate = float64(len(measured)) / max(o.Duration, time.Second).Seconds()
		}
		p.AggregateTPS = p.Tokens / window.Seconds()
	}
	p.OutputTPS = whole * perEvent / window.Seconds()
	p.Requests, p.Goodput = float64(p.Streams)/window.Seconds(), float64(good)/window.Seconds()
	if ended := p.Streams + p.Shed + p.Failed; ended > 0 {
		p.Good = float64(good) / float64(ended)
	}
	p.TTFTs, p.TPOT, p.E2E = spreadOf(ttft), spreadOf(tpot), spreadOf(e2e)
	p.TTFT, p.TTFTP99, p.Connect = p.TTFTs.Mean, p.TTFTs.P99, connect/float64(max(len(ttft), 1))
	return p, nil
}

// count counts how r ended.
func (p *Point) count(r *loadgen.Result) {
	switch r.Outcome {
	case loadgen.Shed:
		p.Shed++
	case loadgen.Failed:
		p.Failed++
		p.Error = report.Harmless(r.Err.Error())
	case loadgen.Done:
		p.Streams++
	}
}

// tokensPerEvent is what the engine's own counts say.
func tokensPerEvent(results []timed) float64 {
	var told, events float64
	for _, r := range results {
		if r.Outcome == loadgen.Done && r.Counted > 0 && r.Tokens > 0 {
			told += float64(r.Counted)
			events += float64(r.Tokens)
		}
	}
	if events == 0 {
		return 1
	}
	return told / events
}

// nothing says why a level has no figure.
func (p *Point) nothing() error {
	switch {
	case p.Error != "":
		return fmt.Errorf("no stream came: %s", p.Error)
	case p.Shed > 0:
		return errors.New("every request was refused with 429")
	}
	return errors.New("no stream had two tokens; raise --duration or --output")
}

// spreadOf is that of xs; NaN has no place in JSON, so of none it is 0.
func spreadOf(xs []float64) Spread {
	if len(xs) == 0 {
		return Spread{}
	}
	slices.Sort(xs)
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	at := func(q float64) float64 { return xs[max(int(math.Ceil(q*float64(len(xs)))), 1)-1] }
	return Spread{Mean: sum / float64(len(xs)), P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}

// average is the mean of several runs of a level.
func average(runs []Point) Point {
	if len(runs) == 1 {
		return runs[0]
	}
	out := Point{Rate: 0}
	k := float64(len(runs))
	n := 0.0
	spread := func(into *Spread, s Spread) {
		into.Mean += s.Mean / k
		into.P50 += s.P50 / k
		into.P90 += s.P90 / k
		into.P99 += s.P99 / k
	}
	for i := range runs {
		r := &runs[i]
		n += float64(r.N) / k
		out.Rate += r.Rate / k
		out.Sent += r.Sent / k
		out.TPS += r.TPS / k
		out.AggregateTPS += r.AggregateTPS / k
		out.OutputTPS += r.OutputTPS / k
		out.Requests += r.Requests / k
		out.Goodput += r.Goodput / k
		out.Good += r.Good / k
		out.Connect += r.Connect / k
		spread(&out.TTFTs, r.TTFTs)
		spread(&out.TPOT, r.TPOT)
		spread(&out.E2E, r.E2E)
		out.StreamS += r.StreamS
		out.Tokens += r.Tokens
		out.Streams += r.Streams
		out.Shed += r.Shed
		out.Failed += r.Failed
		if r.Error != "" {
			out.Error = r.Error
		}
	}
	out.N = int(math.Round(n))
	out.TTFT, out.TTFTP99 = out.TTFTs.Mean, out.TTFTs.P99
	square := 0.0
	for i := range runs {
		square += (runs[i].TPS - out.TPS) * (runs[i].TPS - out.TPS)
	}
	out.TPSCI = student(len(runs)-1) * math.Sqrt(square/(k-1)/k)
	return out
}

// student is the 97.5 % quantile of Student's t with so many degrees of freedom.
func student(df int) float64 {
	table := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086}
	if df <= len(table) {
		return table[df-1]
	}
	return 1.96 + 2.5/float64(df) // within 0.3 % beyond the table
}

// sum finds the knee, and the most users at the floor, of a closed loop.
func (a *Answer) sum() {
	points := a.Points
	if len(points) == 0 || points[0].Rate > 0 {
		return
	}
	a.Knee = kneeOf(points)
	if a.Floor <= 0 {
		return
	}
	for i, p := range points {
		if p.TPS < a.Floor {
			if i > 0 { // the line between two levels, in log n
				b := points[i-1]
				share := (b.TPS - a.Floor) / (b.TPS - p.TPS)
				a.AtFloor = math.Floor(math.Exp(math.Log(float64(b.N))*(1-share) + math.Log(float64(p.N))*share))
			}
			return
		}
	}
	a.AtFloor, a.AtFloorLeast = float64(points[len(points)-1].N), true
}

// kneeOf is the level at which what all get together lies farthest above the line
// from the first level to the last, both axes over their range; 0 = it lies nowhere
// a tenth above.
func kneeOf(points []Point) float64 {
	if len(points) < 3 {
		return 0
	}
	first, last := points[0], points[len(points)-1]
	knee, most := 0.0, 0.1
	for _, p := range points[1 : len(points)-1] {
		x := float64(p.N-first.N) / float64(last.N-first.N)
		y := (p.AggregateTPS - first.AggregateTPS) / (last.AggregateTPS - first.AggregateTPS)
		if d := y - x; d > most {
			knee, most = float64(p.N), d
		}
	}
	return knee
}
