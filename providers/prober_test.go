package providers

import (
	"context"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
)

// A backend is failing when it fails three times in a row, loading while it says
// so, and sound whatever else it answers; what comes too late is no news.
func TestProber(t *testing.T) {
	const (
		wellFor = 10 * time.Second
		illFor  = 20 * time.Second
	)
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			w.Write([]byte(body))
		}
	}
	for name, c := range map[string]struct {
		ill  http.HandlerFunc // nil = its port is closed
		want []Condition
	}{
		"gone":          {nil, []Condition{Failing, Sound}},
		"500":           {status(500, "EngineDeadError"), []Condition{Failing, Sound}},
		"503":           {status(503, ""), []Condition{Failing, Sound}},
		"loading":       {status(503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`), []Condition{Loading, Sound}},
		"no such page":  {status(404, ""), nil},
		"a key":         {status(401, ""), nil},
		"busy":          {status(429, ""), nil},
		"slow":          {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil},
		"fails by turn": {byTurns(status(500, ""), status(200, "")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var network memnet.Network
				var ill atomic.Bool
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/prefix/health" || r.Header.Get("Authorization") != "Bearer key" {
						t.Errorf("asked for %s with %q", r.URL.Path, r.Header.Get("Authorization"))
					}
					if ill.Load() {
						c.ill(w, r)
					}
				})
				serve := func() *http.Server {
					l := must.Get(network.Listen("engine:80"))(t)
					s := &http.Server{Handler: handler}
					go s.Serve(l)
					return s
				}
				server := serve()
				var told []Condition
				p, err := NewProber(ProberOptions{
					Backend: Options{Name: "e", BaseURL: "http://engine/prefix/v1", Kind: "vllm", APIKey: "key", Dial: network.Dial},
					OnCondition: func(is Condition, err error) {
						if told = append(told, is); (err == nil) != (is == Sound) {
							t.Errorf("%v with the reason %v", is, err)
						}
					},
				})
				must.Do(t, err)
				ctx, stop := context.WithCancel(context.Background())
				ended := make(chan error)
				go func() { ended <- p.Run(ctx) }()
				<-time.After(wellFor)
				if ill.Store(true); c.ill == nil {
					server.Close()
				}
				<-time.After(illFor)
				ill.Store(false)
				if c.ill == nil {
					server = serve()
				}
				<-time.After(wellFor)
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				server.Close()
				if !slices.Equal(told, c.want) {
					t.Errorf("told %v, want %v", told, c.want)
				}
			})
		})
	}
}

func byTurns(a, b http.HandlerFunc) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%2 == 0 {
			a(w, r)
		} else {
			b(w, r)
		}
	}
}

// A host that does not take a connection in time is gone; one that takes it and
// does not answer is only slow.
func TestAHostThatTakesNoConnectionIsFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []Condition
		p, err := NewProber(ProberOptions{
			Backend: Options{Name: "e", BaseURL: "http://engine/v1", Kind: "vllm", Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				<-ctx.Done()
				return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
			}},
			OnCondition: func(c Condition, _ error) { told = append(told, c) },
		})
		must.Do(t, err)
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		err = p.Run(ctx)
		<-time.After(probeConnect) // the last dial
		if err != nil || !slices.Equal(told, []Condition{Failing}) {
			t.Errorf("told %v, %v; want failing", told, err)
		}
	})
}

// Hosted APIs have no page to look at, unless one is named.
func TestWhereThereIsNoPage(t *testing.T) {
	for kind, want := range map[string]bool{"": false, "openai": false, "azure": false, "anthropic": false, "sglang": true, "ollama": true, "llamacpp": true, "tgi": true} {
		o := ProberOptions{Backend: Options{Name: "e", BaseURL: "http://h/v1", Kind: kind, APIKey: "secret"}, OnCondition: func(Condition, error) {}}
		if p, err := NewProber(o); err != nil || (p != nil) != want {
			t.Errorf("kind %q: a prober: %v, %v; want %v", kind, p != nil, err, want)
		}
		o.URL = "http://elsewhere/up"
		if p, err := NewProber(o); err != nil || p == nil || len(p.page.request.Header) != 0 || p.page.key != nil {
			t.Errorf("kind %q with a URL: %v, %v: want one that shows no key elsewhere", kind, p, err)
		}
	}
}

// What this machine lacks says nothing about a backend: with no file left, or
// without a resolver, all of them would be down at once.
func TestOwnTroubleIsNoNews(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, c := range []struct {
		err  error
		news bool
	}{
		{dial(os.NewSyscallError("socket", syscall.EMFILE)), false},
		{dial(os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)), false},
		{dial(&net.DNSError{Err: "server misbehaving", Name: "gpu", IsTemporary: true}), false},
		{dial(&net.DNSError{Err: "no such host", Name: "gpu", IsNotFound: true}), true},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), true},
	} {
		p, err := NewProber(ProberOptions{
			Backend: Options{Name: "e", BaseURL: "http://engine/v1", Kind: "vllm", Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, c.err
			}},
			OnCondition: func(Condition, error) {},
		})
		must.Do(t, err)
		if got := p.look(t.Context()); got.news != c.news {
			t.Errorf("%v: news is %v, want %v", c.err, got.news, c.news)
		}
	}
}

// Servers that misuse the connection do not hold the prober up, and an answer
// without end is an answer.
func TestProberBeforeStrangeServers(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    Condition
		news    bool
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/health" {
				t.Error("a redirect was followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, Sound, true},
		"a body without end": {func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}, Sound, true},
		"a body that hangs": {func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, Sound, true},
		"an error that hangs": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, Failing, true},
		"headers without end": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			conn.Write([]byte("HTTP/1.1 200 OK\r\n"))
			for {
				if _, err := conn.Write([]byte("x: " + strings.Repeat("y", 1000) + "\r\n")); err != nil {
					return
				}
			}
		}, Failing, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var network memnet.Network
				l := must.Get(network.Listen("engine:80"))(t)
				s := &http.Server{Handler: c.handler}
				go s.Serve(l)
				defer s.Close()
				p := must.Get(NewProber(ProberOptions{
					Backend:     Options{Name: "e", BaseURL: "http://engine/v1", Kind: "vllm", Dial: network.Dial},
					OnCondition: func(Condition, error) {},
				}))(t)
				began := time.Now()
				got := p.look(t.Context())
				if got.is != c.want || got.news != c.news {
					t.Errorf("%v, news %v; want %v, %v", got.is, got.news, c.want, c.news)
				}
				if took := time.Since(began); took > probePatience {
					t.Errorf("the look took %v", took)
				}
			})
		})
	}
}
