package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// curvesAnswer is what pacer curves --json prints: the answer of
// /api/v1/profiles, with where it is from and what the routes promise.
type curvesAnswer struct {
	From    string         `json:"from"` // URL, store or files
	Targets []curvesTarget `json:"targets"`
	Notes   []string       `json:"notes,omitempty"` // what was left out, with its line
}

// curvesTarget is the curve of one target, and what it rests on.
type curvesTarget struct {
	Backend  string          `json:"backend"`
	Model    string          `json:"model"` // "" = the client's own name goes up
	Kind     string          `json:"kind,omitempty"`
	Health   string          `json:"health,omitempty"`
	InFlight *curvesInFlight `json:"in_flight,omitempty"` // nil = nobody is there who counts

	Scale            figure      `json:"scale"` // drift, by which the speeds are already multiplied
	Margin           figure      `json:"margin"`
	Rho              figure      `json:"rho"` // prompt tokens per output token, learned
	Support          *[2]int     `json:"support"`
	Fit              *curvesFit  `json:"fit"`
	TTFT             *curvesTTFT `json:"ttft"`
	TokensSeen       figure      `json:"tokens_seen"`
	MeanOutputTokens figure      `json:"mean_output_tokens"`
	UpdatedAt        *time.Time  `json:"updated_at"`

	// OutputTokens is the mean answer that --prompt-tokens was divided by.
	OutputTokens *figure `json:"output_tokens,omitempty"`

	Points []curvesPoint `json:"points"`
	Floors []curvesFloor `json:"floors"`

	line []curvesPoint // every level, or many, from 1 to twice the support: what is drawn
	load string        // prompt load that the speeds hold for, in words
	age  string        // of the newest evidence, in words; "" = none
}

type curvesInFlight struct {
	Waiting  int `json:"waiting"`
	Decoding int `json:"decoding"`
	N        int `json:"n"`
	M        int `json:"m"`
}

type curvesFit struct {
	A figure `json:"a"`
	B figure `json:"b"`
	C figure `json:"c"`
	D figure `json:"d"`
}

type curvesTTFT struct {
	BaseS             figure `json:"base_s"`
	PrefillTokensPerS figure `json:"prefill_tokens_per_s"`
	Slots             *int   `json:"slots"` // nil = the engine never queued
}

// curvesPoint is the curve at n and at p prompt tokens per decode step; what
// the bin of n saw at its own prompt load is Tokens/StreamSeconds.
type curvesPoint struct {
	N             int    `json:"n"`
	P             figure `json:"p"`
	TPS           figure `json:"tps"`
	Low           figure `json:"low"`
	AggregateTPS  figure `json:"aggregate_tps"`
	StreamSeconds figure `json:"stream_seconds"`
	Tokens        figure `json:"tokens"`
	Steps         figure `json:"steps"`
	AgeS          figure `json:"age_s"`
	Source        string `json:"source"` // learned | prior | extrapolated; "" = unknown
}

// curvesFloor is what a route promises, and how far the target keeps it at the
// prompt load of the answer. A lower bound is where knowledge ends, not speed.
type curvesFloor struct {
	Route              string `json:"route"`
	MinTPS             figure `json:"min_tps"`
	Holds              int    `json:"holds"` // largest n whose TPS meets the floor; 0 = none
	HoldsIsLowerBound  bool   `json:"holds_is_lower_bound"`
	Admits             int    `json:"admits"` // largest n whose bound does, which is what decides
	AdmitsIsLowerBound bool   `json:"admits_is_lower_bound"`
}

// figure is a number that JSON may not know: NaN is null.
type figure float64

// MarshalJSON implements json.Marshaler.
func (f figure) MarshalJSON() ([]byte, error) {
	if !f.known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *figure) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*f = figure(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(f))
}

func (f figure) known() bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

// text returns f in so many digits behind the point, – when unknown.
func (f figure) text(digits int) string {
	if !f.known() {
		return "–"
	}
	return strconv.FormatFloat(float64(f), 'f', digits, 64)
}

// measure fills in how far the floors are kept, by the line.
func (t *curvesTarget) measure() {
	for i := range t.Floors {
		f := &t.Floors[i]
		last := len(t.line) - 1
		for j, p := range t.line {
			if p.TPS >= f.MinTPS {
				f.Holds, f.HoldsIsLowerBound = p.N, j == last
			}
			if p.Low >= f.MinTPS {
				// The bound ends at 0 where knowledge does.
				f.Admits, f.AdmitsIsLowerBound = p.N, j == last || !(t.line[j+1].Low > 0)
			}
		}
	}
}

// csv writes one row a point. Unknown is empty.
func (a *curvesAnswer) csv(out io.Writer) error {
	w := csv.NewWriter(out)
	w.Write([]string{"backend", "model", "n", "p", "tps", "low", "aggregate_tps", "stream_seconds", "tokens", "steps", "age_s", "source"})
	for _, t := range a.Targets {
		for _, p := range t.Points {
			row := []string{t.Backend, t.Model, strconv.Itoa(p.N)}
			for _, f := range []figure{p.P, p.TPS, p.Low, p.AggregateTPS, p.StreamSeconds, p.Tokens, p.Steps, p.AgeS} {
				text := ""
				if f.known() {
					text = strconv.FormatFloat(float64(f), 'g', 6, 64)
				}
				row = append(row, text)
			}
			w.Write(append(row, p.Source))
		}
	}
	w.Flush()
	return w.Error()
}

// ago says how long something is past, in its two leading units at most.
func ago(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}
