package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// usageOf asks a gateway what was used.
func usageOf(t *testing.T, p *proctest.Process, query string) api.Usage {
	t.Helper()
	resp := must.Get(http.Get(p.Ready["admin"] + "/api/v1/usage" + query))(t)
	defer resp.Body.Close()
	var u api.Usage
	if err := json.NewDecoder(resp.Body).Decode(&u); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("usage: %s, %v", resp.Status, err)
	}
	return u
}

// buyer asks for answers, and adds up what they cost.
type buyer struct {
	mu    sync.Mutex
	spent float64 // USD
}

// buy reports the status of one request for an answer of so many tokens, or as many as the
// engine likes, and the code of an error; 0 = there was no answer.
func (b *buyer) buy(data, key string, tokens int) (status int, code string) {
	most := ""
	if tokens > 0 {
		most = fmt.Sprintf(`"max_tokens":%d,`, tokens)
	}
	r, err := http.NewRequest(http.MethodPost, data+"/v1/chat/completions", strings.NewReader(`{"model":"chat",`+most+`"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	var answer struct{ Error struct{ Code string } }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return 0, ""
	}
	if resp.StatusCode == http.StatusOK {
		usd, _ := strconv.ParseFloat(resp.Header.Get("X-Pacer-Cost-Usd"), 64)
		b.mu.Lock()
		b.spent += usd
		b.mu.Unlock()
	}
	return resp.StatusCode, answer.Error.Code
}

// A budget holds over three gateways of which one is killed, with a Redis that loses all it
// had, and answers that take no longer than news from one gateway to the next. What the
// gateways know is within 1 % of what clients were served. That is over the limit by what was
// running at most, and all of it is spent.
func TestABudgetOverThreeGateways(t *testing.T) {
	if racetest.On {
		t.Skip("half a minute of real processes: make numbers runs it")
	}
	t.Parallel()
	const (
		secret         = "sk-the-mobile-app"
		limit          = 40.0      // USD
		clients, tails = 9, 2      // of which so many do not say how long an answer may be
		short, long    = 10, 128   // tokens
		price          = 1.0 / 1e3 // USD per token
	)
	redis := redistest.Start(t)
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "20")
	file := proctest.Write(t, "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nreplicas: 3\nstore: \""+redisURL(t, redis)+"\"\n"+
		"backends: [ { name: a, url: "+engine.Ready["url"]+"/v1, price: { output: 1000 } } ]\n"+
		"routes: [ { model: chat, targets: [ { backend: a, model: "+engine.Ready["model"]+" } ] } ]\n"+
		"keys: [ { name: mobile, key: "+secret+", team: apps, budget: { usd: 40 } } ]\n")
	gateways := make([]*proctest.Process, 3)
	for i := range gateways {
		gateways[i] = proctest.Start(t, nil, "serve", "-c", file)
	}
	var b buyer
	var at sync.RWMutex // guards the addresses
	addresses := make([]string, len(gateways))
	for i, g := range gateways {
		addresses[i] = g.Ready["data"]
	}
	var users sync.WaitGroup
	var waited atomic.Int64
	for user := range clients {
		tokens := short
		if user < tails {
			tokens = 0
		}
		users.Go(func() {
			for i, refusals := user, 0; refusals < 30; i++ {
				at.RLock()
				data := addresses[i%len(addresses)]
				at.RUnlock()
				switch status, code := b.buy(data, secret, tokens); {
				case status == http.StatusOK:
					refusals = 0
				case code == "insufficient_quota":
					refusals++
					<-time.After(10 * time.Millisecond) // a client that is refused does not spin
				case status == http.StatusTooManyRequests:
					waited.Add(1)
					<-time.After(50 * time.Millisecond) // sooner than it is told
				}
			}
		})
	}
	passed := func(usd float64) func() bool {
		return func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.spent >= usd
		}
	}
	proctest.Until(t, "a third is spent", passed(limit/3))
	gateways[2].Stop(syscall.SIGKILL)
	young := proctest.Start(t, nil, "serve", "-c", file)
	at.Lock()
	addresses[2], gateways[2] = young.Ready["data"], young
	at.Unlock()
	proctest.Until(t, "half is spent", passed(limit/2))
	redis.Restart() // empty
	users.Wait()

	var known float64
	proctest.Until(t, "the gateways agree", func() bool {
		known = usageOf(t, gateways[0], "").Budgets[0].SpentUSD
		return known == usageOf(t, gateways[1], "").Budgets[0].SpentUSD && known == usageOf(t, gateways[2], "").Budgets[0].SpentUSD
	})
	t.Logf("served for %.2f USD of %.0f, known %.2f (%+.2f %%); %d requests were told to come back", b.spent, limit, known, 100*(known/b.spent-1), waited.Load())
	const running = price * (tails*long + (clients-tails)*short)
	if over := known - limit; over > running+1e-6 {
		t.Errorf("the gateways let requests in for %.2f USD, which is %.2f over the limit; %.2f were running", known, over, running)
	}
	// What the one that was killed had not told is in no sum: a fiftieth of a second.
	if off := known/b.spent - 1; off > 0.01 || off < -0.01 {
		t.Errorf("the gateways know of %.2f USD, clients were served for %.2f: %.1f %% off", known, b.spent, 100*off)
	}
	if known < limit {
		t.Errorf("%.2f USD of %.0f are spent, and nobody is served: want all of it", known, limit)
	}
	// Kept over a restart, of the gateways that is.
	again := proctest.Start(t, nil, "serve", "-c", file)
	if status, code := b.buy(again.Ready["data"], secret, short); status != http.StatusTooManyRequests || code != "insufficient_quota" {
		t.Errorf("a gateway that has just started answers %d %s, want 429 insufficient_quota: the budget is spent", status, code)
	}
	if rows := usageOf(t, again, "?by=key,team").Rows; len(rows) != 1 || *rows[0].Key != "mobile" || *rows[0].Team != "apps" || rows[0].CachedTokens != 0 {
		t.Errorf("rows %+v, want one of mobile in apps", rows)
	}
	for _, key := range redis.Do("KEYS", "*").([]any) {
		if strings.Contains(key.(string), secret) || redis.Do("PTTL", key).(int64) <= 0 {
			t.Errorf("%s has the key, or lives for ever", key)
		}
	}
}

// A webhook is told of 80 % and of the end of a budget, signed, in the form that it asks for,
// and once more where it did not take the message.
func TestWebhooksAreToldOfABudget(t *testing.T) {
	const secret, sign = "sk-the-mobile-app", "whsec-of-the-hook"
	var mu sync.Mutex // guards what follows
	got := map[string][]string{}
	refused := map[string]bool{}
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/signed" {
			mac := hmac.New(sha256.New, []byte(sign))
			mac.Write([]byte(r.Header.Get("X-Pacer-Timestamp") + "." + string(body)))
			if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); r.Header.Get("X-Pacer-Signature") != want {
				t.Errorf("signature %q, want %q", r.Header.Get("X-Pacer-Signature"), want)
			}
		}
		if !refused[r.URL.Path] {
			refused[r.URL.Path] = true
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		var m struct{ Event, Text, Name string }
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		got[r.URL.Path] = append(got[r.URL.Path], m.Event+m.Name+" "+m.Text)
	}))
	defer hooks.Close()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "20")
	file := proctest.Write(t, "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\n"+
		"backends: [ { name: a, url: "+engine.Ready["url"]+"/v1, price: { output: 1000 } } ]\n"+
		"routes: [ { model: chat, targets: [ { backend: a, model: "+engine.Ready["model"]+" } ] } ]\n"+
		"webhooks: [ { url: \""+hooks.URL+"/signed\", secret: "+sign+" }, { url: \""+hooks.URL+"/slack\", format: slack } ]\n"+
		"keys: [ { name: mobile, key: "+secret+", budget: { usd: 0.10, warn: 0.8 } } ]\n")
	a := proctest.Start(t, nil, "serve", "-c", file)
	var b buyer
	proctest.Until(t, "all is spent", func() bool {
		_, code := b.buy(a.Ready["data"], secret, 10)
		return code == "insufficient_quota"
	})
	proctest.Until(t, "both are told of both", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got["/signed"]) == 2 && len(got["/slack"]) == 2
	})
	mu.Lock()
	defer mu.Unlock()
	for path, want := range map[string][]string{
		"/signed": {"budget.warningmobile Pacer: the key mobile has spent 80 % of its budget", "budget.exhaustedmobile Pacer: the key mobile has spent its budget"},
		"/slack":  {" Pacer: the key mobile has spent 80 % of its budget", " Pacer: the key mobile has spent its budget"},
	} {
		slices.Sort(got[path]) // the first one was refused, and is told later
		slices.Sort(want)
		for i := range want {
			if !strings.HasPrefix(got[path][i], want[i]) {
				t.Errorf("%s is told %q, want %q", path, got[path][i], want[i])
			}
		}
	}
}

// Without Redis usage and budgets are kept in state_dir, also when the gateway is
// killed.
func TestUsageIsKeptWithoutRedis(t *testing.T) {
	t.Parallel()
	const secret = "sk-the-mobile-app"
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "20")
	file := proctest.Write(t, "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nstate_dir: "+t.TempDir()+"\n"+
		"backends: [ { name: a, url: "+engine.Ready["url"]+"/v1, price: { output: 1000 } } ]\n"+
		"routes: [ { model: chat, targets: [ { backend: a, model: "+engine.Ready["model"]+" } ] } ]\n"+
		"keys: [ { name: mobile, key: "+secret+", budget: { usd: 0.05, then: refuse } } ]\n")
	a := proctest.Start(t, nil, "serve", "-c", file)
	var b buyer
	for i := range 5 {
		if status, _ := b.buy(a.Ready["data"], secret, 10); status != http.StatusOK {
			t.Fatalf("request %d of 5: %d", i+1, status)
		}
	}
	proctest.Until(t, "all is spent", func() bool {
		_, code := b.buy(a.Ready["data"], secret, 10)
		return code == "insufficient_quota"
	})
	a.Stop(syscall.SIGTERM)
	again := proctest.Start(t, nil, "serve", "-c", file)
	if status, _ := b.buy(again.Ready["data"], secret, 10); status != http.StatusTooManyRequests {
		t.Errorf("after a restart %d, want 429", status)
	}
	u := usageOf(t, again, "?by=key,route,model")
	if len(u.Rows) != 1 || u.Rows[0].Requests != 5 || u.Total.OutputTokens != 50 || u.Total.USD != 0.05 {
		t.Errorf("rows %+v of total %+v, want 5 requests and 50 tokens for 0.05 USD", u.Rows, u.Total)
	}
}
