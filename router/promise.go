package router

import (
	"math"
	"slices"
	"time"
)

// promises are the times at which refused requests of one route were told to
// come back: the book of who gets which place. Who comes back then goes before
// those who come for the first time: else every place would be taken by somebody
// who had not been told to wait for it. The zero value has made none.
type promises struct {
	byKey map[uint64][]promise // of requests that can be recognised, the earliest first
	keyed int                  // in byKey
	slots [promiseSlots]promiseSlot
	swept int64 // unix second up to which no promise is open
	open  int   // in all slots
	dirty bool  // some slot has keys

	tenants   map[string]*promised
	strangers record // of all tenants of whom nobody ever came
	unproven  crowd  // how many are told, of each of those tenants
	proven    crowd  // of each of the others, by its share
	idle      idle   // tenants of whom nobody is expected
}

type promise struct {
	at     time.Time
	from   time.Time // from when on it is kept
	since  time.Time // when the request was refused for the first time
	back   bool      // it had come back as told when it was refused
	tenant string
}

// promiseSlot is of the promises for one second.
type promiseSlot struct {
	open int
	of   map[string]int // of that by tenant, none of them 0
	keys []uint64
}

// promised is a tenant that was told to come back.
type promised struct {
	name   string
	open   int // in all slots
	record record
	weight float64 // by which it is counted in its crowd

	prev, next *promised // in promises.idle
}

// idle are tenants of whom nobody is expected, who was forgotten longest first. The
// zero value is empty.
type idle struct {
	first, last *promised
	count       int
}

func (l *idle) push(t *promised) {
	t.prev, t.next = l.last, nil
	if l.last != nil {
		l.last.next = t
	} else {
		l.first = t
	}
	l.last = t
	l.count++
}

func (l *idle) remove(t *promised) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		l.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		l.last = t.prev
	}
	t.prev, t.next = nil, nil
	l.count--
}

const (
	// A promise holds from promiseEarly before its time, or from an eighth of the
	// wait where that is more, to promiseLate after it: clients spread their
	// retries. Then nobody is expected any more.
	promiseEarly = 500 * time.Millisecond
	promiseLate  = 12 // seconds

	// promiseSlots is more seconds than the longest time told and promiseLate.
	promiseSlots = 128

	// mostPromises are open in one route, and of one tenant no more than are left:
	// alone it has half, and no other is kept out by what it does with them. Nobody
	// more is promised a place: nobody would be recognised then.
	mostPromises = 16384

	// mostRecords is of how many tenants of whom nobody is expected it is known
	// whether they come.
	mostRecords = 1024
)

// slot is that of a unix second, which may be negative.
func (p *promises) slot(second int64) *promiseSlot { return &p.slots[uint64(second)%promiseSlots] }

// full reports whether no request of tenant can be promised anything more.
func (p *promises) full(now time.Time, tenant string) bool {
	if 2*p.open >= mostPromises {
		p.sweep(now)
	}
	own := 0
	if t := p.tenants[tenant]; t != nil {
		own = t.open
	}
	return own >= mostPromises-p.open
}

// make notes that the request with key was told to come back at q.at. The book is
// not full.
func (p *promises) make(now time.Time, q promise, key uint64) {
	p.sweep(now)
	q.at = q.at.Round(0) // by the clock of the slots: else one that is set back has a promise outlive its slot
	q.from = q.at.Add(-max(promiseEarly, q.at.Sub(now)/8))
	slot := p.slot(q.at.Unix())
	if slot.of == nil {
		slot.of = map[string]int{}
	}
	slot.open++
	slot.of[q.tenant]++
	p.open++
	t := p.tenant(q.tenant)
	p.discount(t)
	t.open++
	p.count(t)
	if key == 0 {
		return
	}
	if p.byKey == nil {
		p.byKey = map[uint64][]promise{}
	}
	list := p.byKey[key]
	i, _ := slices.BinarySearchFunc(list, q.at, func(q promise, at time.Time) int { return q.at.Compare(at) })
	p.byKey[key] = slices.Insert(list, i, q)
	p.keyed++
	slot.keys = append(slot.keys, key)
	p.dirty = true
}

// tenant finds or makes what is known of a tenant of whom one more is expected.
func (p *promises) tenant(name string) *promised {
	t := p.tenants[name]
	switch {
	case t == nil:
		if p.tenants == nil {
			p.tenants = map[string]*promised{}
		}
		t = &promised{name: name}
		p.tenants[name] = t
	case t.open == 0:
		p.idle.remove(t)
	}
	return t
}

// crowd is where t is counted.
func (p *promises) crowd(t *promised) *crowd {
	if t.record.came > 0 {
		return &p.proven
	}
	return &p.unproven
}

// count and discount have t counted with what is open, and not.
func (p *promises) count(t *promised) {
	t.weight = 1
	if t.record.came > 0 {
		t.weight = t.record.share()
	}
	p.crowd(t).add(t.open, t.weight)
}

func (p *promises) discount(t *promised) { p.crowd(t).remove(t.open, t.weight) }

// keep returns the promise to a request that comes now, if it was told to come
// now. With that the promise is kept, and no longer open.
func (p *promises) keep(now time.Time, key uint64) (kept promise, ok bool) {
	if p.keyed == 0 || key == 0 {
		return promise{}, false
	}
	p.sweep(now)
	list := p.byKey[key]
	if len(list) == 0 || now.Before(list[0].from) {
		return promise{}, false
	}
	first := list[0]
	p.drop(key, 1)
	slot := p.slot(first.at.Unix())
	slot.open--
	if slot.of[first.tenant]--; slot.of[first.tenant] == 0 {
		delete(slot.of, first.tenant)
	}
	p.close(first.tenant, 1, 1)
	return first, true
}

// close ends n promises to a tenant, of which so many were kept. Who has come is
// remembered, unless mostRecords others were idle since.
func (p *promises) close(name string, n, kept int) {
	t := p.tenants[name]
	p.discount(t)
	p.open -= n
	t.open -= n
	if t.record.came == 0 {
		p.strangers.see(n, kept)
	}
	t.record.see(n, kept)
	switch {
	case t.open > 0:
		p.count(t)
	case t.record.came == 0:
		delete(p.tenants, name)
	default:
		p.idle.push(t)
		if p.idle.count > mostRecords {
			oldest := p.idle.first
			p.idle.remove(oldest)
			delete(p.tenants, oldest.name)
		}
	}
}

// drop removes the n earliest promises of key.
func (p *promises) drop(key uint64, n int) {
	list := p.byKey[key]
	p.keyed -= n
	if n == len(list) {
		delete(p.byKey, key)
		return
	}
	p.byKey[key] = slices.Delete(list, 0, n)
}

// sweep forgets the promises whose time is past.
func (p *promises) sweep(now time.Time) {
	end := now.Unix() - promiseLate
	if end < p.swept-promiseSlots { // the clock was set back: nobody knows any more what is when
		*p = promises{swept: end}
	}
	if p.open == 0 {
		for i := range p.slots {
			if !p.dirty {
				break
			}
			p.slots[i].keys = p.slots[i].keys[:0]
		}
		p.swept, p.dirty = end, false
		return
	}
	for second := p.swept + 1; second <= min(end, p.swept+promiseSlots); second++ {
		slot := p.slot(second)
		for _, key := range slot.keys {
			past := 0
			for _, q := range p.byKey[key] {
				if q.at.Unix() > second {
					break
				}
				past++
			}
			if past > 0 {
				p.drop(key, past)
			}
		}
		for tenant, n := range slot.of {
			p.close(tenant, n, 0)
		}
		clear(slot.of)
		*slot = promiseSlot{keys: slot.keys[:0], of: slot.of}
	}
	p.swept = max(p.swept, end)
}

// record is how many of those who were told came then, of the last
// recordMemory. The zero value has seen nobody.
type record struct{ told, came float64 }

const (
	recordMemory = 256

	// recordDoubt is how many are taken to have come before any could.
	recordDoubt = 4

	// leastShare of those who are told come, whatever was seen.
	leastShare = 0.02
)

// see notes that of n who were told so many came.
func (r *record) see(n, came int) {
	keep := math.Pow(1-1.0/recordMemory, float64(n))
	r.told = r.told*keep + (1-keep)*recordMemory
	r.came = r.came*keep + (1-keep)*recordMemory*float64(came)/float64(n)
}

// share is how many of those who are told are expected to come.
func (r *record) share() float64 {
	return max((r.came+recordDoubt)/(r.told+recordDoubt), leastShare)
}

// shares says how many of those who were told are expected, as tenant sees it: of
// its own, and of strangers. A stranger takes all of them to come: they may be of
// another kind today, or may only not be recognised. Who has come when told is
// not put behind a crowd that never has.
func (p *promises) shares(tenant string) (own, strangers float64) {
	if t := p.tenants[tenant]; t != nil && t.record.came > 0 {
		return t.record.share(), p.strangers.share()
	}
	return 1, 1
}

// ignored reports whether promises to tenant were made, and nobody came. How long
// those take that are open is not known then: if one does come, its record tells.
func (p *promises) ignored(tenant string) bool {
	t := p.tenants[tenant]
	return t != nil && t.record.told > 0 && t.record.came == 0
}

// others is how many of other tenants than this one are expected, of each at most so
// many, that share of strangers given.
func (p *promises) others(tenant string, most int, strangers float64) float64 {
	own := p.tenants[tenant]
	if own != nil {
		p.discount(own)
		defer p.count(own)
	}
	return p.proven.upTo(most) + strangers*p.unproven.upTo(most)
}

// before is at most how many of those who come back by end are expected to go
// before one of tenant: of its own all, and of every other one as many and one
// more.
func (p *promises) before(now, end time.Time, tenant string) float64 {
	if p.open == 0 {
		return 0
	}
	p.sweep(now)
	count, own := 0, 0
	for second := p.swept + 1; second <= min(end.Unix(), p.swept+promiseSlots); second++ {
		slot := p.slot(second)
		count, own = count+slot.open, own+slot.of[tenant]
	}
	if count == 0 {
		return 0
	}
	share, strangers := p.shares(tenant)
	if p.ignored(tenant) { // who waits meanwhile loses nothing by it
		share, strangers = p.strangers.share(), p.strangers.share()
	}
	all := p.all(strangers) * float64(count) / float64(p.open)
	return min(all, share*float64(own)+p.others(tenant, own+1, strangers))
}

// all is how many are expected, that share of strangers given.
func (p *promises) all(strangers float64) float64 {
	return p.proven.upTo(mostPromises) + strangers*p.unproven.upTo(mostPromises)
}

// expected is how many of all who were told are expected to come.
func (p *promises) expected(now time.Time) float64 {
	if p.open == 0 {
		return 0
	}
	p.sweep(now)
	return p.all(p.strangers.share())
}
