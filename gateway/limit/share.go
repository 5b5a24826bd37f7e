package limit

import "time"

// idleAfter is how long after its last request a key is still busy: by then a
// bucket that is not owed is full.
const idleAfter = time.Minute

// Report is what a replica tells the others of one key.
type Report struct {
	Seq              uint64 // the same until its answer comes: it may have arrived although none came
	Requests, Tokens Spent
	Running          int // sequences of the key, here
}

// Spent is what a Report says of one bucket.
type Spent struct {
	Size float64 // per minute; 0 = no limit
	New  float64 // used here and not known to be in the total; below 0 when more came back than was taken
	Used float64 // the total as last answered, less what time has paid for: of use where it is lost
}

// Totals is the answer to a Report: what all replicas together have used of
// each bucket and time has not paid for, and how many sequences of the key the
// others run. All are at least 0.
type Totals struct {
	Requests, Tokens float64
	Running          int
}

// Busy reports whether the key was used within a minute, or there is something
// to tell of it.
func (l *Limiter) Busy(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fill(now)
	return now.Sub(l.touched) <= idleAfter || l.running > 0 || l.toldRunning > 0 ||
		l.requests.untold() || l.tokens.untold()
}

func (b *bucket) untold() bool { return b.own != 0 || b.sent != 0 }

// Report returns what was used here since the last report that was answered.
// It is report number next, unless the last one is not answered: then it is
// that one again, with what time has not paid for meanwhile.
func (l *Limiter) Report(now time.Time, next uint64) Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fill(now)
	b := [...]*bucket{&l.requests, &l.tokens}
	if !l.told {
		l.told, l.seq = true, next
		for _, b := range b {
			b.sent, b.own = b.own, 0
		}
	}
	l.toldRunning = l.running
	spent := func(b *bucket) Spent { return Spent{Size: b.size, New: b.sent, Used: b.shared} }
	return Report{Seq: l.seq, Requests: spent(b[0]), Tokens: spent(b[1]), Running: l.running}
}

// Answer takes the answer to report number seq. From then on the key is held
// to its whole limits, over all replicas.
func (l *Limiter) Answer(now time.Time, seq uint64, t Totals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.told || l.seq != seq {
		return
	}
	l.fill(now)
	l.told, l.among, l.elsewhere = false, 1, max(t.Running, 0)
	l.requests.answered(t.Requests)
	l.tokens.answered(t.Tokens)
}

// answered takes what all replicas have used, with what was sent.
func (b *bucket) answered(total float64) {
	b.shared, b.sent = max(total, 0), 0
	b.floor()
}

// Alone holds the key to its limits divided by replicas, because nobody knows
// what the others use; at least one request at once and at a time. It lasts
// until the next Answer.
func (l *Limiter) Alone(now time.Time, replicas int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fill(now)
	l.among, l.elsewhere = max(replicas, 1), 0
}
