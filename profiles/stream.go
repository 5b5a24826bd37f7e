package profiles

import (
	"cmp"
	"time"
)

// Open says what a stream starts with.
type Open struct {
	Sent         time.Time  // when the request went to the backend; required
	Occupancy    *Occupancy // of the backend incarnation that serves it; nil = the stream counts as alone
	PromptTokens int        // estimate from the body until usage is known; 0 = unknown
	CachedTokens int        // of these, expected in the prefix cache; counts once a usage told of any
	Sequences    int        // the n of the request; above 1 the stream is no evidence; 0 = 1
	Ahead        Ahead      // what stood before it; unknown = its first token teaches nothing
	Waiting      *Waiting   // its mark, since it was sent; nil = it is marked from now on
}

const (
	// minArrivals is how many distinct arrivals make a stream evidence.
	minArrivals = 5

	// minDecode is the shortest time from first to last arrival that is
	// decoding: an answer that was buffered whole comes in several reads too,
	// but at the speed of the network.
	minDecode = 20 * time.Millisecond

	// segment is how long a stream keeps what it gathered before it hands it
	// over.
	segment = time.Second
)

// Stream measures one relayed stream. It belongs to the goroutine of the
// relay and is not safe for concurrent use. Read takes no lock while n does not
// change, and at most once a second, and where a window ends, hands over what
// it gathered; only then may the first stream of a window allocate its record. What it
// lives through in a bin it makes room for when it first comes there.
//
// The path of an arrival: while n stays, it is two additions to run; when n
// changes, run goes to pending, by bins; once a second, and where a window
// ends, pending goes to the profile and to life. A stream that is not known to
// be evidence keeps all of it in life and hands it over when it is.
//
// Times are since epoch, which all streams of a Book share, so that windows are
// cut at the same instants for all.
type Stream struct {
	profile   *profile
	heart     *heart
	occ       *Occupancy
	epoch     time.Time
	shift     time.Duration // from time since epoch to time since occ.origin
	sequences int

	start   streamStart
	unit    unit
	shown   shown
	told    told
	off     off
	flowing bool // what is gathered goes to the profile each second
	closed  bool
	summary Summary // once closed

	first   time.Duration // first arrival
	last    time.Duration // last arrival
	gap     gap           // between the last two
	version uint32        // of occ, as of last
	run     run
	unseen  unseen
	held    held
}

// streamStart is what a stream knows of its wait and of its prompt. It is complete
// with the first token and does not change then.
type streamStart struct {
	sent     time.Duration
	sentN    int // n when it was sent
	n        int // when the first token came, with this stream
	ahead    Ahead
	waiting  *Waiting // until the first token
	blocked  bool     // the client blocked before the first token
	joined   abreast  // of the group, when the first token came
	estimate float64  // prompt tokens as the caller estimated them
	hoped    float64  // of these, expected in a prefix cache
	cached   float64  // the same, as far as that counts
	prompt   float64  // prompt tokens as booked, scaled by what the target taught
	prefill  prefill  // where they were booked
}

// unit is what one of what is booked stands for.
type unit struct {
	counted bool    // the backend counts: tokens are booked, not chunks, and each is 1
	each    float64 // tokens in one; fixed once flowing
	sure    bool    // each is 1, or what finished streams of the target taught
	measure measure // what an arrival counts
	fill    *fill   // times what; by n; nil = one
	perByte float64 // tokens in a byte of text, 0 while unknown
}

// shown is what the backend has sent so far.
type shown struct {
	arrivals    int // distinct ones
	reads       int
	chunks      int64
	firstChunks int64 // of these, the ones of the first arrival
	count       int64 // tokens by the backend's own count, if counted
	firstCount  int64
	made        float64 // chunks after the first arrival, as fill counts them
	text        int64   // bytes of text that arrived
	firstText   int64   // of these, the ones of the first arrival
	unread      int64   // and those since the last Read
}

// told is what the backend says of the whole answer, beside what it sends.
type told struct {
	usage     Usage
	times     int  // that it told a usage, repetitions left out
	reads     int  // seen at the last usage
	reasoning bool // reasoning text was seen
}

// off keeps time out of the evidence in which something other than the engine set
// the pace: the client, or a pause of this process.
type off struct {
	now   bool // until the next Read nothing is evidence
	hung  bool // for the engine showed no life
	piled bool // what piled up in a pause is being read
	time  time.Duration
}

// gap is the time between the last two arrivals. It ends at Stream.last.
type gap struct {
	from time.Duration
	kind gapKind
}

// gapKind says where more belongs that comes at the instant of the last arrival.
type gapKind uint8

const (
	opening gapKind = iota // nowhere: that arrival opened the exposure
	whole                  // to the run: n was the same throughout the gap
	split                  // to several bins: n changed within it
)

// held is what a stream has gathered and the profile has not got, or not for good.
type held struct {
	window  int64         // index of the window that pending belongs to
	turnAt  time.Duration // when pending has to go
	idle    float64       // ∫dt/n that was decoding and no evidence
	slots   []slot        // since the last turn; nil = this stream notes none
	foreign time.Duration // when n was more than this replica relays, since epoch; 0 = never
	noted   *noted        // what became of the slots that were handed over
	counted []counted     // what the profile got, by window
	touched bool          // something was booked since the last turn
	lives   lives
}

// run is the exposure at one n that has not been booked to a bin yet.
type run struct {
	n    int
	own  int           // of n, the sequences that this replica relays
	from time.Duration // when it began, since epoch
	time time.Duration
	k    float64 // chunks as measured, or tokens if counted
	text int64   // their bytes
}

// Read books an arrival of content from the backend at now, in chunks
// (content events). The first one opens the exposure and its tokens do not
// count; now is when the bytes arrived, never when the client took them.
//
// The time since the last arrival and the chunks go to the bins which that
// time lay in, in proportion: the tokens were made during the gap. Booked at
// the instant of arrival they would land in the neighbour's bin whenever
// another stream ends in the same step. A now that is not after the last
// arrival counts as the same instant.
func (s *Stream) Read(now time.Time, chunks int) { s.ReadCounted(now, chunks, 0) }

// ReadCounted is Read where the backend says how many tokens the answer has
// so far, this arrival included: total, 0 = it did not say.
//
// A stream whose first arrival has a total is counted: from then on tokens are
// booked by the growth of total, and chunks only bound what is believed. A
// total that is missing, or no more than the last, adds none; the next one
// makes up for it. A stream whose first arrival has no total goes by chunks to
// its end.
func (s *Stream) ReadCounted(now time.Time, chunks, total int) {
	if chunks <= 0 || s.closed {
		return
	}
	at := now.Sub(s.epoch)
	s.shown.reads++
	s.shown.chunks += int64(chunks)
	if s.shown.arrivals == 0 {
		s.begin(at, chunks, total)
		return
	}
	k, text := s.unit.measure.of(int64(chunks), s.shown.unread), s.shown.unread
	s.shown.unread = 0
	if at > s.first { // what comes with the first arrival is part of it
		s.shown.made += k * s.unit.fill.at(s.run.n)
	}
	if s.unit.counted {
		more := max(int64(total)-s.shown.count, 0)
		s.shown.count += more
		k = float64(more)
	}
	if s.off.piled = s.off.piled && at-s.last < piledGap; s.off.piled {
		s.off.now = true
	}
	if at <= s.last {
		s.again(k, text, chunks)
		return
	}
	if at-s.last >= pauseGap && s.heart.pausedIn(s.last, at) {
		s.off.now, s.off.piled = true, true
	}
	s.shown.arrivals++
	if at >= s.held.turnAt && (s.unseen.time > 0 || len(s.unseen.delayed) == 0) {
		s.turn(at)
	}
	if s.off.now {
		s.reopen(at)
		return
	}
	if s.occ.guessed() {
		s.skip(at)
		return
	}
	s.spend(at, k, text)
	s.gap.from, s.last = s.last, at
}

// spend books the gap from the last arrival to at, and the k chunks or tokens
// that ended it, with so many bytes of text.
func (s *Stream) spend(at time.Duration, k float64, text int64) {
	if s.waits() {
		s.delay(at, k, float64(text))
		return
	}
	version, n := s.load()
	if len(s.unseen.delayed) > 0 { // nobody is waited for any longer
		s.release(everything)
		s.version = version - 1
	}
	if version == s.version {
		s.gap.kind = whole
		if at-s.run.from > slotLength && s.held.slots != nil {
			s.flush()
		}
		s.run.time += at - s.last
		s.run.k += k
		s.run.text += text
		return
	}
	s.gap.kind = split
	s.flush()
	s.version, s.run.n = version, n
	gap := float64(at - s.last)
	s.run.from, s.run.own = at, s.occ.relayed()
	s.occ.walk(s.last+s.shift, at+s.shift, func(n, own int, d time.Duration) {
		share := float64(d) / gap
		s.book(n, d.Seconds(), k*share, float64(text)*share)
		s.note(s.last, at, n, own, d, k*share)
	})
}

// again books k more chunks or tokens, in chunks, at the instant of the last
// arrival: they were made in the same gap, or, when that arrival opened the
// exposure, do not count.
func (s *Stream) again(k float64, text int64, chunks int) {
	if s.shown.arrivals == 1 {
		s.shown.firstChunks += int64(chunks)
		s.shown.firstCount = s.shown.count
	}
	switch {
	case s.off.now:
		s.off.now, s.off.hung, s.gap.kind = false, false, opening
	case s.gap.kind == opening:
	case len(s.unseen.delayed) > 0:
		last := &s.unseen.delayed[len(s.unseen.delayed)-1]
		last.k += k
		last.text += float64(text)
	case s.gap.kind == whole:
		s.run.k += k
		s.run.text += text
	default:
		gap := float64(s.last - s.gap.from)
		s.occ.walk(s.gap.from+s.shift, s.last+s.shift, func(n, _ int, d time.Duration) {
			share := float64(d) / gap
			s.book(n, 0, k*share, float64(text)*share)
		})
		s.noteMore(k)
	}
}

// begin opens the exposure with the first arrival, and books the prompt.
func (s *Stream) begin(at time.Duration, chunks, total int) {
	s.shown.arrivals = 1
	s.gap.kind = opening
	s.shown.firstChunks = int64(chunks)
	if s.unit.counted = total > 0; s.unit.counted {
		s.shown.count, s.shown.firstCount = int64(total), int64(total)
		s.unit.each, s.unit.sure, s.unit.fill, s.unit.measure = 1, true, nil, measure{}
	}
	s.shown.unread = 0
	s.first, s.gap.from, s.last = at, at, at
	if s.heart.pausedIn(s.start.sent, at) {
		s.start.blocked, s.off.piled = true, true
	}
	s.occ.joins(s.sequences)
	s.version, s.run.n = s.load()
	s.run.from, s.run.own = at, s.occ.relayed()
	s.start.n = s.run.n
	if s.unseen.time = s.decodedBefore(at, s.run.n); s.unseen.time > 0 {
		s.unseen.delayed = make([]delayed, 0, maxDelayed)
		s.occ.began(at-s.unseen.time+s.shift, at+s.shift, s.sequences)
	}
	s.held.window = windowOf(at)
	s.held.turnAt = min(at+segment, windowEnd(s.held.window))
	s.bookPrompt(at - s.unseen.time)
}

// reopen starts the exposure again after the client blocked. The time until
// at was spent decoding, but who set its pace is unknown.
func (s *Stream) reopen(at time.Duration) {
	s.off.now = false
	if !s.off.hung {
		s.off.time += at - s.last
	}
	s.off.hung = false
	s.skip(at)
}

// skip starts the exposure again: the time until at was spent decoding, and is no
// evidence.
func (s *Stream) skip(at time.Duration) {
	s.gap.kind = opening
	s.release(everything)
	s.idleUntil(at)
	s.flush()
	s.version, s.run.n = s.load()
	s.run.from, s.run.own = at, s.occ.relayed()
	s.gap.from, s.last = at, at
}

// idleUntil counts the time since the last arrival as decoding that is no
// evidence.
func (s *Stream) idleUntil(at time.Duration) {
	if s.occ == nil {
		s.held.idle += (at - s.last).Seconds()
		return
	}
	s.occ.walk(s.last+s.shift, at+s.shift, func(n, _ int, d time.Duration) {
		s.held.idle += d.Seconds() / float64(max(n, 1))
	})
}

// load returns the occupancy as Occupancy.Load does. This stream decodes, so n
// is at least 1 whatever the record says.
func (s *Stream) load() (version uint32, n int) {
	if s.occ == nil {
		return 0, 1
	}
	version, n = s.occ.Load()
	return version, max(n, 1)
}

// flush books the current run.
func (s *Stream) flush() {
	if s.run.time > 0 || s.run.k > 0 {
		s.book(s.run.n, s.run.time.Seconds(), s.run.k, float64(s.run.text))
		if s.held.slots != nil { // others may have joined at the instant at which it began
			own := max(s.run.own, s.occ.relayed())
			s.note(s.run.from, s.run.from+s.run.time, s.run.n, own, s.run.time, s.run.k)
		}
	}
	s.run.from += s.run.time
	s.run.time, s.run.k, s.run.text = 0, 0, 0
}

// book adds to the pending bin of n. It takes no lock: walk calls it under
// Occupancy.mu.
func (s *Stream) book(n int, seconds, k, text float64) {
	bin := BinOf(n)
	l := s.held.lives.at(bin)
	l.pending.book(n, seconds, k*s.unit.fill.in(bin))
	l.said += text
	s.held.touched = true
}

// Blocked says that the client's side blocked: until the next Read neither
// seconds nor tokens are evidence, and that Read reopens the exposure as a
// first chunk does.
func (s *Stream) Blocked() {
	switch {
	case s.closed:
	case s.shown.arrivals == 0:
		s.start.blocked = true
	default:
		s.off.now = true
	}
}

// Hung says that the engine showed no life for a part of the time since the last Read:
// that time is no evidence of how fast it is when it does, and belongs to what the
// stream got all the same. The next Read reopens the exposure, as after Blocked.
func (s *Stream) Hung() {
	s.Blocked()
	s.off.hung = s.off.now
}

// Text says how many bytes of text an arrival held, before it is Read: what the
// chunks hold, if that is more than a few tokens.
func (s *Stream) Text(bytes int) {
	s.shown.text += int64(max(bytes, 0))
	s.shown.unread += int64(max(bytes, 0))
	if s.shown.arrivals == 0 {
		s.shown.firstText = s.shown.text
	}
}

// FirstTokens is how many tokens of a sequence the first arrival holds, before it is
// Read: by the backend's own count, total, or by its Text where total is 0.
func (s *Stream) FirstTokens(total int) float64 {
	tokens := float64(total)
	if total <= 0 {
		tokens = cmp.Or(s.unit.perByte, leastPerByte) * float64(s.shown.firstText)
	}
	return max(tokens/float64(s.sequences), 1)
}

// Usage hands in the token counts that the backend reported. Called again, the
// last one counts.
func (s *Stream) Usage(u Usage) {
	if s.told.times > 0 && (s.shown.reads == s.told.reads || u.CompletionTokens == s.told.usage.CompletionTokens) {
		s.told.times-- // repeated, not continuous
	}
	s.told.usage = u
	s.told.times++
	s.told.reads = s.shown.reads
}

// Reasoning says that reasoning text was seen in the stream, so that the
// reasoning tokens of the usage are tokens that were shown.
func (s *Stream) Reasoning() { s.told.reasoning = true }

// Count is how many tokens a stream has put out so far.
type Count struct {
	Tokens float64

	// Rough says that too few streams of the target have finished to tell how
	// many tokens a chunk is: there may be a multiple of Tokens. Once it is gone,
	// it comes back only where the backend's own count turns out to be untrue.
	// Tokens may jump when it changes.
	Rough bool
}

// Decoding reports the stream so far: tokens after the first chunk, and when
// the first and the last token arrived. For the floor guard and the log.
func (s *Stream) Decoding() (c Count, first, last time.Time) {
	if c = s.Count(); s.shown.arrivals == 0 {
		return c, time.Time{}, time.Time{}
	}
	return c, s.epoch.Add(s.first), s.epoch.Add(s.last)
}

// Count is the first of what Decoding reports.
func (s *Stream) Count() (c Count) {
	c.Rough = !s.unit.sure
	switch {
	case s.shown.arrivals == 0:
	case !s.unit.counted:
		c.Tokens = s.shown.made * s.unit.each
	case s.countable():
		c.Tokens = float64(s.shown.count - s.shown.firstCount)
	default:
		c.Tokens, c.Rough = float64(s.shown.chunks-s.shown.firstChunks), true
	}
	return c
}
