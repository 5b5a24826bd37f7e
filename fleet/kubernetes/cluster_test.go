package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

// server plays an API server's part: lists at a version, and watches that a test
// feeds, cuts and fails.
type server struct {
	*httptest.Server

	mu      sync.Mutex
	lists   map[string]string // path → items of the list, and its version
	version int
	pods    map[string]string // name → annotations
	status  int               // what every request is answered; 0 = as it should be
	token   string            // what requests have to carry; "" = nothing
	gone    int               // watches that are answered 410 from now on
	opened  chan *watching
	listed  int
	queries []string
}

type watching struct {
	path  string
	query string
	lines chan string // "" ends the watch cleanly
	cut   chan struct{}
}

func (w *watching) send(kind, object string) {
	w.lines <- fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object)
}

func newServer(t *testing.T) *server {
	s := &server{lists: map[string]string{}, pods: map[string]string{}, version: 100, opened: make(chan *watching, 100)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Start()
	t.Cleanup(s.CloseClientConnections)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.queries = append(s.queries, r.URL.Path+"?"+r.URL.RawQuery)
	status := s.status
	if s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token {
		status = http.StatusUnauthorized
	}
	if status == 0 && r.URL.Query().Has("watch") && s.gone > 0 {
		s.gone--
		status = http.StatusGone
	}
	list, there := s.lists[r.URL.Path]
	version := s.version
	s.mu.Unlock()
	if status != 0 {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"kind":"Status","message":"as the test says","code":%d}`, status)
		return
	}
	if name, ok := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/serving/pods/"); ok {
		s.mu.Lock()
		annotations := s.pods[name]
		s.mu.Unlock()
		fmt.Fprintf(w, `{"metadata":{"name":%q,"uid":"uid-%s","annotations":{%s}}}`, name, name, annotations)
		return
	}
	if !there {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if !r.URL.Query().Has("watch") {
		s.mu.Lock()
		s.listed++
		s.mu.Unlock()
		fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d"},"items":[%s]}`, version, list)
		return
	}
	one := &watching{path: r.URL.Path, query: r.URL.RawQuery, lines: make(chan string), cut: make(chan struct{})}
	_ = http.NewResponseController(w).Flush()
	s.opened <- one
	for {
		select {
		case <-r.Context().Done():
			return
		case <-one.cut:
			panic(http.ErrAbortHandler)
		case line := <-one.lines:
			if line == "" {
				return
			}
			fmt.Fprintln(w, line)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

const slicesPath = "/apis/discovery.k8s.io/v1/namespaces/serving/endpointslices"

// slice is an EndpointSlice with one endpoint for each pod: "name ip state".
func slice(name string, version int, pods ...string) string {
	var list []string
	for _, p := range pods {
		f := strings.Fields(p)
		list = append(list, fmt.Sprintf(`{"addresses":[%q],"conditions":{"ready":%t,"serving":%t,"terminating":%t},"targetRef":{"kind":"Pod","name":%q,"uid":"uid-%s"}}`,
			f[1], f[2] == "ready", f[2] != "unready", f[2] == "terminating", f[0], f[0]))
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"%d"},"addressType":"IPv4","ports":[{"name":"http","port":8000}],"endpoints":[%s]}`, name, version, strings.Join(list, ","))
}

func backendOf(k config.Kubernetes) config.Backend {
	return config.Backend{Name: "vllm", URL: "http://vllm:8000/v1", Discover: config.Discover{Kubernetes: k}}
}

// words are engines in short: "name address" and " draining".
func words(list []config.Found) string {
	var out []string
	for _, f := range list {
		text := f.Name + " " + f.Address
		if f.Draining {
			text += " draining"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// patience bounds a wait for what has to happen.
const patience = time.Minute

// until looks until there are these engines, and with an error or without.
func until(t *testing.T, c *Cluster, b config.Backend, want string, ill bool) []config.Found {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		list, err := c.Look(ctx, b)
		cancel()
		if words(list) == want && (err != nil) == ill {
			return list
		}
		if time.Now().After(deadline) {
			t.Fatalf("engines %q and error %v, want %q, ill %t", words(list), err, want, ill)
		}
		select {
		case <-c.News():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func next(t *testing.T, s *server) *watching {
	t.Helper()
	select {
	case w := <-s.opened:
		return w
	case <-time.After(patience):
		t.Fatal("nobody watches")
		return nil
	}
}

func newCluster(t *testing.T, s *server) (*Cluster, config.Backend) {
	c := New(Options{})
	c.pause = time.Millisecond
	t.Cleanup(c.Close)
	return c, backendOf(config.Kubernetes{Service: "vllm", Namespace: "serving", API: s.URL})
}

// Pods come, end and go; the watch is cut, ends, misses what is gone and is refused.
// What is known stays throughout, and what was missed is known at last.
func TestEnginesBehindAService(t *testing.T) {
	s := newServer(t)
	s.lists[slicesPath] = slice("a", 100, "vllm-0 10.0.0.1 ready", "vllm-1 10.0.0.2 unready")
	s.pods["vllm-0"] = `"pacer.dev/usd-per-hour":"2.5","other":"x"`
	c, b := newCluster(t, s)
	list := until(t, c, b, "vllm-0 10.0.0.1:8000", false)
	if list[0].UID != "uid-vllm-0" || len(list[0].Says) != 1 || list[0].Says["usd_per_hour"] != "2.5" {
		t.Errorf("vllm-0 is %+v", list[0])
	}
	w := next(t, s)
	if !strings.Contains(w.query, "resourceVersion=100") || !strings.Contains(w.query, "allowWatchBookmarks=true") || !strings.Contains(w.query, "service-name%3Dvllm") {
		t.Errorf("watched with %s", w.query)
	}
	w.send("MODIFIED", slice("a", 101, "vllm-0 10.0.0.1 ready", "vllm-1 10.0.0.2 ready"))
	until(t, c, b, "vllm-0 10.0.0.1:8000, vllm-1 10.0.0.2:8000", false)
	w.send("MODIFIED", slice("a", 102, "vllm-0 10.0.0.1 terminating", "vllm-1 10.0.0.2 ready"))
	until(t, c, b, "vllm-0 10.0.0.1:8000 draining, vllm-1 10.0.0.2:8000", false)
	w.send("ADDED", slice("b", 103, "vllm-2 10.0.0.3 ready"))
	w.send("MODIFIED", slice("a", 104, "vllm-1 10.0.0.2 ready"))
	until(t, c, b, "vllm-1 10.0.0.2:8000, vllm-2 10.0.0.3:8000", false)
	w.send("BOOKMARK", `{"metadata":{"resourceVersion":"150"}}`)

	// Cut without a word: watched on from the bookmark, and nothing listed.
	close(w.cut)
	w = next(t, s)
	if !strings.Contains(w.query, "resourceVersion=150") || s.listed != 1 {
		t.Errorf("after a cut watched with %s, listed %d times", w.query, s.listed)
	}
	until(t, c, b, "vllm-1 10.0.0.2:8000, vllm-2 10.0.0.3:8000", false)

	// A clean end, and then the version is gone: listed anew.
	s.set(func() { s.gone, s.version, s.lists[slicesPath] = 1, 200, slice("a", 200, "vllm-3 10.0.0.4 ready") })
	w.lines <- ""
	until(t, c, b, "vllm-3 10.0.0.4:8000", false)
	w = next(t, s)

	// The same within the watch.
	s.set(func() { s.version, s.lists[slicesPath] = 300, slice("a", 300, "vllm-4 10.0.0.5 ready") })
	w.send("ERROR", `{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}`)
	until(t, c, b, "vllm-4 10.0.0.5:8000", false)
	w = next(t, s)
	if !strings.Contains(w.query, "resourceVersion=300") {
		t.Errorf("after 410 watched with %s", w.query)
	}

	// The API server is away: what is known stays, and it is said.
	s.set(func() { s.status = http.StatusServiceUnavailable; s.lists[slicesPath] = "" })
	close(w.cut)
	until(t, c, b, "vllm-4 10.0.0.5:8000", true)
	s.set(func() { s.status, s.version, s.lists[slicesPath] = 0, 400, slice("a", 400, "vllm-5 10.0.0.6 ready") })
	w = next(t, s) // from version 300 on
	w.send("MODIFIED", slice("a", 400, "vllm-5 10.0.0.6 ready"))
	until(t, c, b, "vllm-5 10.0.0.6:8000", false)

	// To scale to nothing is no failure.
	w.send("DELETED", slice("a", 401))
	until(t, c, b, "", false)
}

// What cannot be read is listed again, and not believed.
func TestGarbageIsListedAnew(t *testing.T) {
	s := newServer(t)
	s.lists[slicesPath] = slice("a", 100, "vllm-0 10.0.0.1 ready")
	c, b := newCluster(t, s)
	until(t, c, b, "vllm-0 10.0.0.1:8000", false)
	for _, line := range []string{"}{", `{"type":"MODIFIED","object":[]}`, `{"type":"ERROR","object":{"code":500}}`} {
		next(t, s).lines <- line
	}
	next(t, s)
	until(t, c, b, "vllm-0 10.0.0.1:8000", false)
}

// An API server that sends without end is not read without end. What was known stays.
func TestTooMuchIsNotRead(t *testing.T) {
	s := newServer(t)
	few := slice("a", 100, "vllm-0 10.0.0.1 ready")
	s.lists[slicesPath] = few
	c, b := newCluster(t, s)
	until(t, c, b, "vllm-0 10.0.0.1:8000", false)
	next(t, s).lines <- `{"type":"MODIFIED","object":{"metadata":{"name":"` + strings.Repeat("x", maxEvent+1) + `"}}}`
	w := next(t, s) // listed anew
	until(t, c, b, "vllm-0 10.0.0.1:8000", false)
	many := make([]string, mostObjects+1)
	for i := range many {
		many[i] = slice(fmt.Sprint(i), 200)
	}
	s.set(func() { s.gone, s.lists[slicesPath] = 1, strings.Join(many, ",") })
	if s.listed != 2 { // no list is under way
		t.Errorf("listed %d times, want again after an event without end", s.listed)
	}
	w.lines <- ""
	until(t, c, b, "vllm-0 10.0.0.1:8000", true)
	s.set(func() { s.lists[slicesPath] = few })
	until(t, c, b, "vllm-0 10.0.0.1:8000", false)
}

// The token is read again for each request, since it is replaced while the process
// runs; and so is what the API server is trusted by.
func TestTheTokenIsReadAgain(t *testing.T) {
	s := &server{lists: map[string]string{slicesPath: slice("a", 100, "vllm-0 10.0.0.1 ready")}, pods: map[string]string{}, version: 100, opened: make(chan *watching, 100), token: "two"}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.CloseClientConnections)
	dir := t.TempDir()
	write := func(name, text string) {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("token", "one\n")
	write("namespace", "serving\n")
	write("ca.crt", "none")
	host, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	c := New(Options{AccountDir: dir, Getenv: func(name string) string {
		return map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}[name]
	}})
	c.pause = time.Millisecond
	t.Cleanup(c.Close)
	b := backendOf(config.Kubernetes{Service: "vllm"})
	until(t, c, b, "", true) // trusted by nobody
	write("ca.crt", pemOf(s))
	until(t, c, b, "", true) // and not let in
	write("token", "two\n")
	until(t, c, b, "vllm-0 10.0.0.1:8000", false)
}

// Outside of a cluster it is said what to write.
func TestThereIsNoCluster(t *testing.T) {
	c := New(Options{Getenv: func(string) string { return "" }})
	defer c.Close()
	if _, err := c.Look(t.Context(), backendOf(config.Kubernetes{Service: "vllm"})); err == nil || !strings.Contains(err.Error(), "write api,") {
		t.Errorf("got %v", err)
	}
}

// The pods of an InferencePool, which may select others one day, and of the version
// before.
func TestEnginesOfAPool(t *testing.T) {
	const pods = "/api/v1/namespaces/serving/pods"
	podOf := func(name, ip string, ready bool, more string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"uid":"uid-%s","resourceVersion":"7","annotations":{"pacer.dev/kind":"vllm"}%s},"status":{"phase":"Running","podIP":%q,"conditions":[{"type":"Ready","status":"%s"}]}}`,
			name, name, more, ip, map[bool]string{true: "True", false: "False"}[ready])
	}
	for group, spec := range map[string]string{
		"inference.networking.k8s.io/v1":         `{"selector":{"matchLabels":{"app":"vllm","tier":"gpu"}},"targetPorts":[{"number":8000}]}`,
		"inference.networking.x-k8s.io/v1alpha2": `{"selector":{"app":"vllm","tier":"gpu"},"targetPortNumber":8000}`,
	} {
		t.Run(group, func(t *testing.T) {
			s := newServer(t)
			s.lists["/apis/"+group+"/namespaces/serving/inferencepools"] = `{"metadata":{"name":"llama","resourceVersion":"5"},"spec":` + spec + `}`
			s.lists[pods] = podOf("one", "10.0.0.1", true, "") + "," + podOf("two", "10.0.0.2", false, "") + "," + podOf("three", "10.0.0.3", false, `,"deletionTimestamp":"2026-01-01T00:00:00Z"`)
			c := New(Options{})
			c.pause = time.Millisecond
			t.Cleanup(c.Close)
			b := backendOf(config.Kubernetes{Pool: "llama", Namespace: "serving", API: s.URL})
			list := until(t, c, b, "one 10.0.0.1:8000, three 10.0.0.3:8000 draining", false)
			if list[0].Says["kind"] != "vllm" {
				t.Errorf("says %v", list[0].Says)
			}
			var pool *watching
			for range 2 {
				if w := next(t, s); strings.Contains(w.query, "fieldSelector=metadata.name%3Dllama") {
					pool = w
				} else if !strings.Contains(w.query, "app%3Dvllm%2Ctier%3Dgpu") {
					t.Errorf("watched with %s", w.query)
				}
			}
			s.set(func() { s.lists[pods] = podOf("four", "10.0.0.4", true, "") })
			pool.send("MODIFIED", `{"metadata":{"name":"llama","resourceVersion":"8"},"spec":{"selector":{"matchLabels":{"app":"other"}},"targetPorts":[{"number":8000},{"number":8001}]}}`)
			until(t, c, b, "four-8000 10.0.0.4:8000, four-8001 10.0.0.4:8001", false)
			next(t, s)
			pool.send("DELETED", `{"metadata":{"name":"llama","resourceVersion":"9"}}`)
			until(t, c, b, "four-8000 10.0.0.4:8000, four-8001 10.0.0.4:8001", true)
		})
	}
}

// Where the cluster has both groups, the pool is found in whichever has it, and that of
// the newer group is the one to go by. A group that may not be read is as one that is not
// there.
func TestAPoolInEitherGroup(t *testing.T) {
	const (
		newer = "/apis/inference.networking.k8s.io/v1/namespaces/serving/inferencepools"
		older = "/apis/inference.networking.x-k8s.io/v1alpha2/namespaces/serving/inferencepools"
	)
	s := newServer(t)
	s.lists[newer] = `{"metadata":{"name":"other","resourceVersion":"5"},"spec":{"selector":{"matchLabels":{"app":"other"}},"targetPorts":[{"number":1}]}}`
	s.lists[older] = `{"metadata":{"name":"llama","resourceVersion":"5"},"spec":{"selector":{"app":"vllm"},"targetPortNumber":8000}}`
	s.lists["/api/v1/namespaces/serving/pods"] = `{"metadata":{"name":"one","uid":"u"},"status":{"phase":"Running","podIP":"10.0.0.1","conditions":[{"type":"Ready","status":"True"}]}}`
	c := New(Options{})
	c.pause = time.Millisecond
	t.Cleanup(c.Close)
	b := backendOf(config.Kubernetes{Pool: "llama", Namespace: "serving", API: s.URL})
	until(t, c, b, "one 10.0.0.1:8000", false)
	of := map[string]*watching{}
	for range 3 {
		w := next(t, s)
		of[w.path] = w
	}
	of[newer].send("ADDED", `{"metadata":{"name":"llama","resourceVersion":"8"},"spec":{"selector":{"matchLabels":{"app":"vllm"}},"targetPorts":[{"number":9000}]}}`)
	until(t, c, b, "one 10.0.0.1:9000", false)
	of[older].send("DELETED", `{"metadata":{"name":"llama","resourceVersion":"9"}}`)
	of[newer].send("MODIFIED", `{"metadata":{"name":"llama","resourceVersion":"10"},"spec":{"selector":{"matchLabels":{"app":"vllm"}},"targetPorts":[{"number":9001}]}}`)
	until(t, c, b, "one 10.0.0.1:9001", false)
	of[newer].send("DELETED", `{"metadata":{"name":"llama","resourceVersion":"11"}}`)
	until(t, c, b, "one 10.0.0.1:9001", true)
}

// An endpoint in two slices is one engine: by IPv4, and ending if either says so.
func TestOneEngineInTwoSlices(t *testing.T) {
	six := strings.Replace(slice("b", 1, "vllm-0 fd00::1 terminating"), "IPv4", "IPv6", 1)
	s := newSource(&client{}, "serving", place{config.Kubernetes{Service: "vllm"}, "80"}, func() {})
	for _, names := range [][]string{{"a", "b"}, {"b", "a"}} {
		var four, other endpointSlice
		for text, to := range map[string]*endpointSlice{slice("a", 1, "vllm-0 10.0.0.1 ready"): &four, six: &other} {
			must.Do(t, json.Unmarshal([]byte(text), to))
		}
		s.hearSlices(map[string]endpointSlice{names[0]: four, names[1]: other})
		if got := words(sorted(s.found)); got != "vllm-0 10.0.0.1:8000 draining" {
			t.Errorf("got %q", got)
		}
	}
}

// A backend that is configured no longer is not watched any more.
func TestWhatIsNotConfiguredIsNotWatched(t *testing.T) {
	s := newServer(t)
	s.lists[slicesPath] = slice("a", 100, "vllm-0 10.0.0.1 ready")
	c, b := newCluster(t, s)
	until(t, c, b, "vllm-0 10.0.0.1:8000", false)
	next(t, s)
	c.Keep([]config.Backend{b})
	if len(c.sources) != 1 {
		t.Error("what is configured is watched no more")
	}
	c.Keep(nil)
	c.running.Wait() // ends, or the test does not
}
