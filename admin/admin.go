package admin

import (
	"net/http"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// Options configures the admin port; all fields are required.
type Options struct {
	Config  *config.Config
	Router  *router.Router
	Book    *profiles.Book
	Metrics *telemetry.Metrics
}

// New returns the handler of the admin port.
func New(o Options) http.Handler { panic("unwritten") }
