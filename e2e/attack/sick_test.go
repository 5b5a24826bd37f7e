package attack

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// sickness is what stands before an engine and answers in its place.
type sickness struct {
	status atomic.Int64 // of every answer; 0 = the engine answers
	poison atomic.Int64 // of the answer to what has poison in it
	asked  atomic.Int64 // what it answered in the engine's place
}

// serve returns the URL of the engine behind s.
func (s *sickness) serve(t *testing.T, engine string) string {
	to := must.Get(url.Parse(engine))(t)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		status := s.status.Load()
		if strings.Contains(string(body), "poison") {
			status = s.poison.Load()
		}
		if status == 0 || r.Method != http.MethodPost {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			proxy.ServeHTTP(w, r)
			return
		}
		s.asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status))
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: model, status %d","code":"sick"}}`, status)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// sick is an engine that answers with each of the statuses to everything, for a
// while, beside one that has three places: whoever needs one waits in line for it.
func sick(name string, statuses ...int) attack {
	var ill *sickness
	return attack{name: name, by: engine, waits: true, site: site{
		fleet: func(t *testing.T, engine string) string {
			ill = &sickness{}
			return fmt.Sprintf(`backends: [ { name: well, url: "%s/v1", kind: vllm, max_concurrency: 3 }, { name: sick, url: "%s/v1", health_url: off } ]
routes:
  - { model: chat, targets: [ { backend: well, model: llama-3.1-70b }, { backend: sick, model: llama-3.1-70b } ], on_infeasible: [ { queue: 60s }, shed ] }
  - { model: other, targets: [ { backend: well, model: llama-3.1-70b } ] }
`, engine, ill.serve(t, engine))
		},
	}, run: func(v *victim) { sickFor(v, ill, statuses) }}
}

func sickFor(v *victim, ill *sickness, statuses []int) {
	long := 2 * time.Second
	if *full {
		long = 20 * time.Second
	}
	profiles := func() string { return string(proctest.Get(v, v.gateway.Ready["admin"]+"/api/v1/profiles")) }
	for _, status := range statuses {
		ill.asked.Store(0)
		ill.status.Store(int64(status))
		proctest.Until(v, "it is known to be sick", func() bool {
			return strings.Contains(profiles(), fmt.Sprintf(`"last_error":{"status":%d,"message":"Incorrect API key provided: model`, status))
		})
		<-time.After(long) // it stays sick, and others are served
		// Those that were on their way when it fell ill, five more, and a probe a second.
		if asked, most := ill.asked.Load(), int64(9+9+5+2*long.Seconds()+20); asked > most {
			v.Errorf("status %d: it was asked %d times, want %d at most", status, asked, most)
		}
		ill.status.Store(0)
		proctest.Until(v, "it is back", func() bool { return strings.Count(profiles(), `"last_error":null`) == 2 })
	}
}

// refusedForItself is a tenant whose requests all engines refuse for what is in
// them, as many as it can send: it takes them from nobody else.
func refusedForItself() attack {
	var both [2]*sickness
	return attack{name: "a tenant whose requests all engines refuse", by: tenant, waits: true, site: site{
		fleet: func(t *testing.T, engine string) string {
			both = [2]*sickness{{}, {}}
			return fmt.Sprintf(`backends: [ { name: a, url: "%s/v1", max_concurrency: 5 }, { name: b, url: "%s/v1", max_concurrency: 5 } ]
routes:
  - { model: chat, targets: [ { backend: a, model: llama-3.1-70b }, { backend: b, model: llama-3.1-70b } ], on_infeasible: [ { queue: 60s }, shed ] }
  - { model: other, targets: [ { backend: a, model: llama-3.1-70b }, { backend: b, model: llama-3.1-70b } ] }
`, both[0].serve(t, engine), both[1].serve(t, engine))
		},
	}, run: func(v *victim) {
		for _, status := range []int64{401, 404, 500} {
			for _, s := range both {
				s.poison.Store(status)
			}
			long := 2 * time.Second
			if *full {
				long = 20 * time.Second
			}
			until := time.Now().Add(long)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for time.Now().Before(until) {
						if got := raw(v, v.addr, post("other", "", strings.ReplaceAll(hello, "hello", "poison"))); strings.Contains(got, "API key") && status < 500 {
							v.Errorf("status %d: the tenant reads %.300q", status, got)
						}
					}
				})
			}
			for look := time.Tick(100 * time.Millisecond); time.Now().Before(until); <-look {
				if open := v.metric("pacer_breaker_state"); open != 0 {
					v.Errorf("status %d: breakers %v, want all closed", status, open)
				}
			}
			all.Wait()
		}
		if both[0].asked.Load()+both[1].asked.Load() < 10 {
			v.Errorf("%d poisoned requests came to the engines: this is no attack", both[0].asked.Load()+both[1].asked.Load())
		}
	}}
}
