package router

import (
	"math"
	"testing"
	"time"
)

// audited has every verdict of r held against what the rules say in full.
func audited(tb testing.TB, r *Router) {
	r.audit = func(a *ask) {
		for i := range a.verdicts {
			v := a.verdicts[i]
			if v.model == nil {
				continue
			}
			full, c := verdict{model: v.model, index: v.index, headroom: math.Inf(1)}, v.model.group.present()
			if a.weigh(&full, &c); v != full {
				tb.Errorf("%v: judged %+v, in full %+v, by %+v", a.route.conf.Targets[i].Target, v, full, v.model.gist)
			}
			if v.reason == OK && v.takesLast(a) != a.scarce(v.model.group, int(v.m)+a.weight) {
				tb.Errorf("%v: whether it takes the last place of a higher floor was another answer before, by %+v", a.route.conf.Targets[i].Target, v.model.gist)
			}
		}
	}
}

// What a backend says between two decisions counts in the next one: fixtures hold each
// verdict against the rules.
func TestAGistEndsWithWhatItRestsOn(t *testing.T) {
	for _, c := range []struct {
		name string
		say  func(*bench, []*Lease)
		want Reason
	}{
		{"it refuses everything", func(b *bench, leases []*Lease) {
			for _, l := range leases[:manyRefusals] {
				l.Refused(b.now, true)
			}
		}, ReasonRefuses},
		{"it is full", func(b *bench, leases []*Lease) { leases[0].Full(b.now, time.Second) }, ReasonRefuses},
		{"nothing is left of a limit", func(b *bench, leases []*Lease) {
			leases[0].Quota(b.now, Quota{QuotaRequests: {Until: b.now.Add(time.Second)}})
		}, ReasonCap},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x", "y"})
			b.learn("x", carrying(38, 30, 60))
			b.learn("y", carrying(38, 30, 60))
			var leases []*Lease
			for range manyRefusals {
				leases = append(leases, b.place("chat", exclude("y")).Lease)
			}
			if got := b.reasons("chat"); got[0] != OK {
				t.Fatalf("%v at first, want ok", got[0])
			}
			c.say(b, leases)
			if got := b.reasons("chat"); got[0] != c.want {
				t.Errorf("%v afterwards, want %v", got[0], c.want)
			}
		})
	}
}
