package fleet

import (
	"cmp"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// hearBreaker takes what the breaker thinks.
func (m *member) hearBreaker(h providers.Health) {
	if m.hear(func() { m.breaker = h }, h == providers.Closed) { // it was open before
		m.fleet.o.Log.Warn("backend health", "backend", m.name, "breaker", h.String())
	}
}

// hearPulse takes note that the backend hangs, or does no more, or that its pages answer
// meanwhile, or do no more.
func (m *member) hearPulse() {
	var was, hangs bool
	note := func() {
		was, hangs = m.hung, m.backend.Pulse().Hung() // as it is, whoever tells of it first
		m.hung, m.stands = hangs, m.backend.Pulse().Stands()
	}
	if !m.hear(note, false) || hangs == was {
		return
	}
	if log := m.fleet.o.Log.With("backend", m.name, "hung", hangs); hangs {
		log.Warn("a backend takes requests and shows no life: it is left to those who are there, until it does")
	} else {
		log.Warn("a backend that hung shows life again")
	}
}

// hearUnasked takes note that the backend sent what no request asked for, and says
// it once a minute, without what that was: it may be the text of an answer.
func (m *member) hearUnasked() {
	now, last := time.Now().Unix(), m.unasked.Load()
	if now-last >= 60 && m.unasked.CompareAndSwap(last, now) {
		m.fleet.o.Log.Warn("a backend sent what no request asked for; the connection was closed", "backend", m.name)
	}
}

// hearProber takes what the health page says.
func (m *member) hearProber(c providers.Condition, err error) {
	note := func() {
		was := m.failure
		m.page, m.failure = c, Failure{}
		if err != nil {
			m.failure = Failure{m.harmless(err), cmp.Or(was.Since, time.Now())}
		}
	}
	if !m.hear(note, c == providers.Sound) { // it was not before
		return
	}
	log := m.fleet.o.Log.With("backend", m.name, "health", c.String())
	if err != nil {
		log.Warn("backend health", "error", m.harmless(err))
	} else {
		log.Warn("backend health")
	}
}

// Failure is why a health page fails.
type Failure struct {
	Message string // one line of at most 200 bytes, without secrets
	Since   time.Time
}

// maxFailureText bounds a message, in bytes.
const maxFailureText = 200

// harmless is err in one line of bounded length. What a server wrote may be part
// of it, and servers repeat what they were sent: keys are taken out.
func (m *member) harmless(err error) string {
	text := err.Error()
	secrets := m.backend.Secrets()
	for _, s := range m.link.conf.Headers {
		secrets = append(secrets, s.Reveal())
	}
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, config.Secret(s).String())
		}
	}
	text = strings.Join(strings.FieldsFunc(text, unicode.IsControl), " ")
	if len(text) > maxFailureText {
		text = text[:maxFailureText]
	}
	return strings.ToValidUTF8(text, "")
}

// hear takes note of news, and tells the book of an engine that is back, and the
// router; false = nobody wants to know, for the member is gone.
func (m *member) hear(note func(), back bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	note()
	if m.gone {
		return false
	}
	if back && !m.hung { // an engine that hung has all that it had
		m.fleet.returned(m.name)
	}
	m.publish()
	return true
}

// drain is what an operator says.
func (m *member) drain(drained bool) {
	m.become(&m.drained, drained, func(log *slog.Logger) { log.Warn("backend drained or resumed by an operator", "drained", drained) })
}

// end is what who found the engine says of it: it is about to end, or it is not.
func (m *member) end(ending bool) {
	m.become(&m.ending, ending, func(log *slog.Logger) { log.Info("an engine is about to end, or is not any more", "ending", ending) })
}

// become sets what is told of the member, and says it where it is news.
func (m *member) become(told *bool, is bool, say func(*slog.Logger)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if *told != is {
		*told = is
		say(m.fleet.o.Log.With("backend", m.name))
		m.publish()
	}
}

// announce tells the router what is thought of a member that it did not know.
func (m *member) announce() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.publish()
}

// publish tells the router whether the backend may be used. mu is held.
func (m *member) publish() {
	h := healthOf(m.breaker)
	switch m.page {
	case providers.Failing:
		h = router.Down
	case providers.Loading:
		h = router.Loading
	}
	hung := m.hung && m.page == providers.Sound // else it is known what is wrong
	say := func(h router.Health) {
		m.fleet.tell(router.BackendHealth{Backend: m.name, Health: h, Hung: hung, Answers: m.stands})
	}
	if !m.drained && !m.ending {
		say(h)
		return
	}
	if h == router.Down || h == router.Loading {
		say(h) // one that is restarted while it is drained starts slowly, too
	}
	say(router.Draining)
}

// tell hands a change to the router unless the member is gone.
func (m *member) tell(c router.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.gone {
		m.fleet.tell(c)
	}
}

func healthOf(h providers.Health) router.Health {
	switch h {
	case providers.Open:
		return router.Down
	case providers.HalfOpen:
		return router.Probing
	}
	return router.Up
}
