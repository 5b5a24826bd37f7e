package gateway

import (
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/usage"
)

// A request is billed by its key, team, route, backend, model and tags, with what
// the cache and reasoning cost. A document says it in a header.
func TestWhoPaysForARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Backends[0].Price = config.Price{Input: 2, Cached: 0.5, Output: 8, Reasoning: 10}
		conf.Usage.Tags = []string{"env", "project", "user"}
		k := key("mobile", "sk-right")
		k.Team = "apps"
		conf.Keys = []config.Key{k}
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":1000,"completion_tokens":300,`+
				`"prompt_tokens_details":{"cached_tokens":400},"completion_tokens_details":{"reasoning_tokens":100}}}`)
		}}})
		h.gateway.usage = usage.New(false)
		r := h.post(chat, `{"model":"chat","messages":[],"user":"u1","metadata":{"env":"prod","project":"no,no"}}`,
			"Authorization", "Bearer sk-right", "X-Pacer-Tag-Project", "p=1", "X-Pacer-Tag-Nobody", "asked")
		if r.err != nil || r.status != http.StatusOK {
			t.Fatal(r.status, r.err)
		}
		h.idle()
		const usd = (600*2 + 400*0.5 + 200*8 + 100*10) / 1e6
		if got := r.header.Get("X-Pacer-Cost-Usd"); got != "0.004" {
			t.Errorf("the answer says that it cost %q, want %v", got, usd)
		}
		if got, want := r.header.Get("X-Pacer-Tokens"), "input=1000 cached=400 output=300 reasoning=100"; got != want {
			t.Errorf("the answer says that it had %q, want %q", got, want)
		}
		cells := h.gateway.usage.Cells(0, math.MaxInt64)
		want := usage.Cell{
			Hour: usage.HourOf(time.Now()),
			Of:   usage.Of{Key: "mobile", Team: "apps", Route: "chat", Backend: "a", Model: "big", Tags: "env=prod,project=p_1,user=u1"},
			Sums: usage.Sums{Requests: 1, Input: 1000, Cached: 400, Output: 300, Reasoning: 100, Cost: usage.Dollars(usd)},
		}
		if len(cells) != 1 || cells[0] != want {
			t.Errorf("billed %+v, want %+v", cells, want)
		}
	})
}

// A stream says what it cost in a comment behind its last event, where it is known;
// what was sound has its own price. However the end is cut into reads, and without a
// price, the events are those of the backend.
func TestAStreamSaysWhatItCost(t *testing.T) {
	const events = `data: {"choices":[{"delta":{"content":"hello"}}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":300,` +
		`"prompt_tokens_details":{"cached_tokens":400,"audio_tokens":100},"completion_tokens_details":{"reasoning_tokens":100,"audio_tokens":50}}}` + "\n\n" +
		"data: [DONE]\n\n"
	const comment = ": x-pacer-cost-usd 0.0115\n: x-pacer-tokens input=1000 cached=400 output=300 reasoning=100\n\n"
	for name, c := range map[string]struct {
		price config.Price
		cut   int // bytes that come later
		want  string
	}{
		"priced":         {config.Price{Input: 2, Cached: 0.5, Output: 8, Reasoning: 10, AudioInput: 41, AudioOutput: 80}, 0, events + comment},
		"in two pieces":  {config.Price{Input: 2, Cached: 0.5, Output: 8, Reasoning: 10, AudioInput: 41, AudioOutput: 80}, 9, events + comment},
		"without prices": {config.Price{}, 0, events},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Backends[0].Price = c.price
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, events[:len(events)-c.cut])
				w.(http.Flusher).Flush()
				time.Sleep(50 * time.Millisecond)
				fmt.Fprint(w, events[len(events)-c.cut:])
			}}})
			h.gateway.usage = usage.New(false)
			r := h.post(chat, `{"model":"chat","stream":true,"stream_options":{"include_usage":true},"messages":[]}`)
			if r.err != nil || string(r.body) != c.want {
				t.Errorf("%v, the client read\n%s\nwant\n%s", r.err, r.body, c.want)
			}
			h.idle()
			var cost usage.Money
			for _, cell := range h.gateway.usage.Cells(0, math.MaxInt64) {
				cost += cell.Cost
			}
			if want := c.price != (config.Price{}); want && formatUSD(cost) != "0.0115" || !want && cost != 0 {
				t.Errorf("billed %s USD, want what the comment says", formatUSD(cost))
			}
		})
	}
}

// onBudget is a gateway before an engine with a price. The key mobile has a budget, which
// may send what it asks of chat to the route cheap.
func onBudget(t *testing.T, price config.Price, b config.Budget, engine http.Handler) *house {
	t.Helper()
	conf := settings("a")
	conf.Backends[0].Price = price
	cheap := conf.Routes[0]
	cheap.Models = []string{"cheap"}
	conf.Routes = append(conf.Routes, cheap)
	k := key("mobile", "sk-right")
	k.Routes, k.Budget = []string{"chat"}, b
	conf.Keys = []config.Key{k}
	h := open(t, conf, map[string]http.Handler{"a": engine})
	h.gateway.usage = usage.New(false)
	h.gateway.usage.Configure(spendable(conf), nil)
	return h
}

// When a budget is spent requests are refused in words that a library understands,
// or go to another route.
func TestASpentBudget(t *testing.T) {
	for name, c := range map[string]struct {
		then   config.Then
		status int
		route  string
	}{
		"refuse": {config.Then{}, http.StatusTooManyRequests, "unknown"},
		"spill":  {config.Then{Spill: "cheap"}, http.StatusOK, "cheap"},
		"warn":   {config.Then{Warn: true}, http.StatusOK, "chat"},
	} {
		bubble(t, name, func(t *testing.T) {
			h := onBudget(t, config.Price{Output: 1000}, config.Budget{USD: 0.5, Per: "month", Then: c.then},
				&script{answer: states(200, `{"choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":1,"completion_tokens":600}}`)})
			ask := func() reply {
				return h.post(chat, `{"model":"chat","messages":[]}`, "Authorization", "Bearer sk-right")
			}
			if r := ask(); r.status != http.StatusOK {
				t.Fatalf("status %d while there is money", r.status)
			}
			h.idle()
			r := ask()
			h.idle()
			if r.status != c.status || h.last().Route != c.route {
				t.Errorf("status %d on route %q, want %d on %q", r.status, h.last().Route, c.status, c.route)
			}
			if c.status == http.StatusTooManyRequests && (r.header.Get("X-Should-Retry") != "false" || r.header.Get("Retry-After") != "") {
				t.Errorf("a library would come back: %v", r.header)
			}
		})
	}
}

// Near the end of a budget a request begins where what it may cost is left beside what
// runs. Who is refused for what runs is told to come back, or goes where the budget sends it,
// and what a request holds is free when it ends, however it ends.
func TestWhatRunsHoldsItsPartOfABudget(t *testing.T) {
	for name, c := range map[string]struct {
		then   config.Then
		status int
	}{
		"refuse": {config.Then{}, http.StatusTooManyRequests},
		"spill":  {config.Then{Spill: "cheap"}, http.StatusOK},
		"warn":   {config.Then{Warn: true}, http.StatusOK},
	} {
		bubble(t, name, func(t *testing.T) {
			answer := states(200, `{"choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":1,"completion_tokens":10}}`)
			h := onBudget(t, config.Price{Output: 1000}, config.Budget{USD: 0.15, Per: "month", Then: c.then}, &script{answer: func(w http.ResponseWriter, r *http.Request) {
				pause(r, 10*time.Second)
				answer(w, r)
			}})
			ask := func(model string, tokens int) reply {
				return h.post(chat, fmt.Sprintf(`{"model":%q,"max_tokens":%d,"messages":[]}`, model, tokens), "Authorization", "Bearer sk-right")
			}
			first := make(chan reply)
			go func() { first <- ask("chat", 100) }() // may cost 0.10
			time.Sleep(time.Second)
			r := ask("chat", 60) // 0.06 of 0.05
			if r.status != c.status {
				t.Fatalf("status %d beside one that may cost most of what is left, want %d", r.status, c.status)
			}
			if refused := c.status != http.StatusOK; refused && (r.code(t) != "budget_in_use" || r.header.Get("Retry-After") != "1" || r.header.Get("X-Should-Retry") == "false") {
				t.Errorf("%s with %v, want a word to come back in a second", r.code(t), r.header)
			}
			if r := ask("nobody", 50); r.status != http.StatusNotFound { // holds nothing
				t.Errorf("status %d", r.status)
			}
			if r := ask("chat", 50); r.status != http.StatusOK {
				t.Errorf("status %d of one for which there is room", r.status)
			}
			if r := <-first; r.status != http.StatusOK {
				t.Errorf("status %d of the first one", r.status)
			}
			h.idle()
			if r := ask("chat", 100); r.status != http.StatusOK {
				t.Errorf("status %d though what the others did not need is free", r.status)
			}
		})
	}
}

// A stream that costs more than its reservation holds what it has cost, once a second.
func TestAStreamThatRunsUpACost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var long atomic.Bool
		h := onBudget(t, config.Price{Output: 1000}, config.Budget{USD: 0.26, Per: "month"}, &script{answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			tokens := 10
			if long.Load() {
				tokens = 600
			}
			for range tokens {
				fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"hello"}}]}`+"\n\n")
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
			fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":%d}}`+"\n\ndata: [DONE]\n\n", tokens)
		}})
		ask := func(more string) reply {
			return h.post(chat, `{"model":"chat","stream":true,"stream_options":{"include_usage":true},"messages":[]`+more+`}`, "Authorization", "Bearer sk-right")
		}
		for range 20 { // which is what the next one is expected to cost, too: 0.01
			if r := ask(""); r.status != http.StatusOK {
				t.Fatalf("status %d", r.status)
			}
			h.idle()
		}
		long.Store(true)
		first := make(chan reply)
		go func() { first <- ask("") }() // 0.60 in 12 s, where 0.06 are left
		time.Sleep(100 * time.Millisecond)
		long.Store(false)
		if r := ask(""); r.status != http.StatusOK {
			t.Errorf("status %d while the long one has cost next to nothing", r.status)
		}
		time.Sleep(2 * time.Second)
		if r := ask(""); r.status != http.StatusTooManyRequests || r.code(t) != "budget_in_use" {
			t.Errorf("status %d beside one that has cost more than is left, want 429 budget_in_use", r.status)
		}
		<-first
	})
}
