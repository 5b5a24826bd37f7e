package gateway

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// chatter is a conversation that grows turn by turn.
type chatter struct {
	messages []string
	turn     int
	id       string
}

// ask sends the next turn and appends the answer.
func (c *chatter) ask(t *testing.T, h *house, question string) {
	t.Helper()
	c.turn++
	c.messages = append(c.messages, fmt.Sprintf(`{"role":"user","content":"%s %d"}`, question, c.turn))
	r := h.post("/v1/chat/completions", `{"model":"chat","stream":true,"max_tokens":60,"messages":[`+strings.Join(c.messages, ",")+`]}`, "X-Session-Id", c.id)
	text := ""
	for line := range strings.SplitSeq(r.body, "\n") {
		var event struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if data, ok := strings.CutPrefix(line, "data: {"); ok && json.Unmarshal([]byte("{"+data), &event) == nil && len(event.Choices) > 0 {
			text += event.Choices[0].Delta.Content
		}
	}
	if r.status != http.StatusOK || text == "" {
		t.Fatalf("turn %d: %d %s", c.turn, r.status, r.body)
	}
	c.messages = append(c.messages, fmt.Sprintf(`{"role":"assistant","content":%q}`, text))
}

// Conversations stay where their prompts are cached, what is said to be cached is
// what is there, and without affinity they go anywhere.
func TestConversationsStayWarm(t *testing.T) {
	hits := map[string]float64{}
	for _, affinity := range []string{"auto", "session", "off"} {
		synctest.Test(t, func(t *testing.T) {
			c := settings("a", "b", "c")
			c.Routes[0].Affinity, c.Routes[0].SLO.MinTPS = affinity, 10
			engines, sims := map[string]http.Handler{}, []*sim.Server{}
			for i := range c.Backends {
				s := must.Get(sim.NewServer(sim.Options{
					Names: []string{"big"}, Model: sim.Model{A: 0.02, C: 0.0005, D: 1e-4}, Seed: uint64(i) + 1, KVTokens: 200_000, Block: 16,
				}))(t)
				engines[c.Backends[i].Name] = s
				sims = append(sims, s)
			}
			h := open(t, c, engines)
			topology := topologyOf(c)
			topology.Routes[0].Prefer = router.Headroom
			h.router.Update(time.Now(), router.Configure{Topology: topology})
			for _, b := range c.Backends {
				h.believe(b.Name, profiles.PriorPoint{N: 1, TPS: 48}, profiles.PriorPoint{N: 32, TPS: 27})
			}
			question := strings.Repeat("What do you think of this long and winding question? ", 60)
			var talks []*chatter
			for i := range 6 {
				talks = append(talks, &chatter{id: fmt.Sprint("talk ", i), messages: []string{fmt.Sprintf(`{"role":"system","content":"You are the assistant number %d. %s"}`, i, question)}})
			}
			for range 6 {
				for _, talk := range talks {
					talk.ask(t, h, question)
				}
			}
			prompt, cached := 0, 0
			for _, s := range sims {
				truth := s.Truth().Cache
				prompt, cached = prompt+truth.Prompt, cached+truth.Cached
			}
			hits[affinity] = float64(cached) / float64(prompt)
			if affinity != "auto" {
				return
			}
			var sum [3]float64
			for _, b := range c.Backends {
				counts := h.gateway.Warm(profiles.Target{Backend: b.Name, Model: "big"})
				sum[0], sum[1], sum[2] = sum[0]+counts.Predicted, sum[1]+counts.Reported, sum[2]+counts.Prompt
			}
			if off := math.Abs(sum[0]-sum[1]) / sum[2]; !(off < 0.05) || !(math.Abs(sum[1]/sum[2]-hits[affinity]) < 0.05) {
				t.Errorf("predicted %.0f cached tokens, reported %.0f, true %d of %d", sum[0], sum[1], cached, prompt)
			}
		})
	}
	// Of a prompt that is there but for its last turn six turns leave two thirds to
	// three quarters; at random a third of them.
	if hits["auto"] < 0.68 || hits["session"] < 0.68 || hits["off"] > 0.55 {
		t.Errorf("cached of all prompt tokens: %v, want most with affinity and few without", hits)
	}
}
