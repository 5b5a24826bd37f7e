package admin

import (
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/admin/signin"
	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/dashboard"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/keys"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/usage"
)

// Options configures the admin port; all fields are required unless said.
type Options struct {
	Config  func() *config.Config // in force now; called for each answer
	Router  *router.Router
	Book    *profiles.Book
	Metrics *telemetry.Metrics
	Watch   *history.Watch

	// Drain takes a backend out of service for new requests, or puts it back in;
	// false = there is none of that name, and none that was drained and is gone.
	// nil = the port cannot.
	Drain func(backend string, drained bool) bool

	// Breakers returns the states of the breakers, by backend: closed, half_open or
	// open. nil = what the health of a backend, of which its breaker is but one
	// reason, lets suppose.
	Breakers func() map[string]string

	// LastErrors returns what went wrong at each target since it last served a
	// request; those without are left out. nil = nobody knows.
	LastErrors func() map[profiles.Target]LastError

	// BytesPerToken returns how many bytes of text a token of a target has; NaN = not
	// known. nil = nobody knows.
	BytesPerToken func(profiles.Target) float64

	// ByText reports whether streams of a target bring no usage, so that their tokens are
	// counted by their text. nil = nobody knows.
	ByText func(profiles.Target) bool

	// Plan answers what would become of the load, in requests per second by route, were
	// something else. It tells progress, from 0 to 1. Its errors but that of ctx are
	// mistakes of the question. nil = the port cannot.
	Plan func(ctx context.Context, q api.PlanQuestion, offered map[string]float64, progress func(share float64)) (*api.Plan, error)

	// Usage returns what was used within [from, to); all = by all replicas. Budgets
	// returns those of keys and teams. nil = nobody counts.
	Usage   func(ctx context.Context, from, to usage.Hour) (cells []usage.Cell, all bool)
	Budgets func() []usage.State

	// Jobs returns the batch jobs that run, api.MaxJobs at most. nil = there are none.
	Jobs func(ctx context.Context) ([]api.Job, error)

	// Keys are those that are handed out; nil = none can be. KeysChanged is called
	// when one was changed here. Note writes to the audit log, and does not wait. nil
	// = nobody wants to know.
	Keys        *keys.Ring
	KeysChanged func()
	Note        func(ctx context.Context, who, did, to string)

	// Log is told why somebody could not sign in; nil = nobody is. Provider carries
	// requests to the provider of sign-ins; nil = the network.
	Log      *slog.Logger
	Provider http.RoundTripper

	// DataURL says where clients reach the data port, for the hints of the
	// page: "http://127.0.0.1:8080", or "" while that is not known. Called for
	// each event; nil = from Config.Listen.
	DataURL func() string
}

// LastError is what went wrong at a target.
type LastError struct {
	Status  int       // of its last answer; 0 = there was none, or none that is one
	Message string    // one line, without secrets
	Since   time.Time // the first of those in a row
	Within  bool      // they were within answers that had begun
}

// port is the admin port. Everything in it is safe for concurrent use.
type port struct {
	o         Options
	known     atomic.Pointer[settings]
	frames    [4]frames     // by window
	listeners chan struct{} // open pages
	plan      planState
	doors     doors
}

// settings is one configuration, indexed.
type settings struct {
	conf     *config.Config
	backends map[string]config.Backend // by name
	goals    map[string]float64        // SLO attainment by route name
}

// settings returns the configuration in force.
func (p *port) settings() *settings {
	conf := p.o.Config()
	if s := p.known.Load(); s != nil && s.conf == conf {
		return s
	}
	s := &settings{conf: conf, backends: map[string]config.Backend{}, goals: conf.Goals()}
	for _, b := range conf.Backends {
		s.backends[b.Name] = b
	}
	p.known.Store(s)
	return s
}

// New returns the handler of the admin port. It starts nothing.
func New(o Options) http.Handler {
	p := &port{o: o, listeners: make(chan struct{}, maxListeners)}
	for w := range p.frames {
		p.frames[w].take = func(now time.Time) (*frame, error) { return p.frame(now, history.Window(w)) }
	}

	mux := chi.NewRouter()
	mux.Use(clientconn.Early, secured, p.host(newHostGuard(o.Config().Admin.Listen)), p.private, heads)
	mux.NotFound(notFound)
	mux.MethodNotAllowed(wrongMethod(mux))
	mux.Get("/healthz", healthz)
	mux.Method(http.MethodGet, "/metrics", o.Metrics.Handler())
	mux.Get("/api/v1/profiles", p.serveProfiles)
	mux.Get("/api/v1/routes", p.serveRoutes)
	mux.Get("/api/v1/history", p.serveHistory)
	mux.Get("/api/v1/timeline", p.serveTimeline)
	mux.Get("/api/v1/jobs", p.serveJobs)
	mux.Get("/api/v1/usage", p.serveUsage)
	mux.Get("/api/v1/scorecard", p.serveScorecard)
	mux.Get("/api/v1/keys", p.administered(p.serveKeys))
	mux.Post("/api/v1/keys", p.administered(p.serveNewKey))
	mux.Delete("/api/v1/keys/{name}", p.administered(p.serveRevoke))
	mux.Post("/api/v1/keys/{name}/rotate", p.administered(p.serveRotate))
	mux.Get("/api/v1/audit", p.administered(p.serveAudit))
	mux.Get("/api/v1/session", p.serveSession)
	mux.Get(signin.LoginPath, p.byDoor(p.serveLogin))
	mux.Get(signin.CallbackPath, p.byDoor(p.serveCallback))
	mux.With(sameOrigin).Post(signin.LogoutPath, p.byDoor(p.serveLogout))
	mux.Get("/api/v1/decisions", p.serveDecisions)
	mux.With(sameOrigin).Post("/api/v1/explain", p.serveExplain)
	mux.Get("/api/v1/plan", p.servePlanState)
	mux.With(sameOrigin).Post("/api/v1/plan", p.servePlan)
	mux.Get(eventsPath, p.serveEvents)
	mux.With(sameOrigin).Post("/api/v1/backends/{name}/drain", p.serveDrain(true))
	mux.With(sameOrigin).Post("/api/v1/backends/{name}/resume", p.serveDrain(false))
	mux.Get("/api/openapi.json", serveOpenAPI)
	mux.Get(profilesPath+"*", p.servePprof)
	servePage(mux, dashboard.Files())
	return mux
}

// healthz says that the process is alive.
func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write([]byte("ok\n"))
}

// serveOpenAPI answers GET /api/openapi.json.
func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(api.OpenAPI)
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
