package providers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/credential"
	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
)

// scraped is a Scraper before a handler, and what it told.
type scraped struct {
	network memnet.Network

	mu      sync.Mutex
	loads   []EngineLoad
	signals []string // "" = it holds
}

// scrape runs a scraper for d.
func scrape(t *testing.T, o ScraperOptions, d time.Duration, handler http.HandlerFunc) *scraped {
	t.Helper()
	s := &scraped{}
	for _, addr := range []string{"engine:80", "engine:9100", "elsewhere:80"} {
		l := must.Get(s.network.Listen(addr))(t)
		server := &http.Server{Handler: handler}
		go server.Serve(l)
		defer server.Close()
	}
	o.Backend.Name, o.Backend.BaseURL, o.Backend.Dial = "engine", "http://engine/v1", s.network.Dial
	if o.URL == "" {
		o.URL = "http://engine/metrics"
	}
	o.Life = 5 * time.Second
	o.OnLoad = func(l EngineLoad) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.loads = append(s.loads, l)
	}
	o.OnSignal = func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		text := ""
		if err != nil {
			text = err.Error()
		}
		s.signals = append(s.signals, text)
	}
	scraper := must.Get(NewScraper(o))(t)
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := scraper.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	return s
}

// The page is read about once a second, at times of its own.
func TestScraper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tokens atomic.Int32
		var at []time.Time
		s := scrape(t, ScraperOptions{Backend: Options{Kind: "vllm"}}, time.Minute, func(w http.ResponseWriter, r *http.Request) {
			at = append(at, time.Now())
			fmt.Fprintf(w, "vllm:num_requests_running{engine=\"0\"} 7.0\nvllm:num_requests_waiting{engine=\"0\"} 2.0\nvllm:generation_tokens_total %d\n", tokens.Add(1))
		})
		if len(at) < 55 || len(at) > 66 {
			t.Errorf("%d readings in a minute, want one a second", len(at))
		}
		even := true
		for i := range at[1:] {
			gap := at[i+1].Sub(at[i])
			even = even && gap == at[1].Sub(at[0])
			if gap < 900*time.Millisecond || gap > 1100*time.Millisecond {
				t.Errorf("a gap of %v between two readings", gap)
			}
		}
		if even {
			t.Error("all gaps are the same, want a jitter")
		}
		if len(s.loads) != len(at) || s.loads[0].Running != 7 || s.loads[0].Waiting != 2 || !s.loads[3].At.Equal(at[3]) {
			t.Errorf("%d loads of %d readings, the first %+v", len(s.loads), len(at), s.loads[0])
		}
		if len(s.signals) != 0 {
			t.Errorf("signals %q, want none", s.signals)
		}
	})
}

// A page that claims load and stands still grows old; one that claims none does
// not.
func TestAPageThatStandsStillGrowsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		page := func(running int) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, "vllm:num_requests_running %d\nprocess_cpu_seconds_total %v\n", running, time.Since(start))
			}
		}
		s := scrape(t, ScraperOptions{}, 20*time.Second, page(3))
		first, last := s.loads[0], s.loads[len(s.loads)-1]
		if !first.At.Equal(last.At) {
			t.Errorf("the page is as of %v and later as of %v, want the first reading", first.At, last.At)
		}
		if len(s.signals) != 1 || !strings.Contains(s.signals[0], "has not changed for 5s although 3 sequences run") {
			t.Errorf("signals %q, want that the page has not changed, once", s.signals)
		}
		s = scrape(t, ScraperOptions{}, 20*time.Second, page(0))
		if last := s.loads[len(s.loads)-1]; time.Since(last.At) > 2*time.Second || len(s.signals) > 0 {
			t.Errorf("an idle page is as of %v before the end, signals %q", time.Since(last.At), s.signals)
		}
	})
}

// Whatever is wrong with the page is told once, after its last reading has
// grown old, and its return once.
func TestScraperFailures(t *testing.T) {
	good := "vllm:num_requests_running 0\n"
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"404":        {http.NotFound, "the answer is 404 Not Found"},
		"redirect":   {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "the answer is 302 Found"},
		"nonsense":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "vllm:num_requests_running NaN\n") }, "NaN is no number"},
		"a web page": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "the page has no"},
		"slow":       {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within 800ms"},
		"slow body": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, good)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "no answer within 800ms"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			line := []byte(strings.Repeat("# nothing\n", 1000))
			for range mostPage/len(line) + 2 {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}, "more than 4 MiB"},
		"cut": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s := scrape(t, ScraperOptions{}, 40*time.Second, func(w http.ResponseWriter, r *http.Request) {
					if since := time.Since(start); since > 10*time.Second && since < 30*time.Second {
						c.serve(w, r)
						return
					}
					fmt.Fprint(w, good)
				})
				if len(s.signals) != 2 || !strings.Contains(s.signals[0], c.want) || s.signals[1] != "" {
					t.Errorf("signals %q, want one with %q and one that it is back", s.signals, c.want)
				}
				if len(s.loads) < 15 || len(s.loads) > 25 {
					t.Errorf("%d loads, want those of 20 s", len(s.loads))
				}
			})
		})
	}
	t.Run("short", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			s := scrape(t, ScraperOptions{}, 20*time.Second, func(w http.ResponseWriter, r *http.Request) {
				if since := time.Since(start); since > 10*time.Second && since < 14*time.Second {
					http.NotFound(w, r)
					return
				}
				fmt.Fprint(w, good)
			})
			if len(s.signals) != 0 {
				t.Errorf("signals %q of a gap of 4 s, want none", s.signals)
			}
		})
	})
	t.Run("never there", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := scrape(t, ScraperOptions{}, time.Minute, http.NotFound)
			if len(s.signals) != 1 || len(s.loads) != 0 {
				t.Errorf("signals %q and %d loads, want one and none", s.signals, len(s.loads))
			}
		})
	})
}

// slowKey is a source of what comes too late for each who asks.
type slowKey struct{ credential.Source }

func (slowKey) Get(ctx context.Context) (credential.Value, error) {
	<-ctx.Done()
	return credential.Value{}, fmt.Errorf("the command vault: nothing so far: %w", context.Cause(ctx))
}

// Where the credentials are not there in time, nobody has asked the engine.
func TestSlowCredentialsAreNotTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := ScraperOptions{Backend: Options{Keys: []Key{{Source: slowKey{}}}}}
		s := scrape(t, o, 20*time.Second, func(http.ResponseWriter, *http.Request) { t.Error("the engine was asked") })
		want := "the engine was not asked: no credentials: the command vault: nothing so far: context deadline exceeded"
		if len(s.signals) != 1 || s.signals[0] != want {
			t.Errorf("signals %q, want %q", s.signals, want)
		}
	})
}

// The backend's credentials go to the server of its url, and to no other.
func TestCredentialsStayWithTheBackend(t *testing.T) {
	for page, want := range map[string]bool{
		"http://engine/metrics":         true,
		"http://engine:80/metrics?a=b":  true,
		"http://engine:9100/metrics":    false,
		"http://elsewhere/v1/x/metrics": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			var got atomic.Pointer[http.Request]
			o := Options{APIKey: "s3cret", Headers: http.Header{"X-Team": {"blue"}}}
			scrape(t, ScraperOptions{Backend: o, URL: page}, 3*time.Second, func(_ http.ResponseWriter, r *http.Request) { got.Store(r) })
			r := got.Load()
			if r == nil {
				t.Fatalf("%s was not read", page)
			}
			sent := r.Header.Get("Authorization") == "Bearer s3cret" && r.Header.Get("X-Team") == "blue"
			none := r.Header.Get("Authorization") == "" && r.Header.Get("X-Team") == ""
			if sent != want || none == want {
				t.Errorf("%s: got %v for %s, want credentials: %v", page, r.Header, r.Host, want)
			}
		})
	}
	base := Options{Name: "e", BaseURL: "https://engine/v1"}
	for page, want := range map[string]bool{"https://engine:443/metrics": true, "https://ENGINE/metrics": true, "http://engine:443/metrics": false, "http://engine/metrics": false} {
		base.APIKey = "s3cret"
		s := must.Get(NewScraper(ScraperOptions{Backend: base, URL: page, Life: 1, OnLoad: func(EngineLoad) {}, OnSignal: func(error) {}}))(t)
		if sent := s.page.key != nil; sent != want {
			t.Errorf("%s for a backend behind TLS: credentials sent: %v, want %v", page, sent, want)
		}
	}
}

func TestNewScraperSaysWhatIsMissing(t *testing.T) {
	whole := ScraperOptions{
		Backend: Options{Name: "engine", BaseURL: "http://engine/v1"}, URL: "http://engine/metrics",
		Life: time.Second, OnLoad: func(EngineLoad) {}, OnSignal: func(error) {},
	}
	must.Get(NewScraper(whole))(t)
	for name, edit := range map[string]func(*ScraperOptions){
		"BaseURL":  func(o *ScraperOptions) { o.Backend.BaseURL = "" },
		"URL":      func(o *ScraperOptions) { o.URL = "/metrics" },
		"password": func(o *ScraperOptions) { o.URL = "http://user:s3cret@engine/metrics" },
		"Life":     func(o *ScraperOptions) { o.Life = 0 },
		"OnLoad":   func(o *ScraperOptions) { o.OnLoad = nil },
		"OnSignal": func(o *ScraperOptions) { o.OnSignal = nil },
		"APIKey":   func(o *ScraperOptions) { o.Backend.APIKey = "s3cret\n" },
	} {
		o := whole
		edit(&o)
		if _, err := NewScraper(o); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want an error that names it and shows no secret", name, err)
		}
	}
}

// An engine whose page of metrics has work and stands still hangs, though its server answers
// looks; a byte of an answer, or a page that goes on, is life.
func TestAnEngineWhoseMetricsStandStillHangs(t *testing.T) {
	page := func(running int, tokens func() int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "vllm:num_requests_running %d\nvllm:generation_tokens_total %d\n", running, tokens())
		}
	}
	stands := func() int { return 7 }
	for name, c := range map[string]struct {
		page  http.HandlerFunc
		bytes bool
		owes  bool
		want  bool
	}{
		"it stands still":  {page(3, stands), false, true, true},
		"bytes come":       {page(3, stands), true, true, false},
		"it owes nothing":  {page(3, stands), false, false, false},
		"it has no work":   {page(0, stands), false, true, false},
		"it makes tokens":  {page(3, func() int { return int(time.Now().Unix()) }), false, true, false},
		"it is not there":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, false, true, false},
		"it is in trouble": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPulse(nil)
				if c.owes {
					p.Owe(time.Now())
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for each := time.NewTicker(time.Second); ; { // its server answers looks
						select {
						case <-ctx.Done():
							return
						case <-each.C:
							p.See(time.Now())
							if c.bytes {
								p.Hear(time.Now())
							}
						}
					}
				}()
				scrape(t, ScraperOptions{Pulse: p}, 15*time.Second, c.page)
				if p.Hung() != c.want || p.Stands() != c.want {
					t.Errorf("after 15 s it hangs: %v, want %v", p.Hung(), c.want)
				}
				if c.want {
					scrape(t, ScraperOptions{Pulse: p}, 3*time.Second, page(3, func() int { return int(time.Now().Unix()) }))
					if p.Hung() {
						t.Error("it hangs still, though it makes tokens")
					}
				}
				stop()
				<-ended
			})
		})
	}
}
