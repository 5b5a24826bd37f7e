package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// Placer decides where a request goes. *router.Router is one; the demo has a
// round-robin.
type Placer interface {
	Place(now time.Time, req router.Request) router.Decision
}

// Options configures a Gateway; all fields are required unless said.
type Options struct {
	Config   *config.Config
	Placer   Placer
	Router   *router.Router // for grants, readiness and ticks
	Book     *profiles.Book
	Backends map[string]*providers.Backend // by name, one for each of Config.Backends
	Metrics  *telemetry.Metrics
	Log      *slog.Logger
}

// Gateway serves the data port.
type Gateway struct{}

// New checks o and returns a Gateway. It starts nothing.
func New(o Options) (*Gateway, error) { panic("unwritten") }

// Handler is the data port.
func (g *Gateway) Handler() http.Handler { panic("unwritten") }

// Run ticks the router while somebody waits in line, and returns when ctx
// ends.
func (g *Gateway) Run(ctx context.Context) error { panic("unwritten") }

// Deliver hands grants to those who wait for them. It never blocks.
func (g *Gateway) Deliver(grants []router.Grant) { panic("unwritten") }

// Drain makes /readyz answer 503, so that nobody sends more; running requests
// go on.
func (g *Gateway) Drain() { panic("unwritten") }
