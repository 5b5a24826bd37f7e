package engines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// TestStreamsAreTheEngines asks the engine and Pacer before it for the same
// stream, with a seed and without chance: event by event they have the same
// fields and the same text, whether the user asked for usage or Pacer did.
func TestStreamsAreTheEngines(t *testing.T) {
	for _, kind := range []engine{llamacpp, vllm} {
		t.Run(kind.name, func(t *testing.T) {
			e := kind.start(t)
			asks := []string{"inject"}
			if e.kind == "vllm" { // pacer check says that others do not know it
				asks = append(asks, "continuous")
			}
			for _, usage := range asks {
				g := gateway(t, fmt.Sprintf("routes: [ { model: %[1]s, targets: [ { backend: %[1]s, model: %[1]s } ] } ]\n", e.name), e.asked(usage))
				for _, c := range []struct{ path, extra string }{
					{"/chat/completions", ``},
					{"/chat/completions", `,"stream_options":{"include_usage":false}`},
					{"/chat/completions", `,"stream_options":{"include_usage":true}`},
					{"/chat/completions", `,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`},
					{"/completions", ``},
					{"/completions", `,"stream_options":{"include_usage":true}`},
				} {
					direct, through := events(t, e.url+"/v1"+c.path, e.name, c.extra), events(t, g.Ready["data"]+"/v1"+c.path, e.name, c.extra)
					if direct != through {
						t.Errorf("usage: %s, %s with %q: the engine sends\n%s\nPacer sends\n%s", usage, c.path, c.extra, direct, through)
					}
				}
			}
		})
	}
}

// asked returns the engine as a backend that is asked for usage otherwise.
func (r *running) asked(usage string) *running {
	return &running{engine: r.engine, url: r.url, more: ", usage: " + usage}
}

// varies are the fields of an event that differ between any two answers.
var varies = map[string]bool{"id": true, "created": true}

// moved are the fields that an engine has on its last event, and on the usage
// event where it is asked for one: with that one Pacer takes out llama.cpp's
// timings, which no client of an OpenAI API waits for.
var moved = map[string]bool{"timings": true}

// events asks for a short stream and returns its events, a line each, with what
// varies left out.
func events(t *testing.T, url, model, extra string) string {
	t.Helper()
	ask := `"messages":[{"role":"user","content":"ba de gi"}]`
	if strings.HasSuffix(url, "/v1/completions") {
		ask = `"prompt":"ba de gi"`
	}
	body := fmt.Sprintf(`{"model":%q,"stream":true,"max_tokens":6,"ignore_eos":true,"seed":7,"temperature":0,%s%s}`, model, ask, extra)
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	must.Do(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %v\n%s", url, resp.Status, err, text)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !ok {
			continue
		}
		var event any
		if json.Unmarshal(data, &event) == nil {
			data, _ = json.Marshal(without(event))
		}
		out.Write(append(data, '\n'))
	}
	if !strings.HasSuffix(out.String(), "[DONE]\n") || strings.Count(out.String(), "\n") < 6 {
		t.Fatalf("%s: no whole stream:\n%s", url, text)
	}
	return out.String()
}

// without leaves out what varies, at any depth.
func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			switch {
			case moved[name]:
				delete(v, name)
			case varies[name]:
				v[name] = "…"
			default:
				v[name] = without(field)
			}
		}
	case []any:
		for i := range v {
			v[i] = without(v[i])
		}
	}
	return v
}
