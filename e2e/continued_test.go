package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pacer-dev/pacer/internal/proctest"
)

// told is what one client was told by a stream.
type told struct {
	text    string
	usage   [3]int // prompt, completion, total
	ids     map[string]bool
	roles   int
	whole   bool // it came to its [DONE]
	errors  int
	comment string
}

// listen reads a stream to its end. came is called at each piece of text.
func listen(base, path, body string, came func()) (s told, err error) {
	resp, err := http.Post(base+path, "application/json", strings.NewReader(body))
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	s.ids = map[string]bool{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line := lines.Text()
		data, ok := strings.CutPrefix(line, "data: ")
		switch {
		case strings.HasPrefix(line, ": x-pacer-continued"):
			s.comment = line
		case !ok:
		case data == "[DONE]":
			s.whole = true
		default:
			if err := s.event(data, came); err != nil {
				return s, err
			}
		}
	}
	return s, lines.Err()
}

func (s *told) event(data string, came func()) error {
	var e struct {
		ID      string
		Error   json.RawMessage
		Choices []struct {
			Delta struct{ Role, Content string }
			Text  string
		}
		Usage *struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Total      int `json:"total_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return fmt.Errorf("%q: %w", data, err)
	}
	if e.Error != nil {
		s.errors++
		return nil
	}
	s.ids[e.ID] = true
	for _, c := range e.Choices {
		s.text += c.Delta.Content + c.Text
		if c.Delta.Role != "" {
			s.roles++
		}
		if c.Delta.Content+c.Text != "" {
			came()
		}
	}
	if u := e.Usage; u != nil {
		s.usage = [3]int{u.Prompt, u.Completion, u.Total}
	}
	return nil
}

// An engine is killed under 100 streams that can go on elsewhere, and under 20 that
// cannot. Of the 100 none breaks off, and each has the text and the usage that it has
// where nobody dies. The others are told that they broke off.
func TestStreamsOutliveTheirEngine(t *testing.T) {
	t.Parallel()
	const kept, lost, tokens = 100, 20, 250
	preset := []string{"--preset", "llama-3.1-70b/h200/vllm", "--behave", "text-of-prompt", "--speed"}
	dies := proctest.Engine(t, append(preset, "0.25")...) // none has ended before all have begun
	one, other := proctest.Engine(t, append(preset, "4")...), proctest.Engine(t, append(preset, "4")...)
	gateway := proctest.Gateway(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends:
  - { name: dies, url: %q, kind: vllm }
  - { name: one, url: %q, kind: vllm }
  - { name: other, url: %q, kind: vllm }
routes:
  - model: chat
    prefer: order
    continue: true
    targets: [ { backend: dies, model: llama-3.1-70b }, { backend: one, model: llama-3.1-70b }, { backend: other, model: llama-3.1-70b } ]
`, dies.Ready["url"]+"/v1", one.Ready["url"]+"/v1", other.Ready["url"]+"/v1"))
	ask := func(i int, model string) (path, body string) {
		more := ""
		if i >= kept {
			more = `"seed":7,`
		}
		head := fmt.Sprintf(`{"model":%q,"stream":true,"stream_options":{"include_usage":true},%s"max_tokens":%d,`, model, more, tokens)
		if i%2 == 0 {
			return "/v1/chat/completions", head + fmt.Sprintf(`"messages":[{"role":"system","content":"You count."},{"role":"user","content":"number %d"}]}`, i)
		}
		return "/v1/completions", head + fmt.Sprintf(`"prompt":"number %d"}`, i)
	}
	got, want := make([]told, kept+lost), make([]told, kept)
	errs := make([]error, kept+lost)
	var started atomic.Int64
	var clients sync.WaitGroup
	for i := range got {
		clients.Go(func() {
			path, body := ask(i, "chat")
			came := 0
			got[i], errs[i] = listen(gateway.Ready["data"], path, body, func() {
				if came++; came == 10 {
					started.Add(1)
				}
			})
		})
	}
	proctest.Until(t, "all of them run", func() bool { return started.Load() == kept+lost })
	dies.Stop(syscall.SIGKILL)
	clients.Wait()
	for i := range want {
		clients.Go(func() {
			path, body := ask(i, "llama-3.1-70b")
			var err error
			if want[i], err = listen(one.Ready["url"], path, body, func() {}); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	for i := range got {
		s := &got[i]
		if i >= kept {
			if s.whole || s.errors != 1 || errs[i] == nil {
				t.Errorf("stream %d, which has a seed: whole %v, %d errors, ended by %v; want it to break off", i, s.whole, s.errors, errs[i])
			}
			continue
		}
		if !s.whole || errs[i] != nil || s.errors > 0 || s.comment == "" {
			t.Errorf("stream %d: whole %v, %d errors, %q, ended by %v", i, s.whole, s.errors, s.comment, errs[i])
		}
		if s.text != want[i].text {
			t.Errorf("stream %d says\n%q, uninterrupted it is\n%q", i, s.text, want[i].text)
		}
		if s.usage != want[i].usage || len(s.ids) != 1 || s.roles != want[i].roles {
			t.Errorf("stream %d has the usage %v, uninterrupted %v; %d ids, %d roles", i, s.usage, want[i].usage, len(s.ids), s.roles)
		}
	}
	for result, n := range map[string]int{"ok": kept, "lost": 0, "unfit": lost} {
		series := fmt.Sprintf(`pacer_continued_total{backend="dies",result=%q} %d`, result, n)
		proctest.Until(t, series, func() bool {
			return strings.Contains(string(proctest.Get(t, gateway.Ready["admin"]+"/metrics")), series+"\n")
		})
	}
}
