package sim

import (
	"context"
	"net/http"
	"time"
)

// Point is one measured level of a curve: N streams at TPS tokens/s each.
type Point struct {
	N   int
	TPS float64
}

// Model says how long one decode step takes: from Table, log-log interpolated
// and continued by a fit, or A + B·√n + C·n when Table is empty; plus D for
// every prompt token prefilled in the step. In seconds.
type Model struct {
	Table      []Point
	A, B, C, D float64
}

// Options configures a Server. Zero values mean the defaults.
type Options struct {
	Names        []string // model names it answers to; required
	Model        Model    // required
	MaxNumSeqs   int      // default 256; more wait in a queue
	PrefillBatch int      // prompt tokens per step; default 8192
	Noise        float64  // standard deviation of the AR(1) step noise; default 0.05; negative = none
	Seed         uint64
	Speed        float64  // default 1: how much faster than real time
	Behaviours   []string // see Behaviours
	Faults       []string // "drift:1.5@30s"
}

// Server speaks OpenAI over HTTP in front of one Engine, plus /sim/truth,
// /sim/set and /sim/reset. Run drives the engine.
type Server struct{}

// NewServer checks o.
func NewServer(o Options) (*Server, error) { panic("unwritten") }

// Run steps the engine until ctx ends.
func (s *Server) Run(ctx context.Context) error { panic("unwritten") }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { panic("unwritten") }

// Truth is what the engine really did. n = sequences that produced a token in
// that step; a sequence's first token counts in neither seconds nor tokens;
// seconds are as clients see them.
type Truth struct {
	Model     string       `json:"model"`
	Points    []TruthPoint `json:"points"`
	Running   int          `json:"running"`
	Waiting   int          `json:"waiting"`
	Cancelled int          `json:"cancelled"`
}

// TruthPoint is one level of concurrency.
type TruthPoint struct {
	N             int     `json:"n"`
	StreamSeconds float64 `json:"stream_seconds"`
	Tokens        float64 `json:"tokens"`
	TPS           float64 `json:"tps"`
}

// Truth returns the record so far; Reset clears it.
func (s *Server) Truth() Truth { panic("unwritten") }
func (s *Server) Reset()       { panic("unwritten") }

// StepSeconds is the noise-free time of a decode step with n sequences and p
// prompt tokens prefilled in it.
func (m Model) StepSeconds(n int, p float64) float64 { panic("unwritten") }

var _ = time.Second
