package engines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pacer-dev/pacer/internal/proctest"
)

// once asks each time on a connection of its own: llama.cpp closes them unannounced.
var once = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// hear reads the text of a stream to its end. came is called at each piece of it.
func hear(base, path, body string, came func()) (text string, whole bool, err error) {
	resp, err := once.Post(base+path, "application/json", strings.NewReader(body))
	if err != nil {
		return "", false, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if whole = whole || data == "[DONE]"; !ok || data == "[DONE]" {
			continue
		}
		var e struct {
			Error   json.RawMessage
			Choices []struct {
				Delta struct{ Content string }
				Text  string
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Error != nil {
			return text, false, fmt.Errorf("%s: %w", data, err)
		}
		for _, c := range e.Choices {
			if piece := c.Delta.Content + c.Text; piece != "" {
				text += piece
				came()
			}
		}
	}
	return text, whole, lines.Err()
}

// A llama.cpp is killed under greedy streams. None breaks off. Each goes on as the
// other engine does that is given its text so far: with random weights tokens are near
// ties, and a prompt that is computed at once may go another way than one that was
// computed token by token, so the part before is held against an uninterrupted run,
// and the whole where it is the same twice.
func TestStreamsOutliveALlamacpp(t *testing.T) {
	dies, lives := llamacpp.start(t), llamacpp.start(t)
	lives.name = "lives"
	g := gateway(t, fmt.Sprintf("routes: [ { model: chat, prefer: order, continue: true, targets: [ { backend: %s, model: llamacpp }, { backend: lives, model: llamacpp } ] } ]\n", dies.name), dies, lives)
	const streams, tokens = 8, 200
	ask := func(i int, model string) (path, body string) {
		head := fmt.Sprintf(`{"model":%q,"stream":true,"temperature":0,"ignore_eos":true,"max_tokens":%d,`, model, tokens)
		if i%2 == 0 {
			return "/v1/chat/completions", head + fmt.Sprintf(`"messages":[{"role":"user","content":"number %d"}]}`, i)
		}
		return "/v1/completions", head + fmt.Sprintf(`"prompt":"number %d"}`, i)
	}
	var started atomic.Int64
	var clients sync.WaitGroup
	var got [streams]string
	for i := range streams {
		clients.Go(func() {
			path, body := ask(i, "chat")
			came := 0
			text, whole, err := hear(g.Ready["data"], path, body, func() {
				if came++; came == 20 {
					started.Add(1)
				}
			})
			if got[i] = text; err != nil || !whole {
				t.Errorf("stream %d: whole %v, %v", i, whole, err)
			}
		})
	}
	proctest.Until(t, "all run", func() bool { return started.Load() == streams })
	dies.kill()
	clients.Wait()
	same := 0
	for i := range streams {
		path, body := ask(i, "llamacpp")
		text, whole, err := hear(lives.url, path, body, func() {})
		if err != nil || !whole {
			t.Fatalf("uninterrupted %d: whole %v, %v", i, whole, err)
		}
		n := 0
		for n < min(len(got[i]), len(text)) && got[i][n] == text[n] {
			n++
		}
		t.Logf("stream %d: %d bytes, the first %d of %d as uninterrupted", i, len(got[i]), n, len(text))
		if got[i] == text {
			same++
		}
	}
	t.Logf("%d of %d texts are those of an uninterrupted run", same, streams)
	if !strings.Contains(string(proctest.Get(t, g.Ready["admin"]+"/metrics")), fmt.Sprintf(`pacer_continued_total{backend=%q,result="ok"} %d`, dies.name, streams)) {
		t.Errorf("the metrics do not tell of %d streams that went on", streams)
	}
}
