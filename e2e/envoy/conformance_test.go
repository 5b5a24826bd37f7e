package envoy

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// TestConformance plays the cases of the Gateway API Inference Extension's own suite,
// under their names, as far as they ask something of a picker and of what carries the
// requests. The suite needs a cluster and a gateway that is set up by it: what it says
// through a Gateway, an HTTPRoute and an InferencePool is said here in Envoy's own
// configuration, and its selection by a header as the subset of endpoints that the
// protocol has for it. docs/ENVOY.md has the table.
func TestConformance(t *testing.T) {
	const controller = "the status that a gateway's controller writes on its objects, in a cluster"
	doc := must.Get(os.ReadFile("../../docs/ENVOY.md"))(t)
	for _, c := range []struct {
		name   string
		play   func(t *testing.T)
		reason string // why it is not played
	}{
		{name: "GatewayFollowingEPPRouting", play: followsThePicker},
		{name: "GatewayFollowingEPPRoutingWithDataParallelism", play: followsThePickerToPorts},
		{name: "GatewayDestinationEndpointServed", play: saysWhoServed},
		{name: "EppUnAvailableFailOpen", play: failsOpen},
		{name: "GatewayWeightedAcrossTwoInferencePools", play: splitsBetweenPools},
		{name: "HTTPRouteMultipleRulesDifferentPools", play: hasAPoolForEachRule},
		{name: "HTTPRouteMultipleGatewaysDifferentPools", play: hasAPoolForEachGateway},
		{name: "InferencePoolAppProtocol", reason: "how the gateway speaks to engines; no picker sees it"},
		{name: "InferencePoolAccepted", reason: controller},
		{name: "InferencePoolHTTPRoutePortValidation", reason: controller},
		{name: "InferencePoolInvalidEPPService", reason: controller},
		{name: "InferencePoolMissingEPPRef", reason: controller},
		{name: "InferencePoolResolvedRefsCondition", reason: controller},
		{name: "HTTPRouteInvalidInferencePoolRef", reason: controller},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(string(doc), "| "+c.name+" |") {
				t.Errorf("docs/ENVOY.md has no row for it")
			}
			if c.play == nil {
				t.Skip(c.reason)
			}
			c.play(t)
		})
	}
}

const (
	// subsetHeader names the endpoints that a request may go to, in these tests.
	subsetHeader = "X-Test-Subset"

	httpFilters = "                http_filters:\n"
	toMetadata  = httpFilters + `                  - name: envoy.filters.http.header_to_metadata
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config
                      request_rules:
                        - header: x-test-subset
                          on_header_present: { metadata_namespace: envoy.lb.subset_hint, key: x-gateway-destination-endpoint-subset, type: STRING }
                          remove: true
`
)

// subsets has Envoy read subsetHeader.
var subsets = []string{httpFilters, toMetadata}

// chatBody asks for an answer of two tokens.
func chatBody(model string) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":2,"messages":[{"role":"user","content":"hello"}]}`, model)
}

// address is where the i-th engine listens.
func (w *world) address(t testing.TB, i int) string {
	return "127.0.0.1:" + portOf(t, w.engines[i].Ready["url"])
}

// hits are the requests that Envoy sent to each of the engines, of all clusters.
func (w *world) hits(t testing.TB) []int {
	t.Helper()
	var page struct {
		Clusters []struct {
			Hosts []struct {
				Address struct {
					Socket struct {
						Port int `json:"port_value"`
					} `json:"socket_address"`
				}
				Stats []struct{ Name, Value string }
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	must.Do(t, json.Unmarshal(proctest.Get(t, w.envoy.admin+"/clusters?format=json"), &page))
	hits := make([]int, len(w.engines))
	for _, c := range page.Clusters {
		for _, h := range c.Hosts {
			for i := range w.engines {
				if portOf(t, w.engines[i].Ready["url"]) != fmt.Sprint(h.Address.Socket.Port) {
					continue
				}
				for _, s := range h.Stats {
					if s.Name == "rq_total" {
						n := 0
						fmt.Sscan(s.Value, &n)
						hits[i] += n
					}
				}
			}
		}
	}
	return hits
}

// sends n requests, ten at once, and returns how many came to each engine.
func (w *world) sends(t *testing.T, n int, headers ...string) []int {
	t.Helper()
	before := w.hits(t)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range n / 10 {
				if resp, text := w.post(t, "/v1/chat/completions", chatBody("chat"), headers...); resp.StatusCode != http.StatusOK {
					t.Errorf("%d %s", resp.StatusCode, text)
				}
			}
		})
	}
	wg.Wait()
	came := w.hits(t)
	sum := 0
	for i := range came {
		came[i] -= before[i]
		sum += came[i]
	}
	if sum != n {
		t.Errorf("%d requests came to engines, %v, want %d", sum, came, n)
	}
	return came
}

// within reports whether all of came is of the engines that are listed.
func within(came []int, engines ...int) bool {
	for i, n := range came {
		if n > 0 && !slices.Contains(engines, i) {
			return false
		}
	}
	return true
}

func followsThePicker(t *testing.T) {
	w := newWorld(t, "20", "", subsets...)
	for _, engines := range [][]int{{0}, {1}, {2}, {0, 1}, {0, 1, 2}} {
		var named []string
		for _, i := range engines {
			named = append(named, w.address(t, i))
		}
		if came := w.sends(t, 100, subsetHeader, strings.Join(named, ",")); !within(came, engines...) {
			t.Errorf("of 100 requests for the engines %v %v came to each", engines, came)
		}
	}
	if resp, text := w.post(t, "/v1/chat/completions", chatBody("chat"), subsetHeader, "10.0.0.1:80"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d %s where no engine may be taken, want 503", resp.StatusCode, text)
	}
}

// The engines are ports of one host, as ranks of data parallelism are.
func followsThePickerToPorts(t *testing.T) {
	w := newWorld(t, "20", "", subsets...)
	if came := w.sends(t, 100, subsetHeader, "127.0.0.1"); !within(came, 0, 1, 2) || slices.Min(came) == 0 {
		t.Errorf("of 100 requests for the host %v came to each port, want some to all", came)
	}
	if came := w.sends(t, 100, subsetHeader, w.address(t, 2)+","+w.address(t, 1)); !within(came, 1, 2) {
		t.Errorf("of 100 requests for two ports %v came to each", came)
	}
}

func saysWhoServed(t *testing.T) {
	w := newWorld(t, "20", "", subsets...)
	for i, name := range []string{"a", "b", "c"} {
		before := w.hits(t)
		resp, text := w.post(t, "/v1/chat/completions", chatBody("chat"), subsetHeader, w.address(t, i))
		if got := resp.Header.Get("X-Pacer-Backend"); resp.StatusCode != http.StatusOK || got != name || w.hits(t)[i] != before[i]+1 {
			t.Errorf("%d %s, served by %q, want %q", resp.StatusCode, text, got, name)
		}
	}
	// Who was named first is gone, and Envoy goes on to the next.
	kill(w.engines[0])
	resp, text := w.post(t, "/v1/chat/completions", chatBody("chat"), subsetHeader, w.address(t, 0)+","+w.address(t, 2))
	if got := resp.Header.Get("X-Pacer-Backend"); resp.StatusCode != http.StatusOK || got != "c" {
		t.Errorf("%d %s, served by %q, want c", resp.StatusCode, text, got)
	}
}

func failsOpen(t *testing.T) {
	const model = "llama-3.1-70b" // of engines, so that it is right without the picker too
	w := newWorld(t, "20", "", append(slices.Clone(subsets), "  - model: nightly\n", "  - { model: "+model+", targets: [ { backend: a, model: "+model+" }, { backend: b, model: "+model+" }, { backend: c, model: "+model+" } ] }\n  - model: nightly\n")...)
	before := w.hits(t)
	if resp, text := w.post(t, "/v1/chat/completions", chatBody(model), subsetHeader, w.address(t, 1)); resp.StatusCode != http.StatusOK || w.hits(t)[1] != before[1]+1 {
		t.Errorf("with the picker: %d %s, %v requests at each engine", resp.StatusCode, text, w.hits(t))
	}
	kill(w.picker)
	for range 20 {
		if resp, text := w.post(t, "/v1/chat/completions", chatBody(model), subsetHeader, w.address(t, 1)); resp.StatusCode != http.StatusOK {
			t.Errorf("without the picker: %d %s", resp.StatusCode, text)
		}
	}
}

// newPools is a world of two pools: the engines a and b with one picker, and c with
// another. Each host name is a route; shared splits 7 to 3.
func newPools(t *testing.T) *world {
	t.Helper()
	binary(t)
	w := &world{}
	ports := map[string]string{}
	for i := range 3 {
		e := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "20", "--max-num-seqs", "4096")
		w.engines = append(w.engines, e)
		ports[fmt.Sprint(9101+i)] = portOf(t, e.Ready["url"])
	}
	conf := w.config(t, "")
	without := func(names ...string) string {
		var kept []string
		for line := range strings.Lines(conf) {
			if !slices.ContainsFunc(names, func(n string) bool {
				return strings.Contains(line, "{ name: "+n+",") || strings.Contains(line, "backend: "+n+",")
			}) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	w.picker = proctest.Start(t, nil, "picker", "-c", proctest.Write(t, without("c")))
	second := proctest.Start(t, nil, "picker", "-c", proctest.Write(t, without("a", "b")))
	ports["9002"] = portOf(t, w.picker.Ready["grpc"])
	w.envoy = startEnvoy(t, ports, pools(t, ports["9103"], portOf(t, second.Ready["grpc"]))...)
	w.client = w.clientOf(w.envoy.url)
	return w
}

// pools are the edits that make the second pool of examples/envoy/envoy.yaml: its
// engine, its picker and the routes to both.
func pools(t *testing.T, engine, picker string) []string {
	t.Helper()
	text := must.Get(os.ReadFile("../../examples/envoy/envoy.yaml"))(t)
	_, clusters, _ := strings.Cut(string(text), "  clusters:\n")
	clusters = strings.NewReplacer("name: engines", "name: second", "name: picker", "name: second-picker").Replace(clusters)
	var kept []string
	for line := range strings.Lines(clusters) {
		if !strings.Contains(line, "port_value: 9101") && !strings.Contains(line, "port_value: 9102") {
			kept = append(kept, strings.NewReplacer("port_value: 9103", "port_value: "+engine, "port_value: 9002", "port_value: "+picker).Replace(line))
		}
	}
	const other = `typed_per_filter_config: { envoy.filters.http.ext_proc: { "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute, overrides: { grpc_service: { envoy_grpc: { cluster_name: second-picker }, timeout: 0s } } } }`
	hosts := `                  virtual_hosts:
                    - { name: second, domains: [second.example.com], routes: [ { match: { prefix: "/" }, route: { cluster: second, timeout: 0s }, ` + other + ` } ] }
                    - name: shared
                      domains: [shared.example.com]
                      routes:
                        - match: { prefix: "/" }
                          route:
                            timeout: 0s
                            weighted_clusters: { clusters: [ { name: engines, weight: 70 }, { name: second, weight: 30, ` + other + ` } ] }
                    - name: rules
                      domains: [rules.example.com]
                      routes:
                        - { match: { prefix: "/", headers: [ { name: x-test-rule, string_match: { exact: second } } ] }, route: { cluster: second, timeout: 0s }, ` + other + ` }
                        - { match: { prefix: "/" }, route: { cluster: engines, timeout: 0s } }
`
	return append(slices.Clone(subsets), "                  virtual_hosts:\n", hosts, "  clusters:\n", "  clusters:\n"+strings.Join(kept, "")+"\n")
}

func splitsBetweenPools(t *testing.T) {
	w := newPools(t)
	// All engines are named, and each picker keeps to its own.
	all := w.address(t, 0) + "," + w.address(t, 1) + "," + w.address(t, 2)
	const n, first = 200, 0.7
	came := w.sends(t, n, "Host", "shared.example.com", subsetHeader, all)
	got := float64(came[0]+came[1]) / n
	if within := 4.5 * math.Sqrt(first*(1-first)/n); math.Abs(got-first) > within {
		t.Errorf("%v of %d requests came to each engine, %.2f of them to the first pool, want %.2f ± %.2f", came, n, got, first, within)
	}
}

func hasAPoolForEachRule(t *testing.T) {
	w := newPools(t)
	if came := w.sends(t, 50, "Host", "rules.example.com"); !within(came, 0, 1) {
		t.Errorf("by the one rule %v came to each engine, want the first pool alone", came)
	}
	if came := w.sends(t, 50, "Host", "rules.example.com", "X-Test-Rule", "second"); !within(came, 2) {
		t.Errorf("by the other rule %v came to each engine, want the second pool alone", came)
	}
}

// A listener stands for its gateways here: two host names, each with its own pool.
func hasAPoolForEachGateway(t *testing.T) {
	w := newPools(t)
	if came := w.sends(t, 50, "Host", "first.example.com"); !within(came, 0, 1) {
		t.Errorf("at the one host %v came to each engine, want the first pool alone", came)
	}
	if came := w.sends(t, 50, "Host", "second.example.com"); !within(came, 2) {
		t.Errorf("at the other host %v came to each engine, want the second pool alone", came)
	}
}
