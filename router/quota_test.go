package router

import (
	"math"
	"testing"
	"time"
)

// requests is a quota of requests alone.
func requests(left float64, until time.Time) (q Quota) {
	q[QuotaRequests] = Allowance{Left: left, Until: until}
	return q
}

// What a backend says is left of its limits is all that it is sent; the others go
// elsewhere, and those who find nothing elsewhere wait in line until it is paid
// back.
func TestAQuotaIsACap(t *testing.T) {
	b := newBench(t, []string{"hosted", "own"}, Route{Name: "chat", OnInfeasible: queue(30 * time.Second), Prefer: Order})
	b.topo.Backends[1].MaxConcurrency = 2
	b.configure()
	first := b.place("chat").Lease
	first.Quota(b.now, requests(3, b.now.Add(10*time.Second)))
	got := map[string]int{}
	for range 5 {
		d := b.place("chat")
		if d.Lease == nil {
			t.Fatalf("after %v: %+v, want a place", got, d)
		}
		got[d.Lease.Target().Backend]++
	}
	if got["hosted"] != 3 || got["own"] != 2 {
		t.Errorf("%v, want 3 on the hosted one and 2 on the own", got)
	}
	d := b.place("chat")
	if d.Ticket == nil {
		t.Fatalf("got %+v, want a place in line", d)
	}
	if got := b.reasons("chat"); got[0] != ReasonCap || got[1] != ReasonCap {
		t.Errorf("reasons %v, want cap and cap", got)
	}
	if s := b.Routes(b.now)[0]; s.Free != 0 || s.Unlimited {
		t.Errorf("free %d, unlimited %v; want none", s.Free, s.Unlimited)
	}
	b.sleep(9 * time.Second)
	if grants := b.tick(); len(grants) != 0 {
		t.Fatalf("after 9 s of 10: %+v", grants)
	}
	b.sleep(time.Second)
	if grants := b.tick(); len(grants) != 1 || grants[0].Decision.Lease.Target().Backend != "hosted" {
		t.Errorf("when the limit is paid back: %+v, want the hosted one", grants)
	}
}

// A limit that is paid back little by little lets as many go as come back; free
// and Retry-After say so.
func TestAQuotaThatIsPaidBackBySeconds(t *testing.T) {
	b := newBench(t, []string{"hosted"}, Route{Name: "chat", OnInfeasible: []Step{{Kind: Shed}}})
	q := Quota{QuotaRequests: {Left: 2, Most: 4, Refill: 0.5, Until: b.now.Add(time.Minute)}}
	b.place("chat").Lease.Quota(b.now, q)
	if s := b.Routes(b.now)[0]; s.Free != 2 {
		t.Errorf("free %d, want the 2 that are left", s.Free)
	}
	b.fill("chat", 2)
	d := b.place("chat")
	if d.Refusal == nil || d.Refusal.RetryAfter < 2*time.Second || d.Refusal.RetryAfter > 2400*time.Millisecond {
		t.Errorf("got %+v, want a refusal for 2 s, the time of one request, and up to a fifth", d.Refusal)
	}
	b.sleep(20 * time.Second) // 10 come back, of which 4 are the limit; 2 were placed since
	b.wantFill("chat", 2, "after 20 s")
	b.sleep(40 * time.Second)
	if n := len(b.fill("chat", 10)); n != 10 {
		t.Errorf("%d after its time, want all: nothing is known any more", n)
	}
}

// Tokens count by what a request brings and what its answer is expected to have.
// A prompt above the whole limit goes when nothing is used, and hears from the
// backend itself.
func TestAQuotaOfTokens(t *testing.T) {
	b := newBench(t, []string{"hosted"}, Route{Name: "chat", OnInfeasible: []Step{{Kind: Shed}}})
	prompt := func(tokens int) func(*Request) { return func(r *Request) { r.PromptTokens, r.MaxTokens = tokens, 100 } }
	first := b.place("chat").Lease
	tell := func(i int, left float64) {
		q := Quota{}
		q[i] = Allowance{Left: left, Most: 1000, Until: b.now.Add(time.Minute)}
		first.Quota(b.now, q)
	}
	for name, c := range map[string]struct {
		limit  int
		left   float64
		prompt int
		want   bool
	}{
		"both fit":             {QuotaTokens, 500, 400, true},
		"the answer does not":  {QuotaTokens, 499, 400, false},
		"the prompt alone":     {QuotaInput, 400, 400, true},
		"and no more":          {QuotaInput, 399, 400, false},
		"the answer alone":     {QuotaOutput, 100, 4000, true},
		"and not without room": {QuotaOutput, 99, 1, false},
		"above the limit":      {QuotaInput, 1000, 4000, true},
		"and not all is there": {QuotaInput, 999, 4000, false},
	} {
		tell(c.limit, c.left)
		d := b.place("chat", prompt(c.prompt))
		if got := d.Lease != nil; got != c.want {
			t.Errorf("%s: placed %v, want %v", name, got, c.want)
		}
		if d.Lease != nil {
			d.Lease.Done(b.now, 0)
		}
	}
}

// Whatever a backend says, it is believed for a minute at most, and what is no
// number is no limit of one that could be counted.
func TestAHostileQuota(t *testing.T) {
	for _, left := range []float64{0, -1e300, math.Inf(-1), math.NaN(), math.Inf(1)} {
		b := newBench(t, []string{"hosted"}, Route{Name: "chat", OnInfeasible: []Step{{Kind: Shed}}})
		q := Quota{}
		for i := range q {
			q[i] = Allowance{Left: left, Most: left, Refill: left, Until: b.now.Add(100 * 365 * 24 * time.Hour)}
		}
		b.place("chat").Lease.Quota(b.now, q)
		b.sleep(quotaMost)
		if d := b.place("chat"); d.Lease == nil {
			t.Errorf("%v left: %+v after a minute, want a place", left, d)
		}
		b.place("chat").Lease.Quota(b.now, q)
		b.now = b.now.Add(-time.Hour)
		if d := b.place("chat"); d.Lease == nil {
			t.Errorf("%v left: %+v when the clock was set back, want a place", left, d)
		}
	}
}

// Several gateways send as much as this one, at the same time.
func TestAQuotaIsSharedWithTheOtherReplicas(t *testing.T) {
	b := newBench(t, []string{"hosted"}, Route{Name: "chat", OnInfeasible: []Step{{Kind: Shed}}})
	b.Update(b.now, RemoteLoad{Replicas: 3})
	b.place("chat").Lease.Quota(b.now, requests(10, b.now.Add(time.Minute)))
	b.wantFill("chat", 3, "of 10 that are left")
}
