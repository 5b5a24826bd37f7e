package admin

import (
	"io/fs"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/dashboard"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// Options configures the admin port; all fields are required unless said.
type Options struct {
	Config  *config.Config
	Router  *router.Router
	Book    *profiles.Book
	Metrics *telemetry.Metrics

	// DataURL says where clients reach the data port, for the hints of the
	// page: "http://127.0.0.1:8080", or "" while that is not known. Called for
	// each event; nil = from Config.Listen.
	DataURL func() string
}

// port is the admin port. Everything in it is safe for concurrent use.
type port struct {
	o         Options
	backends  map[string]config.Backend // by name
	goals     map[string]float64        // SLO attainment by route name
	started   time.Time
	frames    frames
	listeners listeners
}

// New returns the handler of the admin port. It starts nothing.
func New(o Options) http.Handler {
	p := &port{
		o:        o,
		backends: map[string]config.Backend{},
		goals:    map[string]float64{},
		started:  time.Now(),
	}
	for _, b := range o.Config.Backends {
		p.backends[b.Name] = b
	}
	for _, r := range o.Config.Routes {
		for _, name := range r.Models {
			p.goals[name] = r.SLO.Attainment
		}
	}
	p.frames.take = p.frame

	mux := chi.NewRouter()
	mux.Use(secured, newHostGuard(o.Config.Admin.Listen).handler)
	mux.NotFound(notFound)
	mux.MethodNotAllowed(wrongMethod)
	mux.Get("/healthz", healthz)
	mux.Method(http.MethodGet, "/metrics", o.Metrics.Handler())
	mux.Get("/api/v1/profiles", p.serveProfiles)
	mux.Get("/api/v1/routes", p.serveRoutes)
	mux.Get("/api/v1/decisions", p.serveDecisions)
	mux.With(sameOrigin).Post(pathExplain, p.serveExplain)
	mux.Get("/api/v1/events", p.serveEvents)
	servePage(mux, dashboard.Files())
	return mux
}

// pathExplain is what is asked with a body.
const pathExplain = "/api/v1/explain"

// healthz says that the process is alive.
func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write([]byte("ok\n"))
}

// servePage serves the files of the page, index.html as /.
func servePage(mux *chi.Mux, files fs.FS) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		panic("admin: the embedded page cannot be read: " + err.Error())
	}
	for _, e := range entries {
		data, err := fs.ReadFile(files, e.Name())
		if err != nil {
			panic("admin: the embedded page cannot be read: " + err.Error())
		}
		path := "/" + e.Name()
		if e.Name() == "index.html" {
			path = "/"
		}
		contentType := typeOf(e.Name())
		mux.Get(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Write(data)
		})
	}
}
