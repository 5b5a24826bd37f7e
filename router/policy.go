package router

// Policy chooses among the targets of a route: one method, a file each. It is
// asked under the router's lock, so it neither blocks nor asks the router, and it
// may be asked without anything coming of it: by Preview, or for one who waits.
type Policy interface {
	// Pick returns the index of the target that the request goes to, -1 when it is
	// to go nowhere. One that is not open counts as nowhere.
	Pick(c Choice) int
}

// Registered is a policy under a word.
type Registered struct {
	Policy

	// Regardless: every target in service is open to it, whatever the rules of
	// speed and the caps say, as for who has no admission control. Nobody waits in
	// line, and nobody is refused as long as a backend is in service.
	Regardless bool
}

// Prefer is the word of a policy; "", and one that no policy has, is headroom.
type Prefer string

// The words that the configuration has; ties within 5 % are broken at random,
// except by Order.
const (
	Headroom Prefer = "headroom" // largest bound over need
	Order    Prefer = "order"    // first in the configuration
	Cheapest Prefer = "cheapest" // lowest price, then headroom
	Pack     Prefer = "pack"     // tightest fit
)

// policies are the words of the configuration with their policies, as messages
// list them. A new policy is a file and a row.
var policies = [...]struct {
	word   Prefer
	policy Policy
}{
	{Headroom, byHeadroom{}},
	{Order, byOrder{}},
	{Cheapest, byPrice{}},
	{Pack, tightest{}},
}

// Preferences are the words that the configuration has for policies, the default
// first.
func Preferences() []string {
	words := make([]string, len(policies))
	for i := range policies {
		words[i] = string(policies[i].word)
	}
	return words
}

// prefer returns the policy called word, and its word.
func (r *Router) prefer(word Prefer) (Prefer, Registered) {
	if p, ok := r.others[word]; ok {
		return word, p
	}
	for i := range policies {
		if policies[i].word == word {
			return word, Registered{Policy: policies[i].policy}
		}
	}
	return Headroom, Registered{Policy: policies[0].policy}
}

// Choice is what a policy chooses from: the targets of a route, by their index in
// the configuration, for one request. It is good for one call of Pick.
type Choice struct {
	router *Router
	ask    *ask
}

// Len is how many targets there are.
func (c Choice) Len() int { return len(c.ask.verdicts) }

// Target is target i.
func (c Choice) Target(i int) Target { return c.ask.route.conf.Targets[i].Target }

// Open reports whether the request may go to target i: every floor is kept, or
// nobody asks for that.
func (c Choice) Open(i int) bool { return c.ask.open(&c.ask.verdicts[i]) }

// InFlight is how many sequences of this router, and requests that do not decode,
// are on the backend of target i.
func (c Choice) InFlight(i int) int {
	m := c.ask.verdicts[i].model
	if m == nil {
		return 0
	}
	return m.group.backend.own + m.group.backend.idle
}

// Warm is the share of the prompt that target i is thought to have in its cache,
// from 0 to 1.
func (c Choice) Warm(i int) float64 {
	m := c.ask.verdicts[i].model
	if m == nil || c.ask.prompt <= 0 {
		return 0
	}
	likely, _ := c.ask.warmth(m)
	return float64(likely) / float64(c.ask.prompt)
}

// Session is the same for all requests of a session, in [0, 1).
func (c Choice) Session() float64 { return c.ask.req.Split }

// Turn is how many requests the route had before this one.
func (c Choice) Turn() uint64 { return c.ask.turn }

// Spare reports whether the request has a place, and asks for a second one.
func (c Choice) Spare() bool { return c.ask.req.Spare }

// Rand is a random number in [0, 1).
func (c Choice) Rand() float64 { return c.router.chance(c.ask) }

// open reports whether a may go where v is about.
func (a *ask) open(v *verdict) bool {
	return v.reason == OK || a.route.policy.Regardless && !v.reason.outOfService()
}

// choose picks among the targets that were judged: the one that a split route gives
// the request to, else as the route prefers; nil when there is none to go to.
func (r *Router) choose(a *ask) *verdict {
	if v := a.assigned(); v != nil {
		return v
	}
	if v := a.route.cleared(a); v != nil {
		return v
	}
	if v := a.bid.target(a.verdicts); v != nil {
		return a.warmer(v)
	}
	i := a.route.policy.Pick(Choice{router: r, ask: a})
	if i < 0 || i >= len(a.verdicts) || !a.open(&a.verdicts[i]) || r.yields(a, &a.verdicts[i]) {
		return nil
	}
	return a.warmer(&a.verdicts[i])
}
