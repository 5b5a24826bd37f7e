package prefix

import (
	"sync"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// DefaultMemory is what an Index takes at most, in bytes, unless told otherwise.
const DefaultMemory = 64 << 20

// Index is what the caches of all targets are thought to have. It is safe for
// concurrent use.
type Index struct {
	mu     sync.RWMutex // guards caches, not what they hold; taken before theirs
	caches map[router.Target]*cache
}

// New returns an index of no targets.
func New() *Index { return &Index{caches: map[router.Target]*cache{}} }

// Configure says which targets there are, and how many bytes the index takes at
// most; 0 = DefaultMemory. What is known of others is let go, and each has the same
// share of the memory.
func (x *Index) Configure(memory int, targets []router.Target) {
	if memory <= 0 {
		memory = DefaultMemory
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.caches
	x.caches = make(map[router.Target]*cache, len(targets))
	for _, t := range targets {
		x.caches[t] = before[t]
	}
	most := memory / nodeBytes / max(len(x.caches), 1)
	for t, h := range x.caches {
		if h == nil {
			x.caches[t] = newCache(most)
			continue
		}
		h.mu.Lock()
		h.most = max(most, 1)
		h.mu.Unlock()
	}
}

func (x *Index) cache(t router.Target) *cache {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.caches[t]
}

// Look appends to into what each of the targets is expected to have of the prompt
// of so many tokens that c is of, for those that have any.
func (x *Index) Look(now time.Time, c *Chain, tokens int, targets []router.Target, into []router.Warmth) []router.Warmth {
	if c.Empty() {
		return into
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, t := range targets {
		h := x.caches[t]
		if h == nil {
			continue
		}
		h.mu.Lock()
		m := h.match(now, c)
		likely, sure, told := h.expect(&m, c, tokens)
		most, soon := h.worth.bound.most(), h.soon(&m, c, tokens)
		h.mu.Unlock()
		if likely+soon >= 1 {
			into = append(into, router.Warmth{Target: t, Likely: int(likely), Sure: int(sure), Told: int(told), Most: most, Soon: int(soon), Shared: int(m.shared(c, tokens))})
		}
	}
	return into
}

// expect is how many of the tokens are expected to be there: likely, as the best
// guess, and sure, as far as it was seen to be so. told are those that it is going to
// tell of as surely.
func (h *cache) expect(m *match, c *Chain, tokens int) (likely, sure, told float64) {
	if m.count == 0 {
		return 0, 0, 0
	}
	// What is taken for what nobody has seen: to be there, to be there for sure, and of an answer.
	tells, hope, first, answered := h.keeping.tells(), hoped, 0.0, 0.0
	switch {
	case !tells: // trust says how much of it is sure
		hope, first, answered = 1, 1, 0.5
	case h.faith.holds() && h.keeping.keepsAll():
		first, answered = trusted, trusted
	}
	share, least, believed := h.trust()
	whole := 0.0 // for sure, of what was used just now
	for i := range m.count {
		s := &m.stretches[i]
		n := c.tokens(tokens, s.from, s.to)
		likely += n * h.keeping.chance(s.age, hope)
		switch {
		case s.doubted:
		case believed && h.keeping.keepsAll() && s.age.time <= justNow:
			whole += n * h.keeping.surely(s.age, 1)
		default:
			sure += n * h.keeping.surely(s.age, first)
		}
	}
	room := float64(tokens) - likely
	answer := min(float64(m.answer), max(room, 0))
	likely += answer * h.keeping.answers.mean(0.5)
	if !m.stretches[m.count-1].doubted {
		sure += answer * h.keeping.answers.mean(answered)
	}
	likely, sure = max(likely-h.keeping.short, 0), max(sure-h.keeping.short, 0)
	if tells {
		told = sure + whole
	}
	return likely * share, sure*least + whole, told
}

// trust is what part of what is in the cache by all that is known saves time, and what
// part does so for sure. believed is whether nothing but the belief in its kind says so.
func (h *cache) trust() (share, least float64, believed bool) {
	tells := h.keeping.tells()
	switch share, least, known := h.worth.share(); {
	case known && tells:
		return share, least, false
	case known:
		return share, least * least, false
	case h.faith.holds():
		return 1, trusted, true // until a first token speaks against it
	case tells && !h.faith.doubted():
		return 1, 0.5, false // until it is seen that it saves time
	}
	return 1, 0, false
}

// soon is how many of the tokens are going to be there beyond those that are, once a
// prompt that is computed has its first token, as surely as those that are.
func (h *cache) soon(m *match, c *Chain, tokens int) float64 {
	if m.soon <= m.end() {
		return 0
	}
	_, least, believed := h.trust()
	if believed || least == 0 && h.faith.seen == 0 && h.faith.hopes() {
		least = 1 // nothing can be forgotten by then, and its first token is going to tell
	}
	return least * c.tokens(tokens, m.end(), m.soon)
}

// Visit is a request that was sent to a target. The zero value is of one of which
// nothing is known. It belongs to one goroutine.
type Visit struct {
	cache   *cache
	match   match
	last    uint64 // hash of the newest block
	first   uint64 // of the first that was not there, 0 = none
	bytes   int
	tokens  int
	likely  float64
	sent    time.Time
	settled bool
	brings  bool             // what begins with first is computed for it, and not for one before it
	told    bool             // the others have been told of it
	news    [openings]uint64 // ends of its first parts that are to be told, too; 0 = none
}

// Send notes that the request which c is of, with so many tokens of prompt, goes to
// t now.
func (x *Index) Send(now time.Time, t router.Target, c *Chain, tokens int) Visit {
	h := x.cache(t)
	if h == nil || c.Empty() {
		return Visit{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v := Visit{cache: h, match: h.match(now, c), last: c.last, bytes: c.bytes, tokens: tokens, sent: now}
	v.likely, _, _ = h.expect(&v.match, c, tokens)
	sent := min(h.depth(c), v.match.known)
	v.first, v.brings = h.compute(now, c, sent)
	h.touch(now, c, max(float64(tokens)-v.likely, 0))
	v.news = h.openings(c, sent, v.match.end())
	return v
}

// Predicted is how many tokens of the prompt were expected to be in the cache.
func (v *Visit) Predicted() float64 { return v.likely }

// Outcome is what became of a visit.
type Outcome struct {
	PromptTokens int // by the target's own count, 0 = nobody counted
	CachedTokens int // of these; 0 = none, or nothing is told
	AnswerTokens int // of an answer that comes back in the next prompt; 0 = it does not

	Took time.Duration // from when it was sent until now

	// TTFT is the time to the first token, and Ahead how many tokens of other prompts
	// had to be computed before; 0 = not known.
	TTFT  time.Duration
	Ahead int
}

const (
	// leastTold is how large a prediction has to be, in tokens, for its failure to
	// mean something, and gone how little of it is there then.
	leastTold = 256
	gone      = 0.1

	// emptied is how many prompts in a row have to be gone for the cache to be
	// taken for empty, and believed how likely they were to be there.
	emptied  = 3
	believed = 0.5

	// wholeStretch is how many bytes of a stretch count as one look.
	wholeStretch = 4 * blockBytes
)

// First teaches how soon the first token came, with so many tokens of other prompts
// that had to be computed before it. Of one that waited for others nothing is learned.
func (v *Visit) First(ttft time.Duration, ahead int) {
	if v.cache == nil {
		return
	}
	v.cache.mu.Lock()
	defer v.cache.mu.Unlock()
	v.cache.computedFrom(v.first)
	v.tell(v.sent.Add(ttft))
	if ahead*mostBefore > v.tokens {
		return
	}
	if v.lost(ttft) {
		return
	}
	v.look(ttft, ahead)
	v.cache.faith.see(v.tokens, int(v.possible(v.tokens)), ttft.Seconds())
	v.cache.worth.bound.see(v.possible(v.tokens), ttft.Seconds())
}

// Settle teaches what became of the visit. Calls after the first do nothing.
func (v *Visit) Settle(o Outcome) {
	if v.cache == nil || v.settled {
		return
	}
	v.settled = true
	h := v.cache
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.TTFT <= 0 && o.AnswerTokens <= 0 && o.PromptTokens <= 0 {
		h.abandon(v)
		return
	}
	h.computedFrom(v.first)
	v.tell(v.sent.Add(o.Took))
	if at, ok := h.nodes[v.last]; ok && o.AnswerTokens > 0 {
		h.list[at].answer = int32(min(o.AnswerTokens, 1<<30))
		h.tell(v.sent.Add(o.Took), v.last, h.list[at].answer)
		h.computed += float64(o.AnswerTokens)
	}
	if o.PromptTokens <= 0 {
		return
	}
	h.keeping.hearTold(float64(o.CachedTokens), v.sentBefore(o.PromptTokens, max(v.match.end(), v.match.soon)))
	told := h.keeping.tells()
	if o.TTFT > 0 && o.Ahead <= mostAhead*o.PromptTokens {
		cached := v.possible(o.PromptTokens)
		if told {
			cached = min(cached, float64(o.CachedTokens))
		}
		h.worth.see(float64(o.PromptTokens)-cached, cached, o.TTFT.Seconds(), o.Ahead)
	}
	h.counts.add(v.likely, float64(o.CachedTokens), float64(o.PromptTokens))
	if told {
		v.learn(&o)
	}
}

// mostAhead is how many times its own length other prompts may be ahead of one whose
// first token says what a token costs.
const mostAhead = 3

// mostBefore is what part of its own length other prompts may be ahead of one that
// counts as having waited for nobody.
const mostBefore = 4

// possible is how much of so many prompt tokens can have been there, by what was sent
// there. More is told by one that says so of each prompt, or that serves others too.
func (v *Visit) possible(prompt int) float64 { return v.sentBefore(prompt, v.match.end()) }

// sentBefore is how many of so many prompt tokens the bytes up to end are, and the answer
// to what ends there.
func (v *Visit) sentBefore(prompt int, end uint32) float64 {
	return min(float64(end)/float64(v.bytes)*float64(prompt)+float64(v.match.answer), float64(prompt))
}

// Trusted is how many of the cached tokens that a target told of a prompt were there,
// and saved time, as far as that is known. Of one that tells of more than was ever sent
// there first tokens alone say so.
func (v *Visit) Trusted(prompt, told int) int {
	if v.cache == nil || told <= 0 {
		return told
	}
	v.cache.mu.Lock()
	defer v.cache.mu.Unlock()
	trusted := min(float64(told), v.possible(prompt)+blockBytes)
	switch share, _, known := v.cache.worth.share(); {
	case known:
		trusted *= share
	case v.cache.keeping.lies():
		return 0
	}
	return int(trusted)
}

// learn compares what was there with what was expected. The cache is locked.
func (v *Visit) learn(o *Outcome) {
	h, m := v.cache, &v.match
	if v.likely > 0 {
		h.keeping.miss(v.likely/float64(v.tokens)*float64(o.PromptTokens) - float64(o.CachedTokens))
	}
	upTo := float64(o.CachedTokens) / float64(o.PromptTokens) * float64(v.bytes)
	found, doubted := 0.0, m.inDoubt()
	for i := range m.count {
		s := &m.stretches[i]
		length := float64(s.to - s.from)
		x := min(max((upTo-float64(s.from)+blockBytes/2)/length, 0), 1)
		if s.doubted {
			found += x * length
		} else {
			h.keeping.see(s.age, x, min(length/wholeStretch, 1))
		}
	}
	if doubted >= wholeStretch {
		v.answers(found*2 >= doubted)
		return
	}
	if m.answer > 0 {
		end := float64(m.end()) / float64(v.bytes) * float64(o.PromptTokens)
		x := (float64(o.CachedTokens) - end) / float64(m.answer)
		h.keeping.answers.see(min(max(x, 0), 1), 1)
	}
	switch {
	case v.likely < leastTold || v.likely < believed*float64(m.end())/float64(v.bytes)*float64(v.tokens):
	case float64(o.CachedTokens) >= gone*v.likely:
		h.misses = 0
	default:
		if h.misses++; h.misses == 1 {
			h.missed = v.sent
		}
		if h.misses >= emptied { // it was restarted, say
			h.forget(h.missed.UnixNano())
			h.misses = 0
		}
	}
}

// Counts are sums of tokens: of prompts that were sent to a target, and of them what
// was expected to be in its cache, and what it told that was. The newest million
// tokens of prompts count. The zero value has none.
type Counts struct{ Prompt, Predicted, Reported float64 }

// counted is how many tokens of prompts Counts remember.
const counted = 1e6

func (c *Counts) add(predicted, reported, prompt float64) {
	keep := max(1-prompt/counted, 0)
	c.Prompt = c.Prompt*keep + prompt
	c.Predicted = c.Predicted*keep + predicted
	c.Reported = c.Reported*keep + reported
}

// Counts returns those of t.
func (x *Index) Counts(t router.Target) Counts {
	h := x.cache(t)
	if h == nil {
		return Counts{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts
}
