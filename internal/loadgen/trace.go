package loadgen

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Arrival is one request of a trace.
type Arrival struct {
	At           time.Duration // since the start of the trace
	PromptTokens int
	OutputTokens int
}

// maxTrace bounds how many requests of a trace are read.
const maxTrace = 1_000_000

// ReadTrace reads a CSV with the columns arrival_s, prompt_tokens and
// output_tokens, in any order among others, sorted by arrival, up to until (0 =
// all). Errors name the line.
func ReadTrace(r io.Reader, until time.Duration) ([]Arrival, error) {
	cr := csv.NewReader(r)
	cr.ReuseRecord = true
	header, err := cr.Read()
	if err != nil {
		return nil, fmt.Errorf("trace: header: %w", err)
	}
	at := slices.Index(header, "arrival_s")
	prompt := slices.Index(header, "prompt_tokens")
	output := slices.Index(header, "output_tokens")
	if at < 0 || prompt < 0 || output < 0 {
		return nil, errors.New("trace: line 1: the header must name arrival_s, prompt_tokens and output_tokens")
	}
	var out []Arrival
	for {
		rec, err := cr.Read()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
		line, _ := cr.FieldPos(0)
		s, err1 := strconv.ParseFloat(rec[at], 64)
		p, err2 := strconv.Atoi(rec[prompt])
		o, err3 := strconv.Atoi(rec[output])
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("trace: line %d: %w", line, err)
		}
		if !(s >= 0 && s < 1e9) || p < 0 || o < 1 {
			return nil, fmt.Errorf("trace: line %d: want arrival_s ≥ 0, prompt_tokens ≥ 0 and output_tokens ≥ 1", line)
		}
		a := Arrival{At: time.Duration(s * float64(time.Second)), PromptTokens: p, OutputTokens: o}
		if len(out) > 0 && a.At < out[len(out)-1].At {
			return nil, fmt.Errorf("trace: line %d: arrivals go back in time; sort the file by arrival_s", line)
		}
		if until > 0 && a.At > until {
			return out, nil
		}
		if len(out) == maxTrace {
			return nil, fmt.Errorf("trace: more than %d requests", maxTrace)
		}
		out = append(out, a)
	}
}
