package arena

import (
	"iter"
	"testing"
	"time"
)

// The rows of docs/WARM.md on what happens to fleets, each on chats and on agents at
// about 60 % of what is carried.
var warmLoads = []struct {
	load     string
	rate     float64
	replicas float64 // the share of one replica's hit rate that three have at least, on average
}{{"chats", 11, 0.96}, {"agents", 4, 0.96}}

// share is the share of the prompt tokens that were cached on the backend called name.
func (r *Result) share(name string) float64 {
	for _, b := range r.Backends {
		if b.Backend == name {
			return float64(b.CachedTokens) / float64(b.PromptTokens)
		}
	}
	return 0
}

// A conversation comes to one of three replicas by chance each time. They tell each
// other what they sent where.
func TestReplicasFindWhatIsWarm(t *testing.T) {
	skipUnderRace(t)
	for _, c := range warmLoads {
		const seeds = 5
		share := 0.0
		for seed := range uint64(seeds) {
			p := talking(c.load, c.rate, cached(400_000))
			p.warmup = 100 * time.Second
			one := p.with(t, Pacer, seed+1, nil)
			three := p.with(t, Pacer, seed+1, func(s *Scenario) { s.Replicas = 3 })
			x := &three.Routes[0]
			t.Logf("%s, seed %d: %.1f %% from a cache with three gateways, %.1f %% with one; met %.2f %%, missed of served %.2f %%", c.load, seed+1, 100*three.hits(), 100*one.hits(), 100*x.Attainment(), 100*x.MissedOfServed())
			share += three.hits() / one.hits() / seeds
		}
		if share < c.replicas {
			t.Errorf("%s: three gateways have %.1f %% of one's hit rate, want %.0f %%", c.load, 100*share, 100*c.replicas)
		}
	}
}

// A prompt that another replica has had prefilled, and not told of yet, has its first token
// at once. That makes no prompt cheap: a cold one of 16,000 tokens stops all who stream for
// four seconds.
func TestReplicasKnowWhatAPromptCosts(t *testing.T) {
	skipUnderRace(t)
	for seed := range uint64(5) {
		seed += 26
		r := talking("hot", 14, cached(400_000)).with(t, Pacer, seed, func(s *Scenario) { s.Replicas = 3 })
		x := &r.Routes[0]
		t.Logf("seed %d: met %.2f %%, missed of served %.2f %%", seed, 100*x.Attainment(), 100*x.MissedOfServed())
		if x.MissedOfServed() > 0.003 {
			t.Errorf("seed %d: %.2f %% of the served missed their floor, want at most 0.3 %%", seed, 100*x.MissedOfServed())
		}
	}
}

// An engine that is started anew, and one that joins, have nothing in their caches.
// After a minute they are as warm as the others, and nobody has lost a floor.
func TestAColdEngineIsWarmWithinTheMinute(t *testing.T) {
	skipUnderRace(t)
	const at = 150 * time.Second
	for name, edit := range map[string]func(p *pool){
		"starts anew": func(p *pool) {
			p.faults = []Fault{{At: at, Kind: Kill, Backend: "d"}, {At: at + 5*time.Second, Kind: Back, Backend: "d"}}
		},
		"joins": func(p *pool) { p.backends[3].Joins = at },
	} {
		for _, c := range warmLoads {
			const seeds = 4                    // by chance a single one has fifteen points less: few conversations come there in a minute
			mean, all, missed := 0.0, 0.0, 0.0 // by how many users it has
			for seed := range uint64(seeds) {
				p := talking(c.load, c.rate, cached(400_000))
				edit(&p)
				p.warmup = at
				after := p.with(t, Pacer, seed+1, nil)
				p.warmup = at + time.Minute
				later := p.with(t, Pacer, seed+1, nil)
				x := &after.Routes[0]
				share, others, load, users := later.share("d"), 0.0, 0.0, 0.0
				for _, b := range later.Backends {
					users += b.MeanM
					if b.Backend == "d" {
						load = b.MeanM
					} else {
						others += later.share(b.Backend) / 3
					}
				}
				t.Logf("%s, %s, seed %d: missed of served %.2f %%, met %.2f %%, failed %d; a minute later %.1f %% from its cache, of the others %.1f %%; it has %.1f of %.1f users", name, c.load, seed+1, 100*x.MissedOfServed(), 100*x.Attainment(), x.Failed, 100*share, 100*others, load, users/4)
				missed += x.MissedOfServed() / seeds
				all += load
				if mean += load * share / others; share < 0.75*others {
					t.Errorf("%s, %s: after a minute %.1f %% from its cache, the others %.1f %%", name, c.load, 100*share, 100*others)
				}
			}
			if missed > 0.005 {
				t.Errorf("%s, %s: %.2f %% of the served missed their floor, want at most 0.5 %%", name, c.load, 100*missed)
			}
			if mean /= all; mean < 0.95 {
				t.Errorf("%s, %s: after a minute it has %.1f %% of the others' hit rate, want 95 %%", name, c.load, 100*mean)
			}
		}
	}
}

// What four engines carry that prefill nothing twice: the most chats for which each
// step of all who decode, with the prompts that come beside them, takes 1/30 s. It
// is a fluid: nobody comes at a bad moment, and there is no margin.
func TestWhatIsLeftToWin(t *testing.T) {
	p := talking("chats", 17, cached(400_000))
	var fresh, answers, last, count float64
	kept := everKept{}
	for a := range p.load(1) {
		fresh += float64(a.PromptTokens - kept.of(&a, p.backends[0].Engine.Block))
		answers += float64(a.OutputTokens)
		count++
		if a.At >= length300-time.Minute {
			last += 1.0 / 60
		}
	}
	m, users := p.backends[0].Engine.Model, 1
	for m.StepSeconds(users+1, fresh/answers*float64(users+1)) <= 1.0/30 {
		users++
	}
	carried := 4 * float64(users) * 30 / (answers / count)
	t.Logf("%.0f tokens of a prompt were never there, %.0f of an answer: %d users each, %.1f chats/s; a load of 17/s has %.1f in its last minute", fresh/count, answers/count, users, carried, last)
	if most := carried / last; most < 1.05 || most > 1.3 {
		t.Errorf("%.2f times the load of 17/s: what docs/WARM.md says of 1.15 is wrong", most)
	}
}

// Batch whose prompts share nothing would empty the caches of those who chat. While
// other engines have room it goes there, and leaves their prefixes alone.
func TestBatchLeavesWarmPrefixesAlone(t *testing.T) {
	skipUnderRace(t)
	const seeds = 10 // by chance a single one has two points less
	share := 0.0
	for seed := range uint64(seeds) {
		p := talking("chats", 4, cached(150_000))
		p.routes = []Route{chat("chat", 30, p.backends[:2]), nightly(p.backends)}
		p.warmup = time.Minute
		alone := p.with(t, Pacer, seed+1, nil).route("chat")
		chats := p.load
		p.load = func(seed uint64) iter.Seq[Arrival] {
			night, _ := NamedTalks("one-off", 8)
			night.Duration, night.Seed = length300, seed+100
			return merge(chats(seed), to("nightly", night.Arrivals()))
		}
		r := p.with(t, Pacer, seed+1, nil)
		with, night := r.route("chat"), r.route("nightly")
		hits, before := with.warm(), alone.warm()
		t.Logf("seed %d: %.1f %% of the prompt tokens of chats are cached beside batch, %.1f %% without; %.2f %% of the chats met; batch: %d of %d done", seed+1, 100*hits, 100*before, 100*with.Attainment(), night.Met, night.Offered)
		share += hits / before / seeds
		if with.Attainment() < 0.99 || float64(night.Met) < 0.99*float64(night.Offered) {
			t.Errorf("%.2f %% of the chats met, %d of %d of batch: too much for the engines to show anything", 100*with.Attainment(), night.Met, night.Offered)
		}
	}
	if share < 0.99 {
		t.Errorf("chats have %.1f %% of their hit rate beside batch", 100*share)
	}
}

// warm is the share of the served prompt tokens that were cached.
func (r *RouteResult) warm() float64 {
	return float64(r.CachedTokens) / float64(r.ServedPromptTokens)
}
