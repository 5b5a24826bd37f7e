package sim

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// page returns the page of metrics.
func (r *rig) page() string {
	r.t.Helper()
	status, body := r.call("GET", "/metrics", "")
	if status != http.StatusOK {
		r.t.Fatalf("metrics answer %d", status)
	}
	return body
}

func wantLines(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+page, "\n"+line+"\n") {
			t.Errorf("the page lacks %q:\n%s", line, page)
		}
	}
}

// Each engine exports its load under its own names.
func TestMetricsPages(t *testing.T) {
	for _, c := range []struct {
		behave string
		want   []string
	}{
		{"", []string{`vllm:num_requests_running{engine="0",model_name="m"} 2.0`, `vllm:num_requests_waiting{engine="0",model_name="m"} 1.0`}},
		{"metrics-as-sglang", []string{
			`sglang:num_running_reqs{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 2.0`,
			`sglang:num_running_reqs{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="1"} 2.0`,
			`sglang:num_queue_reqs{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="1"} 1.0`,
		}},
		{"metrics-as-tgi", []string{"tgi_batch_current_size 2", "tgi_queue_size 1"}},
		{"metrics-as-llamacpp", []string{"llamacpp:requests_processing 2", "llamacpp:requests_deferred 1"}},
	} {
		t.Run(c.behave, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := Options{Model: Model{A: 0.025}, MaxNumSeqs: 2}
				if c.behave != "" {
					o.Behaviours = []string{c.behave}
				}
				r := serve(t, o)
				for range 3 {
					conn := r.raw(`{` + hello + `,"max_tokens":1000}`)
					defer conn.Close()
				}
				<-time.After(2 * time.Second)
				wantLines(t, r.page(), c.want...)
			})
		})
	}
}

// Requests that are all aborted at once stay on vLLM's page until a step comes.
func TestVLLMKeepsAbortedRequestsOnItsPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		conn := r.raw(`{` + hello + `,"stream":true,"max_tokens":1000}`)
		<-time.After(time.Second)
		conn.Close()
		<-time.After(time.Minute)
		if truth := r.server.Truth(); truth.Running != 0 {
			t.Fatalf("%d sequences run, want none: the client is gone", truth.Running)
		}
		wantLines(t, r.page(), `vllm:num_requests_running{engine="0",model_name="m"} 1.0`)
		r.call("POST", "/v1/chat/completions", `{`+hello+`,"max_tokens":2}`)
		wantLines(t, r.page(), `vllm:num_requests_running{engine="0",model_name="m"} 0.0`)
	})
}

// SGLang writes its gauges with each new sequence and every 40th step.
func TestSGLangWritesItsPageNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Behaviours: []string{"metrics-as-sglang"}})
		long := r.raw(`{` + hello + `,"stream":true,"max_tokens":1000}`)
		defer long.Close()
		r.call("POST", "/v1/chat/completions", `{`+hello+`,"max_tokens":5}`)
		running := func(n int) string {
			return fmt.Sprintf(`sglang:num_running_reqs{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} %d.0`, n)
		}
		wantLines(t, r.page(), running(2)) // though it is done
		<-time.After(time.Second + 100*time.Millisecond)
		wantLines(t, r.page(), running(1))
	})
}

func TestMetricsFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		conn := r.raw(`{` + hello + `,"stream":true,"max_tokens":10000}`)
		defer conn.Close()
		<-time.After(time.Second)
		set := func(value string) {
			if status, body := r.call("POST", "/sim/set", `{"metrics":"`+value+`"}`); status != http.StatusOK {
				t.Fatalf("set answers %d %s", status, body)
			}
		}
		set("stale")
		old := r.page()
		<-time.After(time.Minute)
		if got := r.page(); without(got, "http_requests") != without(old, "http_requests") {
			t.Errorf("the page moved from\n%s to\n%s", old, got)
		}
		set("404")
		if status, _ := r.call("GET", "/metrics", ""); status != http.StatusNotFound {
			t.Errorf("status %d, want 404", status)
		}
		set("slow")
		start := time.Now()
		r.page()
		if took := time.Since(start); took != slowMetrics {
			t.Errorf("the page took %v, want %v", took, slowMetrics)
		}
		set("garbage")
		if page := r.page(); strings.Contains(page, "} 1.0") {
			t.Errorf("the page makes sense: %s", page)
		}
		set("off")
		wantLines(t, r.page(), `vllm:num_requests_running{engine="0",model_name="m"} 1.0`)
		if status, _ := r.call("POST", "/sim/set", `{"metrics":"loud"}`); status != http.StatusBadRequest {
			t.Errorf("an unknown value answers %d, want 400", status)
		}
	})
}

func without(page, prefix string) string {
	var kept []string
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, prefix) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// The tenant comes and goes between none and the value of the fault, counts in
// truth and in the page of metrics, and leaves with the fault.
func TestHiddenTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Seed: 3, Faults: []string{"hidden:20@10s"}})
		<-time.After(9 * time.Second)
		if n := r.server.Truth().Running; n != 0 {
			t.Fatalf("%d sequences before the fault", n)
		}
		seen := map[int]bool{}
		most := 0
		for range 600 {
			<-time.After(time.Second)
			n := r.server.Truth().Running + r.server.Truth().Waiting
			seen[n], most = true, max(most, n)
		}
		if most > 20 || most < 15 || len(seen) < 10 {
			t.Errorf("up to %d sequences, %d different numbers; want up to 20 and most of those below", most, len(seen))
		}
		wantLines(t, r.page(), fmt.Sprintf(`vllm:num_requests_running{engine="0",model_name="m"} %d.0`, r.server.Truth().Running))
		r.call("POST", "/sim/set", `{"hidden":0}`)
		<-time.After(time.Second)
		if n := r.server.Truth().Running; n != 0 {
			t.Errorf("%d sequences after the fault", n)
		}
		points := r.server.Truth().Points
		if len(points) < 10 {
			t.Errorf("truth has %d levels, want those of the tenant", len(points))
		}
	})
}
