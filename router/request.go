package router

import "time"

// Request is what the router must know of a request.
type Request struct {
	ID      string // for those who read decisions; kept for a while, so bounded by the caller
	Route   string
	Arrived time.Time // when it came to the gateway: waiting counts from here; zero = when it is placed

	PromptTokens int      // estimate; 0 = unknown
	Warm         []Warmth // targets whose prefix cache is expected to have a part of the prompt
	Caches       Caches   // asked for Warm again while the request waits in line; nil = Warm stands
	MaxTokens    int      // asked for; 0 = unknown
	Sequences    int      // decoded at once (n, best_of, prompts of an array); 0 counts as 1
	Stream       bool     // a stream tells its first token by Lease.FirstToken; any other counts as decoding from the predicted TTFT on
	NoDecode     bool     // embeddings and the like: a lease for caps and health, weight 0

	// Overrides of the request, in the place of the route's; nil = the route's own.
	Class   *Class
	MinTPS  *float64
	MaxTTFT *time.Duration

	Tenant  string   // for fairness within a line
	Key     uint64   // the same for a request that is sent again, by which it is recognised when it comes back as told; 0 = not known
	Exclude []string // backends already tried for this request
	NoQueue bool     // decide now, ahead of those in line: it is placed, or refused and promised nothing
	Again   bool     // it failed over: a refusal is not what its client is told, and promises nothing

	// Moves says that the request has a place, where it waits in vain. In line it goes by
	// its arrival, as one who comes back as told, takes the first place there is, and holds
	// up nobody. It counts not among those who wait: as many may stand there beside them. Its
	// ticket is never to expire: who stays where it is cancels it.
	Moves bool

	// Spare asks for a second place beside one that the request has: now, on a
	// feasible target of the route itself that is not being tried out, and
	// behind all who wait in line; else it is refused.
	Spare bool

	// Stood is how long it has stood in line so far. When it failed over, what it lost at the
	// backend takes nothing of its time there: the queue of a route is for the line.
	Stood time.Duration

	// Split says which target of a route with weights has the request, in [0, 1):
	// the weights in the order of the targets fill that range.
	Split float64

	// Waiter is handed back in the Grant, untouched.
	Waiter any

	// Into is where the lease is put: the caller's memory for one lease that
	// was never used, so that a decision allocates nothing. nil, or one that
	// was used already, and the router makes its own.
	Into *Lease
}

// Warmth is what the prefix cache of a target is expected to have of a prompt, in
// tokens: Likely as the best guess, by which one is preferred, and Sure as far as it
// was seen to be so, by which one is let in.
//
// Told are those that the target is going to say it has, and Most the seconds that
// each of such took at most, whatever it waited for; 0 = not known. So many tokens
// of Told are computed at most as take that long.
//
// Soon are those that are as sure as Sure once a prompt has its first token that is
// prefilled there.
//
// Shared are those that another request has sent there within the last two seconds.
//
// Aside says that nobody goes there for it: it says what is computed wherever the
// request goes.
type Warmth struct {
	Target       Target
	Likely, Sure int
	Told         int
	Most         float64
	Soon         int
	Shared       int
	Aside        bool
}

// Caches tells what prefix caches have of a prompt. It is asked under the router's
// lock, so it neither blocks nor asks the router.
type Caches interface {
	// Warm appends to into what Request.Warm says, as of now.
	Warm(now time.Time, into []Warmth) []Warmth
}

// ask is a request as put to one route: with the request's overrides applied, at
// one moment.
type ask struct {
	req     Request // a copy: a pointer would move every Request to the heap
	route   *route
	now     time.Time
	arrived time.Time
	waited  time.Duration // since arrived
	stood   time.Duration // of it in line: all, but for what a backend took that failed it
	class   Class
	floor   float64       // tokens/s; 0 = none
	maxTTFT time.Duration // 0 = none
	weight  int           // sequences; 0 for a request that does not decode
	prompt  int           // tokens to prefill; 0 for a request that does not decode
	turn    uint64        // requests that came to the route before it
	since   time.Time     // it comes back as told: when it was refused for the first time, or came where it waits in vain; else zero
	inVain  bool          // it came back as told before this
	spilled bool          // it is another route's, which had no place for it

	// Set by judge.
	at      time.Duration // since Router.began
	unheard float64       // see peers.unheard
	number  uint64        // by which it marks targets; 0 = it did not

	bid bid // see peers.bids

	verdicts []verdict // on the route's targets, in their order, once they were judged
	yielded  bool      // it left a place to other replicas
	insists  bool      // it can wait no longer: it takes one whatever they do
	preview  bool      // it is only asked what would become of it
	probed   bool      // what is asked is what comes when every backend that is tried out has its probe
}

// newAsk puts req to rt.
func newAsk(now time.Time, rt *route, req *Request) (a ask) {
	a.put(now, rt, req)
	return a
}

// put makes a what req asks of rt.
func (a *ask) put(now time.Time, rt *route, req *Request) {
	*a = ask{
		req: *req, route: rt, now: now, arrived: req.Arrived,
		class: rt.conf.Class, floor: rt.conf.SLO.MinTPS, maxTTFT: rt.conf.SLO.MaxTTFT,
		weight: max(req.Sequences, 1), prompt: max(req.PromptTokens, 0), turn: rt.came,
	}
	if a.arrived.IsZero() || a.arrived.After(now) {
		a.arrived = now
	}
	a.waited = now.Sub(a.arrived)
	a.stood = a.waited
	if req.Again {
		a.stood = min(req.Stood, a.waited)
	}
	if req.Moves {
		a.since = a.arrived
	}
	if req.Class != nil {
		a.class = *req.Class
	}
	if req.MinTPS != nil {
		a.floor = *req.MinTPS
	}
	if req.MaxTTFT != nil {
		a.maxTTFT = *req.MaxTTFT
	}
	if req.NoDecode {
		a.weight, a.prompt, a.floor = 0, 0, 0
	}
	if a.class == Batch || !(a.floor > 0) { // NaN is no floor either
		a.floor = 0
	}
}

// back reports whether a comes back as it was told.
func (a *ask) back() bool { return !a.since.IsZero() }

// behind is how many wait on its route and go before a, whatever place there is; 0 for one
// who waits for no speed, or passes them.
func (a *ask) behind() int {
	switch {
	case a.req.NoQueue || a.weight == 0:
		return 0
	case a.back() && (a.class == Interactive || a.route.lines[Interactive].len() == 0):
		q := &a.route.lines[a.class]
		return q.told.waiting - q.moving
	}
	return a.route.ahead(a.class)
}

// due is by when a is to be served if it may wait until deadline: by as long after its
// arrival as after it began to stand in line. For one that comes back as told it is as if it
// had waited ever since.
func (a *ask) due(deadline time.Time) time.Time {
	from := a.arrived
	if !a.since.IsZero() {
		from = a.since
	}
	return from.Add(a.stood + deadline.Sub(a.now))
}

const (
	// usualAnswer stands for the length of an answer, in tokens, until the
	// target's or the route's own mean is known.
	usualAnswer = 256

	// leastAnswer is the shortest answer over which prompts that wait for
	// their prefill are spread: for shorter ones a single prompt would look
	// like a collapse of the backend.
	leastAnswer = 32
)

// answer is how many tokens one sequence is expected to put out on m.
func (a *ask) answer(m *model) float64 { return a.output(m.answer) }

// output is answer where the mean of a target is tokens; 0 = the route says.
func (a *ask) output(tokens float64) float64 {
	if tokens <= 0 {
		tokens = a.route.lengths.mean(usualAnswer)
	}
	if a.req.MaxTokens > 0 {
		tokens = min(tokens, float64(a.req.MaxTokens))
	}
	return tokens
}

// price is what the request is expected to cost on t, in USD.
func (a *ask) price(t *RouteTarget, m *model) float64 {
	if t.InputPrice == 0 && t.OutputPrice == 0 {
		return 0
	}
	out := a.answer(m) * float64(a.weight)
	return (t.InputPrice*float64(max(a.req.PromptTokens, 0)) + t.OutputPrice*out) / 1e6
}
