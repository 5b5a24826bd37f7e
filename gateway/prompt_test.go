package gateway

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPromptScaleLearns(t *testing.T) {
	var p promptScale
	if got := p.apply("", 1000); got != 1000 {
		t.Errorf("before any evidence an estimate of 1000 is worth %d, want 1000", got)
	}
	for range 3000 {
		p.learn("", 1000, 400)
	}
	got := p.apply("", 10_000)
	if got < 3990 || got > 4020 {
		t.Errorf("after many requests with 0.4 of the estimate, 10000 are worth %d, want 4000", got)
	}
	p.learn("", 100, 1601)
	p.learn("", 1601, 100)
	p.learn("", 0, 5)
	p.learn("", 5, -1)
	if again := p.apply("", 10_000); again != got {
		t.Errorf("nonsense moved 10000 from %d to %d", got, again)
	}
	for range 6000 {
		p.learn("", 1000, 2000)
	}
	if got := p.apply("", 1000); got < 1950 {
		t.Errorf("after the prompts changed, 1000 are worth %d, want 2000", got)
	}
	if got := p.apply("", 1<<40); got != maxPromptTokens {
		t.Errorf("a huge body is worth %d tokens, want it bounded to %d", got, maxPromptTokens)
	}
}

// What one key sends moves nobody else, and the start of new keys by less than 1.3.
func TestAKeyMovesItsOwnPromptScale(t *testing.T) {
	for name, odd := range map[string]struct{ estimate, counted int }{
		"one long prompt of spaces": {1 << 20, 1 << 16},
		"many tokens in few bytes":  {1000, 16_000},
	} {
		for _, others := range []int{0, 1, 3, 40} {
			t.Run(fmt.Sprintf("%s, %d others", name, others), func(t *testing.T) {
				var p promptScale
				for i := range others {
					for range 100 {
						p.learn(strconv.Itoa(i), 1000, 900)
					}
				}
				own, start := p.of("0"), p.of("new")
				for range 100 {
					p.learn("odd", odd.estimate, odd.counted)
				}
				if got := p.of("new"); math.Abs(math.Log(got/start)) > math.Log(1.3) {
					t.Errorf("a new key begins with %.3f, and with %.3f before", got, start)
				}
				if got := p.of("0"); others > 0 && got != own {
					t.Errorf("another key has %.3f, and had %.3f", got, own)
				}
			})
		}
	}
}

// A key that sends something else is followed in tens of requests, whatever it sent
// before, and one odd prompt among them is not followed.
func TestAKeyIsFollowedInTensOfRequests(t *testing.T) {
	const size = 1500
	for name, scale := range map[string]float64{"to digits": 3, "to Chinese": 1.4, "to Russian that is escaped": 0.2} {
		t.Run(name, func(t *testing.T) {
			var p promptScale
			for range 500 {
				p.learn("k", size, size)
			}
			p.learn("k", 1<<20, 1<<18)
			if got := p.of("k"); got < 0.95 {
				t.Errorf("one long prompt moved 1 to %.3f", got)
			}
			requests := 0
			for ; math.Abs(math.Log(p.of("k")/scale)) > math.Log(1.3) && requests < 100; requests++ {
				p.learn("k", size, int(size*scale))
			}
			t.Logf("within 1.3 of %v after %d requests", scale, requests)
			if requests > 60 {
				t.Errorf("it takes %d requests or more to come within 1.3 of %v", requests, scale)
			}
		})
	}
}

// A new key begins where those before it have come to.
func TestANewKeyBeginsWithTheOthersPromptScale(t *testing.T) {
	var p promptScale
	for i := range 100 {
		for range 50 {
			p.learn(strconv.Itoa(i), 1000, 2000)
		}
	}
	if got := p.of("new"); got < 1.8 || got > 2 {
		t.Errorf("a new key begins with %.3f where 100 others have 2, want nearly that", got)
	}
}

func TestPromptScaleIsBounded(t *testing.T) {
	var p promptScale
	for i := range 10 * mostPromptKeys {
		p.learn(strconv.Itoa(i), 1000, 1000+i)
	}
	if len(p.keys) != mostPromptKeys {
		t.Errorf("%d keys are known, want %d", len(p.keys), mostPromptKeys)
	}
	sum := 0.0
	for _, r := range p.keys {
		sum += math.Log(r.scale())
	}
	if math.Abs(sum-p.logs) > 1e-9 {
		t.Errorf("the logarithms are %v in all, and %v is kept", sum, p.logs)
	}
	if got := testing.AllocsPerRun(100, func() {
		for key := range p.keys {
			p.learn(key, 1000, p.apply(key, 900))
			break
		}
	}); got != 0 {
		t.Errorf("%v allocations for a key that is known", got)
	}
}

// One key's prompt with few tokens for its bytes leaves what others are charged.
func TestAnOddPromptLeavesWhatOthersAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		for _, name := range []string{"odd", "other", "late"} {
			k := key(name, "sk-"+name)
			k.Limits.TokensPerMinute = 1_000_000
			c.Keys = append(c.Keys, k)
		}
		engine := &script{}
		engine.answer = func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			tokens := len(engine.bodies[engine.calls()-1]) / bytesPerToken
			if tokens > 100_000 {
				tokens /= 15
			}
			say(w, delta+lastDelta+usageEvent(tokens, 2)+doneEvent)
		}
		h := open(t, c, map[string]http.Handler{"a": engine})
		send := func(name string, size int) (charged int) {
			<-time.After(2 * time.Minute) // the limit is whole
			body := `{"model":"chat","stream":true,"max_tokens":1,"messages":[{"role":"user","content":"` + strings.Repeat("go on ", size/6) + `"}]}`
			r := h.post(chat, body, "Authorization", "Bearer sk-"+name)
			if r.status != 200 || r.err != nil {
				t.Fatalf("%s: %d %v", name, r.status, r.err)
			}
			left, err := strconv.Atoi(r.header.Get("X-Ratelimit-Remaining-Tokens"))
			if err != nil {
				t.Fatal(err)
			}
			return 1_000_000 - left
		}
		send("other", 8000)
		before := send("other", 8000)
		send("odd", 3<<20)
		for _, name := range []string{"other", "late"} {
			if got := send(name, 8000); float64(got) < float64(before)/1.3 {
				t.Errorf("%s was charged %d tokens for a prompt, %d before", name, got, before)
			}
		}
	})
}
