package router

import "time"

// Quota is what a backend says that it will still take of requests to a target:
// hosted APIs tell it with every answer, before they refuse. The zero value is no
// limit.
type Quota [quotas]Allowance

// What limits are of. Each is a place in a Quota.
const (
	QuotaRequests = iota
	QuotaTokens   // of prompts and answers together
	QuotaInput    // of prompts
	QuotaOutput   // of answers
	quotas
)

// Allowance is what is left of one limit. Until the time that it holds it grows,
// as most limits are paid back. The zero value is no limit.
type Allowance struct {
	Left   float64   // now: requests or tokens
	Most   float64   // it never gets larger; 0 = not known
	Refill float64   // of it a second
	Until  time.Time // then nothing is known any more; zero = there is no limit
}

// quotaMost bounds for how long a quota is believed: after that a request shows
// whether it still holds. What a backend says must not close it for a day.
const quotaMost = time.Minute

// quota is what is known of the limits on a target. The zero value is none.
// Guarded by Router.mu.
type quota struct {
	told  Quota
	at    time.Time       // when it was told
	spent [quotas]float64 // since, by those who were placed
}

// tell takes what the backend says now.
func (q *quota) tell(now time.Time, told Quota) {
	*q = quota{told: told, at: now}
	for i := range q.told {
		l := &q.told[i]
		l.Left, l.Most, l.Refill = finite(l.Left), finite(l.Most), finite(l.Refill)
		if most := now.Add(quotaMost); l.Until.After(most) {
			l.Until = most
		}
	}
}

// left is what is left of the i-th limit; limited is false where there is none.
// A clock that was set back ends them all.
func (q *quota) left(now time.Time, i int) (left float64, limited bool) {
	l := &q.told[i]
	if l.Until.IsZero() || !now.Before(l.Until) || now.Before(q.at) {
		return 0, false
	}
	left = l.Left + l.Refill*now.Sub(q.at).Seconds()
	if l.Most > 0 {
		left = min(left, l.Most)
	}
	return left - q.spent[i], true
}

// needs is what a takes of each limit on m. Every replica may send as much as
// this one at the same time.
func (a *ask) needs(m *model) (n [quotas]float64) {
	r := m.group.router
	replicas := r.peers.replicas
	if r.peers.heard {
		replicas = r.peers.load.Replicas
	}
	scale := float64(max(replicas, 1))
	n[QuotaRequests] = scale
	n[QuotaInput] = scale * float64(max(a.req.PromptTokens, 0))
	if a.weight > 0 {
		n[QuotaOutput] = scale * a.answer(m) * float64(a.weight)
	}
	n[QuotaTokens] = n[QuotaInput] + n[QuotaOutput]
	return n
}

// spend notes that a goes to m.
func (q *quota) spend(a *ask, m *model) {
	if q.at.IsZero() {
		return
	}
	for i, n := range a.needs(m) {
		q.spent[i] += n
	}
}

// affords reports whether the limits of m leave room for one more of a's kind
// beside alike others, and else how long that takes. What is larger than a whole
// limit goes when nothing of it is used: the backend says what is wrong with it.
func (a *ask) affords(m *model, alike int) (wait time.Duration, ok bool) {
	q := &m.quota
	if q.at.IsZero() {
		return 0, true
	}
	ok = true
	for i, n := range a.needs(m) {
		left, limited := q.left(a.now, i)
		if !limited || n <= 0 {
			continue
		}
		l := &q.told[i]
		one := n
		if l.Most > 0 {
			one = min(n, l.Most)
		}
		lacks := one + n*float64(alike) - left
		if lacks <= 0 {
			continue
		}
		until := l.Until.Sub(a.now)
		if l.Refill > 0 {
			until = min(until, seconds(lacks/l.Refill))
		}
		wait, ok = max(wait, until), false
	}
	return wait, ok
}

// paidBack is how long the limits keep a off all targets that nothing else keeps it
// off; 0 = not at all.
func (a *ask) paidBack() time.Duration {
	least, found := time.Duration(0), false
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.reason == OK || v.reason.outOfService() {
			continue
		}
		if v.basis != ByQuota {
			return 0
		}
		if wait, _ := a.affords(v.model, 0); !found || wait < least {
			least, found = wait, true
		}
	}
	return least
}

// Quota says what the backend told of its limits with an answer to the request.
func (l *Lease) Quota(now time.Time, told Quota) {
	r := l.group.router
	r.mu.Lock()
	defer r.mu.Unlock()
	l.model.group.changed()
	l.model.quota.tell(now, told)
}
