package gateway

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/upstream"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/translate"
)

// translation is how an attempt speaks the dialect of a backend for a client of
// another one.
type translation struct {
	from, to translate.Name // the backend's, and the client's
	path     string         // of the endpoint at the backend; "" = it has one by model
	parsed   openai.Request // what goes up, where that is a chat
	text     []byte         // and as bytes
	dropped  []string
	reply    translate.Reply
}

// clientDialect is the dialect of an endpoint, as far as it is translated.
func clientDialect(end *endpoint.Endpoint) translate.Name {
	switch end.Dialect {
	case endpoint.Chat:
		return translate.Chat
	case endpoint.Messages:
		return translate.Messages
	case endpoint.Responses:
		return translate.Responses
	case endpoint.Generate:
		return translate.Gemini
	case endpoint.CohereChat:
		return translate.Cohere
	}
	return translate.None
}

// targetDialect is that which a form of a backend has.
func targetDialect(f upstream.Form) translate.Name {
	switch f.Dialect {
	case upstream.Anthropic:
		return translate.Messages
	case upstream.Gemini:
		return translate.Gemini
	case upstream.Converse:
		return translate.Converse
	case upstream.Cohere:
		return translate.Cohere
	}
	return translate.Chat
}

// translates reports whether the request goes to model at b in another dialect, or
// another form of it: it is not of b's API, or b was found to lack the endpoint.
func (o *order) translates(b *backend, model string) bool {
	switch clientDialect(o.request.end) {
	case translate.None:
		return false
	case translate.Gemini: // of several APIs at one server, the model says which
		form, _ := b.FormOf(model)
		return targetDialect(form) != translate.Gemini
	case translate.Chat:
		if b.MistralChats() {
			return !fromMistral(o.request.http.Header)
		}
	}
	if !b.Serves(o.request.path) {
		return true
	}
	has, known := b.Has(o.request.path)
	return known && !has
}

// targetFor is where a request for model goes at b.
func targetFor(b *backend, model string) (translate.Target, upstream.Form) {
	form, name := b.FormOf(model)
	t := translate.Target{Dialect: targetDialect(form), Model: name, Engine: b.IsEngine(), NewLimit: b.WantsCompletionLimit(name), Set: form.Set}
	t.Bare = form.Generate != ""
	t.Mistral = b.MistralChats()
	return t, form
}

// carries says why the request cannot be told to b; nil = it can.
func (o *order) carries(b *backend, drop bool) error {
	w, err := o.speech.write(&o.request, &o.memory, b, o.modelAt(b))
	if err == nil && len(w.Lost) > 0 && !drop {
		l := w.Lost[0]
		err = &translate.Refusal{Param: l.Param, Message: "The parameter " + l.Param + " cannot be carried to the backends of this model: " + l.Why + "."}
	}
	return err
}

// modelAt is what the request's route calls its model at b: of several targets
// there, the first.
func (o *order) modelAt(b *backend) string {
	model, is := o.route.models[b.conf.Name]
	if !is || o.setup.backends[b.conf.Name] != b {
		return o.request.parsed.Model
	}
	return cmp.Or(config.Expand(model, o.route.name, o.request.parsed.Model), o.request.parsed.Model)
}

// uncarried is what a client reads whose request no backend of its route can be
// told.
func uncarried(err error) error {
	if r, ok := err.(*translate.Refusal); ok { //nolint:errorlint // it is made here and never wrapped
		return &openai.BadRequest{Message: r.Message, Param: r.Param, Code: "unsupported_parameter"}
	}
	return err
}

// substitute is another way to send a request.
type substitute struct {
	call        providers.Call
	ask         openai.Ask
	translation *translation
	counted     int // the gateway itself answers: so many tokens has the prompt; 0 = it does not
}

// prepareTranslated makes the call to a backend of another dialect.
func (u *roundTrip) prepareTranslated() error {
	s, err := u.translated()
	if err == nil {
		u.use(s)
	}
	return err
}

// use has s go up.
func (u *roundTrip) use(s substitute) {
	u.call, u.ask, u.strip, u.translation, u.counted = s.call, s.ask, 0, s.translation, s.counted
}

// offerInstead prepares the translation for a backend of which it is not known
// whether it has the endpoint: engines have come to have OpenAI's chat first. It
// reports whether the backend itself is asked.
func (u *roundTrip) offerInstead() (asked bool) {
	path := u.request.path
	if u.request.end.Counts {
		return u.offerCount()
	}
	if path == "/chat/completions" || clientDialect(u.request.end) == translate.None || u.request.parsed.PreviousResponseID != "" {
		return true
	}
	if _, known := u.backend.Has(path); known || u.backend.Counts(path, u.request.parsed.Model) || u.request.end.PartOf(endpoint.Google|endpoint.Cohere) {
		return true
	}
	if err := u.carries(u.backend, u.dropsAt(u.name())); err != nil {
		u.uncarried = uncarried(err)
		return true
	}
	if s, err := u.translated(); err == nil {
		u.instead = append(u.instead, s)
	}
	return true
}

// dropsAt reports whether what a backend's dialect lacks is left out.
func (o *order) dropsAt(backend string) bool {
	for i := range o.setup.conf.Backends {
		if o.setup.conf.Backends[i].Name == backend {
			return o.setup.conf.Backends[i].DropParams
		}
	}
	return false
}

// substitute has the next of what there is go up, if the backend has answered that
// it lacks the endpoint.
func (u *roundTrip) substitute() bool {
	if len(u.instead) == 0 || !providers.LacksEndpoint(u.resp.StatusCode, u.first.bytes(), u.call.Model) {
		return false
	}
	_ = u.resp.Body.Close()
	u.use(u.instead[0])
	u.instead, u.lacked = u.instead[1:], true
	return true
}

// noteLack remembers whether the backend has the endpoint, as an answer with status
// shows.
func (u *roundTrip) noteLack(status int) {
	path := u.request.path
	switch {
	case u.lacked:
		if u.backend.NoteHas(path, false) {
			u.g.log.Info("the backend lacks the endpoint: requests for it are translated", "backend", u.name(), "path", path)
		}
	case len(u.instead) > 0 && status < 300:
		u.backend.NoteHas(path, true)
	}
}

// cannotCarry is why the request cannot be told to t's backend, which has answered
// that it lacks the endpoint; nil = it has not, or it can be told.
func (t *attempt) cannotCarry() error {
	u := &t.up
	if u.uncarried == nil || !providers.LacksEndpoint(u.resp.StatusCode, u.first.bytes(), u.call.Model) {
		return nil
	}
	t.backend.NoteHas(t.request.path, false)
	t.verdict(providers.ErrNoVerdict)
	t.free = true
	return u.uncarried
}

// translated is the call to the backend in its dialect.
func (u *roundTrip) translated() (s substitute, err error) {
	r := &u.request
	model := cmp.Or(u.model, r.parsed.Model)
	w, err := u.speech.write(r, &u.memory, u.backend, model)
	if err != nil {
		return s, uncarried(err)
	}
	asked := asUsed(u.speech.parsed.Asked, w.Lost)
	if err := u.memory.take(int64(len(w.Body) + size(asked))); err != nil {
		return s, err
	}
	target, form := targetFor(u.backend, model)
	n := &translation{from: target.Dialect, to: clientDialect(r.end), path: w.Path, text: w.Body}
	for _, l := range w.Lost {
		n.dropped = append(n.dropped, strings.Clone(l.Param)) // or the request would be kept with its name
	}
	n.reply = translate.Reply{
		ID: replyID(requestID(r.http.Context())), Model: r.parsed.Model, Created: r.arrived.Unix(),
		WantUsage: u.speech.parsed.WantUsage || fromMistral(r.http.Header), WholeCalls: fromMistral(r.http.Header), Prompt: u.prompt.tokens, Spaces: u.speech.parsed.Spaces, Asked: asked,
		Array: r.array(),
	}
	s.translation = n
	var body plainBody
	body.text = w.Body
	if n.from == translate.Chat {
		if n.parsed, err = openai.Peek(w.Body); err != nil {
			return s, err
		}
		s.ask, _ = u.backend.Usage(n.path, &n.parsed)
		body.edits = n.parsed.Edit("", s.ask)
	}
	s.call = providers.Call{
		Method: http.MethodPost, Path: n.path, Model: target.Model, Header: u.request.translatedHeader(n.from), Body: body, RequestID: requestID(r.http.Context()),
		Prompt: r.estimate, Answer: r.parsed.MaxTokens,
	}
	if path := form.Path(target.Model, r.parsed.Stream); path != "" {
		s.call.Path, s.call.Escaped = path, true
	}
	return s, nil
}

// asUsed is what an answer says again of its request: not what the backend was not told.
func asUsed(asked []translate.Param, lost []translate.Loss) []translate.Param {
	if len(lost) == 0 {
		return asked
	}
	return slices.DeleteFunc(slices.Clone(asked), func(p translate.Param) bool {
		return slices.ContainsFunc(lost, func(l translate.Loss) bool { return l.Param == p.Name })
	})
}

// size is how many bytes params keep.
func size(params []translate.Param) (n int) {
	for _, p := range params {
		n += len(p.Name) + len(p.Value)
	}
	return n
}

// fromMistral reports whether a client of chats is an SDK of Mistral's, or one that is
// made for its API. It reads the usage of its streams without asking, and each call of a
// tool as a whole: so is that API. What it says goes there as it is.
func fromMistral(h http.Header) bool {
	agent := h.Get("User-Agent")
	return strings.HasPrefix(agent, "mistral-client-") || strings.HasSuffix(agent, "@mistralai/mistralai") || strings.Contains(agent, "ai-sdk/mistral")
}

// replyID is id as far as ids of answers may be made of it.
func replyID(id string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, id)
}

// translatedHeader returns the client's headers, less those that mean something in
// its own dialect alone.
func (r *request) translatedHeader(to translate.Name) http.Header {
	h := r.upHeader(true)
	maps.DeleteFunc(h, func(name string, _ []string) bool {
		own := slices.ContainsFunc([]string{"Anthropic-", "Openai-", "X-Goog-", "X-Stainless-", "Accept"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		return own || name == "User-Agent" && to != translate.Chat
	})
	h.Set("Content-Type", "application/json")
	return h
}

// plainBody is a translated body as it goes up. It implements providers.Body.
type plainBody struct {
	text  []byte
	edits []openai.Splice
}

// Len implements providers.Body.
func (b plainBody) Len() int64 { return int64(openai.EditedLen(len(b.text), b.edits)) }

// Open implements providers.Body.
func (b plainBody) Open() (io.ReadCloser, error) {
	return io.NopCloser(openai.NewReader(b.text, b.edits)), nil
}

// asked is the path that the request has at its backend, and what goes up there.
func (u *roundTrip) asked() (path string, r *openai.Request) {
	if n := u.translation; n != nil {
		return n.path, &n.parsed
	}
	return u.request.path, &u.request.parsed
}

// edit is the body with the edits that ask for less.
func (u *roundTrip) edit(less openai.Ask) providers.Body {
	if n := u.translation; n != nil {
		return plainBody{n.text, n.parsed.Edit("", less)}
	}
	return edited{u.call.Body.(edited).body, u.onward.edits(u.backend, u.request.parsed.Edit(u.model, less))}
}

// recognizeTranslated looks at the first bytes of a good answer in another
// dialect. A document is read as a whole, while another backend can still be asked.
func (t *attempt) recognizeTranslated(start []byte) error {
	u, n := &t.up, t.up.translation
	if encoding := u.resp.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return t.sendFailed(errGarbage, "compressed an answer that has to be translated")
	}
	if !t.request.streams() {
		return t.readDocument(start)
	}
	kind, _, _ := mime.ParseMediaType(u.resp.Header.Get("Content-Type"))
	if kind != n.from.StreamType() && !(n.from.StreamType() == "text/event-stream" && beginsEvents(start)) {
		return t.sendFailed(errGarbage, "answered with no stream, which was asked for")
	}
	t.answer.events, t.answer.form = true, formEvents
	return t.readFirst(start)
}

// readDocument reads an answer to its end and translates it. Beside it there must be room
// for what comes of it; behind it that alone is held.
func (t *attempt) readDocument(start []byte) error {
	u, a, n := &t.up, &t.answer, t.up.translation
	var taken int64
	defer func() { t.memory.adjust(int64(cap(a.pass)) - taken) }()
	silence := t.setup.conf.Timeouts.Silence
	text := bytes.Clone(start)
	u.timer.restart(time.Now().Add(silence), &errSilence)
	for u.first.err == nil {
		if err := t.memory.take(int64(2 * u.first.n)); err != nil {
			t.verdict(providers.ErrNoVerdict) // for want of room here
			return err
		}
		taken += int64(2 * u.first.n)
		if len(text) > translate.MaxDocument {
			return t.sendFailed(errGarbage, "answered with more than can be translated")
		}
		u.first.n, u.first.err = u.resp.Body.Read(u.first.buf.room())
		text = append(text, u.first.bytes()...)
		u.timer.extend(time.Now().Add(silence))
	}
	if u.first.err != io.EOF { //nolint:errorlint // as a Reader returns it
		return t.sendFailed(u.first.err, "broke off its answer")
	}
	out, look, err := translate.Document(n.from, n.to, n.reply, text)
	if err != nil {
		return t.sendFailed(errGarbage, "answered with something that is not of its API")
	}
	u.first.n = max(u.first.n, 1) // there is something to pass on
	a.form, a.whole, a.pass = formDocument, true, out
	a.meter = &documentTranslator{seen: seenOf(&look, new(providers.Usage))}
	t.keepText()
	t.kind = answerGood
	t.good()
	return nil
}

// seenOf is what a translator saw, as meters tell it: a usage is put into u.
func seenOf(l *translate.Look, u *providers.Usage) providers.Seen {
	s := providers.Seen{
		Chunks: l.Chunks, Bytes: l.Bytes, Reasoning: l.Reasoning, Tokens: l.Tokens,
		Done: l.Done, Error: l.Error, Bad: l.Bad, Moved: l.Moved,
	}
	if c := l.Usage; c != nil {
		*u = providers.Usage{PromptTokens: c.Prompt, CachedTokens: c.Cached, CompletionTokens: c.Completion, ReasoningTokens: c.Reasoning}
		s.Usage = u
	}
	return s
}

// streamTranslator is the meter of a stream in another dialect: it counts what the
// backend sends, before that is translated, and passes on what comes of it.
type streamTranslator struct {
	*translate.Stream
	usage providers.Usage // what was seen last
}

// newMeter returns the meter for the answer, which is a stream of events or a document.
func (u *roundTrip) newMeter(path string, events bool) providers.Meter {
	if n := u.translation; n != nil {
		return &streamTranslator{Stream: translate.NewStream(n.from, n.to, n.reply)}
	}
	if d := u.passedOn(); d != translate.None {
		return u.plainMeter(d, events)
	}
	return u.backend.NewMeter(path, events, u.strip)
}

// Read implements providers.Meter.
func (s *streamTranslator) Read(p []byte) (pass []byte, seen providers.Seen) {
	out, look := s.Feed(p)
	return out, seenOf(&look, &s.usage)
}

// End implements providers.Meter.
func (s *streamTranslator) End() (pass []byte, seen providers.Seen) {
	out, look := s.Stream.End()
	return out, seenOf(&look, &s.usage)
}

// ErrorEvent implements providers.Meter.
func (s *streamTranslator) ErrorEvent(message string) []byte { return s.Break(message) }

// documentTranslator is the meter of a document that was translated as a whole.
type documentTranslator struct{ seen providers.Seen }

// Read implements providers.Meter.
func (d *documentTranslator) Read(p []byte) ([]byte, providers.Seen) { return p, providers.Seen{} }

// End implements providers.Meter.
func (d *documentTranslator) End() ([]byte, providers.Seen) { return nil, d.seen }

// ErrorEvent implements providers.Meter.
func (d *documentTranslator) ErrorEvent(string) []byte { return nil }

// Held implements providers.Meter.
func (d *documentTranslator) Held() int { return 0 }

// LetGo implements providers.Meter.
func (d *documentTranslator) LetGo() {}

// translatedAnswer returns the headers of the answer, read as a, as the client's
// dialect has them.
func (u *roundTrip) translatedAnswer(a *reading) http.Header {
	n, from := u.translation, u.resp.Header
	h := translate.RateLimits(n.from, n.to, from, time.Now())
	for _, name := range []string{"Date", "Retry-After", "Retry-After-Ms", "X-Should-Retry"} {
		if v := from[name]; v != nil {
			h[name] = v
		}
	}
	h.Set("Content-Type", "application/json")
	if a.form == formEvents {
		h.Set("Content-Type", n.to.StreamType())
	} else {
		h.Set("Content-Length", strconv.Itoa(len(a.pass)))
	}
	return h
}

// droppedHeader says what was left out of the request.
func (n *translation) droppedHeader(h http.Header) {
	if n != nil && len(n.dropped) > 0 {
		h.Set("X-Pacer-Dropped", strings.Join(slices.Clone(n.dropped), ", "))
	}
}
