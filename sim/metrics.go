package sim

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// exported is what the engine's page of metrics tells. Guarded by Server.mu.
//
// It is told by the engine's steps, as in real engines, and is therefore as old
// as the last of them: sequences that are all cancelled at once stay on the
// page until somebody sends another (vLLM), and SGLang's schedulers write only
// with each 40th step and with each new sequence.
type exported struct {
	running, waiting int
	steps, tokens    int // since the start
	since            int // steps since the page was written
	scrapes          int
}

// sglangLogEvery is how many decode steps SGLang lets pass between two updates
// of its gauges.
const sglangLogEvery = 40

// slowMetrics is how long the page takes under the fault metrics:slow.
const slowMetrics = 10 * time.Second

// export writes the page after what happened in step. The caller holds s.mu.
func (s *Server) export(step Step) {
	x := &s.exported
	if len(step.Outputs) > 0 {
		x.steps++
		x.since++
	}
	for _, o := range step.Outputs {
		x.tokens += o.Tokens
	}
	if s.quirks.metrics == "sglang" && len(step.Admitted) == 0 && x.since < sglangLogEvery {
		return
	}
	if len(step.Outputs)+len(step.Admitted) > 0 {
		x.running, x.waiting, x.since = s.engine.Running(), s.engine.Waiting(), 0
	}
}

// serveMetrics answers with the page of the engine that this one poses as, or
// with what a fault makes of it.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) error {
	fault := s.faults.Load().Metrics
	if fault == "slow" {
		select {
		case <-time.After(slowMetrics):
		case <-r.Context().Done():
			return nil
		case <-s.stopped:
			return nil
		}
	}
	if fault == "404" {
		writeJSON(w, http.StatusNotFound, detail{"Not Found"})
		return nil
	}
	s.mu.Lock()
	x := s.exported
	s.exported.scrapes++
	switch {
	case fault == "stale":
		x = s.staleMetrics
	case s.quirks.metrics == "llamacpp" || s.quirks.metrics == "tgi":
		x.running, x.waiting = s.engine.Running(), s.engine.Waiting()
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	var page strings.Builder
	if fault == "garbage" {
		writeGarbage(&page, x.scrapes)
	} else {
		metricsPages[s.quirks.metrics](&page, s.names[0], x)
	}
	// What the process says of itself moves though the engine stands.
	fmt.Fprintf(&page, "# TYPE http_requests_total counter\nhttp_requests_total{handler=\"/metrics\"} %d.0\n", x.scrapes)
	_, _ = io.WriteString(w, page.String()) // a reader that is gone needs no page
	return nil
}

// metricsPages write a page as each engine does, by the name of the engine; ""
// is vLLM.
var metricsPages = map[string]func(w io.Writer, model string, x exported){
	"": func(w io.Writer, model string, x exported) {
		// %q escapes a label as Prometheus wants it, and more only in names
		// that are not text.
		labels := fmt.Sprintf("{engine=\"0\",model_name=%q}", model)
		gauge(w, "vllm:num_requests_running", "Number of requests in model execution batches.", labels, "%d.0", x.running)
		gauge(w, "vllm:num_requests_waiting", "Number of requests waiting to be processed.", labels, "%d.0", x.waiting)
		fmt.Fprintf(w, "# HELP vllm:generation_tokens_total Number of generation tokens processed.\n# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total%s %d.0\n", labels, x.tokens)
	},
	// With --enable-metrics-for-all-schedulers: every rank tells of the one
	// batch that all of them run.
	"sglang": func(w io.Writer, model string, x exported) {
		written := x.steps - x.since
		for _, g := range []struct {
			name, help string
			value      int
		}{
			{"sglang:num_running_reqs", "The number of running requests.", x.running},
			{"sglang:num_queue_reqs", "The number of requests in the waiting queue.", x.waiting},
			{"sglang:num_used_tokens", "The number of used tokens.", written},
		} {
			fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n", g.name, g.help, g.name)
			for rank := range 2 {
				fmt.Fprintf(w, "%s{engine_type=\"unified\",model_name=%q,moe_ep_rank=\"0\",pp_rank=\"0\",tp_rank=\"%d\"} %d.0\n", g.name, model, rank, g.value)
			}
		}
	},
	"tgi": func(w io.Writer, _ string, x exported) {
		gauge(w, "tgi_batch_current_size", "", "", "%d", x.running)
		gauge(w, "tgi_queue_size", "", "", "%d", x.waiting)
		fmt.Fprintf(w, "# TYPE tgi_batch_inference_count counter\ntgi_batch_inference_count{method=\"decode\"} %d\n", x.steps)
	},
	"llamacpp": func(w io.Writer, _ string, x exported) {
		fmt.Fprintf(w, "# HELP llamacpp:n_decode_total Total number of llama_decode() calls\n# TYPE llamacpp:n_decode_total counter\nllamacpp:n_decode_total %d\n", x.steps)
		gauge(w, "llamacpp:requests_processing", "Number of requests processing.", "", "%d", x.running)
		gauge(w, "llamacpp:requests_deferred", "Number of requests deferred.", "", "%d", x.waiting)
	},
}

func gauge(w io.Writer, name, help, labels, format string, value int) {
	if help != "" {
		fmt.Fprintf(w, "# HELP %s %s\n", name, help)
	}
	fmt.Fprintf(w, "# TYPE %s gauge\n%s%s "+format+"\n", name, name, labels, value)
}

// writeGarbage writes pages that are wrong in one way after the other.
func writeGarbage(w io.Writer, i int) {
	garbage := []string{
		"vllm:num_requests_running{engine=\"0\"} NaN\nvllm:num_requests_waiting{engine=\"0\"} 3.0\n",
		"vllm:num_requests_running{engine=\"0\"} -7.0\nvllm:num_requests_waiting{engine=\"0\"} 0.0\n",
		"vllm:num_requests_running{engine=\"0} 30.0\n",
		"vllm:num_requests_running{engine=\"0\"} 2e9\n",
		"<html><body>Welcome</body></html>\n",
		"\x00\x01\xff{{{\n",
		"",
	}
	_, _ = io.WriteString(w, garbage[i%len(garbage)])
}

// metricsFaults are the values of the fault metrics.
var metricsFaults = []string{"404", "garbage", "slow", "stale"}

// setMetrics sets what is wrong with the page; off ends it.
func setMetrics(f *faultState, value string) error {
	switch {
	case value == "":
		value = "404"
	case value == "off", value == "false":
		value = ""
	case !slices.Contains(metricsFaults, value):
		return fmt.Errorf("%q is none of %s or off", value, strings.Join(metricsFaults, ", "))
	}
	f.Metrics = value
	return nil
}
