package router

import (
	"slices"
	"time"
)

// promises are the times at which refused requests of one route were told to
// come back. Who comes back then goes before those who come for the first time:
// else every place would be taken by somebody who had not been told to wait for
// it. The zero value has made none.
type promises struct {
	byKey map[uint64][]promise // of requests that can be recognised, the earliest first
	keyed int                  // in byKey
	slots [promiseSlots]promiseSlot
	swept int64          // unix second up to which no promise is open
	open  int            // in all slots
	of    map[string]int // of that by tenant, none of them 0
	dirty bool           // some slot has keys
}

type promise struct {
	at     time.Time
	since  time.Time // when it was refused for the first time
	tenant string
}

// promiseSlot is of the promises for one second.
type promiseSlot struct {
	open int
	of   map[string]int // as promises.of
	keys []uint64
}

const (
	// A promise holds from promiseEarly before its time to promiseLate after
	// it; then nobody is expected any more.
	promiseEarly = 500 * time.Millisecond
	promiseLate  = 8 // seconds

	// promiseSlots is more seconds than the longest time told and promiseLate.
	promiseSlots = 128

	// mostPromises are recognised in one route; of more it is only known how
	// many there are.
	mostPromises = 4096
)

// slot is that of a unix second, which may be negative.
func (p *promises) slot(second int64) *promiseSlot { return &p.slots[uint64(second)%promiseSlots] }

// make notes that a request of tenant was told to come back at at.
func (p *promises) make(now, at, since time.Time, tenant string, key uint64) {
	p.sweep(now)
	slot := p.slot(at.Unix())
	if p.of == nil {
		p.of = map[string]int{}
	}
	if slot.of == nil {
		slot.of = map[string]int{}
	}
	slot.open++
	slot.of[tenant]++
	p.open++
	p.of[tenant]++
	if key == 0 || p.keyed >= mostPromises {
		return
	}
	if p.byKey == nil {
		p.byKey = map[uint64][]promise{}
	}
	list := p.byKey[key]
	i, _ := slices.BinarySearchFunc(list, at, func(q promise, at time.Time) int { return q.at.Compare(at) })
	p.byKey[key] = slices.Insert(list, i, promise{at: at, since: since, tenant: tenant})
	p.keyed++
	slot.keys = append(slot.keys, key)
	p.dirty = true
}

// keep returns since when a request that comes now has been coming back, if it
// was told to come now. With that the promise is kept, and no longer open.
func (p *promises) keep(now time.Time, key uint64) (since time.Time, ok bool) {
	if p.keyed == 0 || key == 0 {
		return time.Time{}, false
	}
	p.sweep(now)
	list := p.byKey[key]
	if len(list) == 0 || list[0].at.After(now.Add(promiseEarly)) {
		return time.Time{}, false
	}
	first := list[0]
	p.drop(key, 1)
	slot := p.slot(first.at.Unix())
	slot.open--
	p.open--
	less(slot.of, first.tenant, 1)
	less(p.of, first.tenant, 1)
	return first.since, true
}

// less takes n off a tenant's count.
func less(of map[string]int, tenant string, n int) {
	if of[tenant] -= n; of[tenant] == 0 {
		delete(of, tenant)
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
			less(p.of, tenant, n)
		}
		p.open -= slot.open
		clear(slot.of)
		*slot = promiseSlot{keys: slot.keys[:0], of: slot.of}
	}
	p.swept = max(p.swept, end)
}

// before is at most how many of those who come back by end go before one of
// tenant: of its own all, and of every other one as many and one more.
func (p *promises) before(now, end time.Time, tenant string) int {
	if p.open == 0 {
		return 0
	}
	p.sweep(now)
	count, own := 0, 0
	for second := p.swept + 1; second <= min(end.Unix(), p.swept+promiseSlots); second++ {
		slot := p.slot(second)
		count, own = count+slot.open, own+slot.of[tenant]
	}
	return min(count, own+p.others(tenant, own+1))
}

// others counts the open promises to other tenants, at most so many of each.
func (p *promises) others(tenant string, most int) int {
	count := 0
	for name, n := range p.of {
		if name != tenant {
			count += min(n, most)
		}
	}
	return count
}
