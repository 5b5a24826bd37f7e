package providers

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
)

// refusalLife is how long a backend that refused to be asked for usage is not
// asked: then it may be another version.
const refusalLife = 10 * time.Minute

// refusal is what a backend showed that it does not take.
type refusal struct {
	most  openai.Ask // that it may be asked for
	until time.Time
}

// Usage returns what b is asked for in r, a request to path, and what of the
// answer is taken out again because the client had not asked. A client that
// asks for continuous usage itself gets it. Only streams of chat.completions
// and completions have the option; others tell their usage always.
func (b *Backend) Usage(path string, r *openai.Request) (ask openai.Ask, strip Strip) {
	ask = b.ask
	if !r.Stream || ask == openai.AskNothing || !endpoint.Of(path).Dialect.Chunks() {
		return openai.AskNothing, 0
	}
	if no := b.refusalOf(path).Load(); no != nil && time.Now().Before(no.until) {
		ask = min(ask, no.most)
	}
	return ask, b.Strip(path, r, ask)
}

// Exactly is Usage for a stream of which it has to be known at every moment how many
// tokens came: it asks for continuous usage where the kind knows of it.
func (b *Backend) Exactly(path string, r *openai.Request) (ask openai.Ask, strip Strip) {
	ask, strip = b.Usage(path, r)
	no := b.refusalOf(path).Load()
	if ask != openai.AskUsage || !b.kind.Usage.Continuous || no != nil && time.Now().Before(no.until) {
		return ask, strip
	}
	return openai.AskContinuous, b.Strip(path, r, openai.AskContinuous)
}

// Strip returns what is taken out of the answer to r, which was sent to path
// with ask.
func (b *Backend) Strip(path string, r *openai.Request, ask openai.Ask) (strip Strip) {
	if ask >= openai.AskUsage && !r.IncludeUsage {
		strip |= StripEvent
		u := b.kind.Usage
		if u.Print {
			strip |= MovePrint
		}
		if u.Zeros && endpoint.Of(path).Dialect == endpoint.Completions {
			strip |= StripRunning
		}
		if u.Nulls {
			strip |= StripNull
		}
	}
	if ask == openai.AskContinuous && !r.ContinuousUsage {
		strip |= StripRunning
	}
	return strip
}

// RefusesAsk reports whether an error answer may be about what Pacer added to r
// when it was sent with ask, and what to send it with instead. An answer that
// only repeats the request looks the same: what was really meant shows when the
// request is sent with less. body is the start of the answer.
func RefusesAsk(status int, body []byte, r *openai.Request, ask openai.Ask) (less openai.Ask, ok bool) {
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		return ask, false
	}
	switch {
	case ask == openai.AskContinuous && !r.ContinuousUsage:
		less = openai.AskUsage
	case ask >= openai.AskUsage && !r.IncludeUsage:
		less = openai.AskNothing
	default: // the client itself asked
		return ask, false
	}
	if containsAny(body, "stream_options", "include_usage", "continuous_usage_stats") {
		return less, true
	}
	return ask, false
}

// AskAtMost remembers that b takes most in requests to path, and refused more.
// For the next minutes it is asked for no more than that. news is whether that
// was not known yet.
func (b *Backend) AskAtMost(path string, most openai.Ask) (news bool) {
	was := b.refusalOf(path).Swap(&refusal{most: most, until: time.Now().Add(refusalLife)})
	return was == nil || was.most != most
}

// refusalOf is what is known of path: servers have come to know the option in
// chats first.
func (b *Backend) refusalOf(path string) *atomic.Pointer[refusal] {
	if endpoint.Of(path).Dialect == endpoint.Completions {
		return &b.refusedText
	}
	return &b.refusedChat
}
