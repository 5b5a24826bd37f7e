package gateway

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/translate"
)

// What Google's clients have of their own stands here: the model is in the path, the
// stream too, and an answer may be an array. The rest of the journey is everybody's.

// generate takes what Google's API is asked for on the journey; ok is whether r is
// such a request.
func (g *Gateway) generate(w http.ResponseWriter, r *http.Request) (ok bool) {
	end, model := endpoint.Asked(r.URL.Path)
	if end == nil {
		return false
	}
	g.dispatch(w, r, served(end, func(w http.ResponseWriter, r *http.Request) {
		g.travel(w, request{http: r, end: end, path: end.Path, named: model})
	}))
	return true
}

// google is the handler of what is below base, under which only Google's clients
// ask.
func (g *Gateway) google(base string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if g.generate(w, r) {
			return
		}
		path, found := strings.CutPrefix(r.URL.Path, base+"models")
		id, below := strings.CutPrefix(path, "/")
		if !found || path != "" && !below || r.Method == http.MethodPost && strings.Contains(id, ":") {
			g.refuse(w, r, errUnserved)
			return
		}
		show := func(w http.ResponseWriter, r *http.Request) { g.googleModels(w, r, id) }
		g.dispatch(w, r, methods{http.MethodGet: show, http.MethodHead: show})
	}
}

// withGenerate has POST below a base of models serve Google's API too.
func (g *Gateway) withGenerate(other http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !g.generate(w, r) {
			other(w, r)
		}
	}
}

// googleModel is a model as Google lists it.
type googleModel struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Methods     []string `json:"supportedGenerationMethods"`
}

// googleModels answers with the models of the key's routes, or with one of them.
func (g *Gateway) googleModels(w http.ResponseWriter, r *http.Request, id string) {
	p := g.setup.Load()
	t, err := p.authenticate(r)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	model := func(id string) googleModel {
		return googleModel{Name: "models/" + id, DisplayName: id, Methods: []string{"generateContent", "countTokens"}}
	}
	if id != "" {
		if rt := p.route(id); rt == nil || !t.may(rt) {
			g.refuse(w, r, &unknownModelError{model: id})
			return
		}
		g.sendJSON(w, r, model(id))
		return
	}
	list := struct {
		Models []googleModel `json:"models"`
	}{[]googleModel{}}
	for _, name := range p.models {
		if rt := p.routes[name]; t.may(rt) && !rt.wild {
			list.Models = append(list.Models, model(rt.name))
		}
	}
	g.sendJSON(w, r, list)
}

// generates reads what a body of generateContent says of the answer, and what its
// path does.
func (r *request) generates() {
	body := r.body.bytes()
	config := gjson.GetBytes(body, "generationConfig")
	if !config.Exists() {
		config = gjson.GetBytes(body, "generation_config")
	}
	most := func(names ...string) int {
		for _, name := range names {
			if v := config.Get(name); v.Type == gjson.Number && v.Num >= 1 {
				return int(min(v.Num, 1<<31-1))
			}
		}
		return 0
	}
	r.parsed.Stream = r.end.Flows
	r.parsed.MaxTokens = most("maxOutputTokens", "max_output_tokens")
	r.parsed.Sequences = min(max(1, most("candidateCount", "candidate_count")), 128)
}

// array reports whether the answer is to be an array, of which each item is a piece
// of it: so Google streams where no alt=sse is asked for.
func (r *request) array() bool {
	if !r.end.Flows {
		return false
	}
	q, _ := url.ParseQuery(r.http.URL.RawQuery)
	return q.Get("alt") != "sse" && q.Get("$alt") != "sse"
}

// prepareGoogle makes the call to a backend that speaks Google's dialect as the client
// does: the body goes up as it is, and the path says the rest.
func (u *roundTrip) prepareGoogle(model string) {
	r := &u.request
	form, name := u.backend.FormOf(model)
	body := edited{body: r.body}
	path := form.Path(name, r.parsed.Stream)
	if r.end.Counts {
		path, body.edits = form.CountPath(name), renameWithin(r.body.bytes(), name)
	}
	u.call = providers.Call{
		Method: http.MethodPost, Path: path, Escaped: true, Model: name,
		Header: r.upHeader(u.order.span != nil), Body: body, RequestID: requestID(r.http.Context()), Prompt: r.estimate, Answer: r.parsed.MaxTokens,
	}
}

// renameWithin names the model as its backend does where a body that is to be counted
// holds a whole request.
func renameWithin(body []byte, model string) []openai.Splice {
	for _, name := range []string{"generateContentRequest", "generate_content_request"} {
		if v := gjson.GetBytes(body, name+".model"); v.Type == gjson.String && v.Index > 0 {
			return []openai.Splice{{From: v.Index, To: v.Index + len(v.Raw), Text: openai.Quote("models/" + model)}}
		}
	}
	return nil
}

// passedOn is the dialect that the client and the backend both speak, if that is
// Google's or Cohere's; translate.None = it is another one, or they speak two.
func (u *roundTrip) passedOn() translate.Name {
	if d := clientDialect(u.request.end); u.translation == nil && (d == translate.Gemini || d == translate.Cohere) {
		return d
	}
	return translate.None
}

// plainMeter looks on at an answer in the dialect d that goes on as it is.
func (u *roundTrip) plainMeter(d translate.Name, events bool) providers.Meter {
	if !events {
		return &wholeMeter{dialect: d}
	}
	return &streamTranslator{Stream: translate.NewStream(d, d, translate.Reply{Plain: true, Array: u.request.array()})}
}

// wholeMeter looks on at a document of a dialect, which it reads at its end.
type wholeMeter struct {
	dialect translate.Name

	text []byte
	over bool // it is too large to be read
	read bool
	seen providers.Seen
}

// maxWhole is how much of a document is kept to be read at its end, in bytes.
const maxWhole = 4 << 20

// Read implements providers.Meter.
func (m *wholeMeter) Read(p []byte) ([]byte, providers.Seen) {
	m.read = false
	if m.over = m.over || len(m.text)+len(p) > maxWhole; m.over {
		m.text = nil
	} else {
		m.text = append(m.text, p...)
	}
	return p, providers.Seen{}
}

// Kept implements keepsDocument.
func (m *wholeMeter) Kept() []byte { return m.text }

// End implements providers.Meter.
func (m *wholeMeter) End() ([]byte, providers.Seen) {
	if m.over || m.read {
		return nil, m.seen
	}
	m.read = true
	_, look, err := translate.Document(m.dialect, m.dialect, translate.Reply{Plain: true}, m.text)
	if m.seen = seenOf(&look, new(providers.Usage)); err != nil {
		m.seen = providers.Seen{Bad: true}
	}
	return nil, m.seen
}

// ErrorEvent implements providers.Meter.
func (m *wholeMeter) ErrorEvent(string) []byte { return nil }

// Held implements providers.Meter.
func (m *wholeMeter) Held() int { return len(m.text) }

// LetGo implements providers.Meter.
func (m *wholeMeter) LetGo() { m.text, m.over = nil, true }

// googleError is an error as Google's clients read it.
type googleError struct {
	Error struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Status  string         `json:"status"`
		Details []googleDetail `json:"details"`
	} `json:"error"`
}

// googleDetail is one of several messages, which Type tells apart.
type googleDetail struct {
	Type       string            `json:"@type"`
	Reason     string            `json:"reason,omitempty"`
	Domain     string            `json:"domain,omitempty"`
	Violations []googleViolation `json:"fieldViolations,omitempty"`
	RetryDelay string            `json:"retryDelay,omitempty"`
}

type googleViolation struct {
	Field       string `json:"field"`
	Description string `json:"description"`
}

// google is a as Google's clients read it.
func (a answer) google() []byte {
	const types = "type.googleapis.com/google.rpc."
	var e googleError
	e.Error.Code, e.Error.Message, e.Error.Status = a.status, a.message, translate.GoogleStatus(a.status)
	e.Error.Details = []googleDetail{{Type: types + "ErrorInfo", Reason: a.code, Domain: "pacer"}}
	if a.param != "" {
		e.Error.Details = append(e.Error.Details, googleDetail{Type: types + "BadRequest", Violations: []googleViolation{{a.param, a.message}}})
	}
	if a.retryAfter > 0 {
		delay := strconv.FormatFloat(a.retryAfter.Seconds(), 'f', 3, 64) + "s"
		e.Error.Details = append(e.Error.Details, googleDetail{Type: types + "RetryInfo", RetryDelay: delay})
	}
	body, _ := json.Marshal(&e) // strings and a number: there is no error
	return body
}

// ofGoogle reports whether r is of a client of Google's: by its address, or, where
// others have the same, by the header that says which library it is.
func ofGoogle(r *http.Request) bool {
	return endpoint.InGoogle(r.URL.Path) || r.Header["X-Goog-Api-Client"] != nil
}

// googleKey is the key in the query, where Google's clients may have it.
func googleKey(r *http.Request) string {
	if r.URL.RawQuery == "" || !endpoint.InGoogle(r.URL.Path) {
		return ""
	}
	return r.URL.Query().Get("key")
}

// googleHeader has the headers of an answer say what Google's clients asked for.
func (r *request) googleHeader(t *attempt, h http.Header) {
	if t.answer.form == formEvents && r.array() {
		h.Set("Content-Type", "application/json; charset=UTF-8")
	}
}
