package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html"
	"mime"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Failure is what the body of an error answer says. The zero value says
// nothing. All strings are one line of UTF-8 without control characters.
type Failure struct {
	Message           string // in words, at most mostWords characters and "…"; "" = none
	Type, Param, Code string // as far as the body has them as strings; "" = not

	// Shaped is whether the body is of the shape that SDKs read, as far as it
	// goes: an object whose error is an object.
	Shaped bool
}

const (
	// mostWords bounds what is taken of an error in JSON, mostText of plain text,
	// mostPage of a page: all in characters.
	mostWords, mostText, mostPage = 1000, 300, 200

	// mostName bounds a type, param or code, in characters.
	mostName = 100

	// failureDepth is how deep the words of an error are searched for.
	failureDepth = 8

	// failureItems is how many errors of a list are told.
	failureItems = 5
)

// ReadFailure reads the body of an error answer: JSON of any shape, plain text,
// or a page. kind is the answer's Content-Type, which servers get wrong, so the
// body itself is looked at first. The body may be cut off.
func ReadFailure(kind string, body []byte) Failure {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF")))
	event, isEvent := firstData(body)
	if isEvent {
		body = event
	}
	if len(body) == 0 || string(body) == "null" || isBlob(body) {
		return Failure{}
	}
	switch body[0] {
	case '{', '[', '"':
		r := failureReader{body: body, dec: json.NewDecoder(bytes.NewReader(body))}
		if f := r.read(); f.Shaped || f.Message != "" {
			f.Shaped = f.Shaped && !isEvent
			return f
		}
	}
	kind, _, _ = mime.ParseMediaType(kind)
	if body[0] == '<' || strings.HasSuffix(kind, "html") || strings.HasSuffix(kind, "xml") {
		return Failure{Message: clean(pageWords(string(body)), mostPage)}
	}
	text := clean(string(body), mostText)
	if strings.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0 {
		return Failure{}
	}
	return Failure{Message: text}
}

// firstData returns the data of the first event, if body is a stream of them.
func firstData(body []byte) ([]byte, bool) {
	if !bytes.HasPrefix(body, []byte("data:")) && !bytes.HasPrefix(body, []byte("event:")) {
		return nil, false
	}
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			return bytes.TrimSpace(data), true
		}
	}
	return nil, false
}

// isBlob reports whether more than a quarter of body is no text.
func isBlob(body []byte) bool {
	bad := 0
	for i := 0; i < len(body); {
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) && !unicode.IsSpace(r) {
			bad++
		}
		i += size
	}
	return bad*4 > len(body)
}

var (
	terminal = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*`) // sequences that a terminal obeys
	title    = regexp.MustCompile(`(?is)<title\b[^>]*>(.*?)</title`)
	cdata    = regexp.MustCompile(`<!\[CDATA\[|\]\]>`)

	// markup goes to the end where a page is cut off within it: what is in a script
	// is no word, and to look for the end of each of thousands takes seconds.
	markup = regexp.MustCompile(`(?is)<script\b.*?(?:</script\s*>|\z)|<style\b.*?(?:</style\s*>|\z)|<!--.*?(?:-->|\z)|<[^>]*>?`)
)

// pageWords returns the title of a page, else its text.
func pageWords(page string) string {
	if m := title.FindStringSubmatch(page); m != nil {
		page = m[1]
		if strings.TrimSpace(page) == "" {
			page = m[0]
		}
	}
	page = cdata.ReplaceAllString(page, " ")
	return html.UnescapeString(markup.ReplaceAllString(page, " "))
}

// clean returns s in one line, without what is not UTF-8, what a terminal obeys
// and what turns text round, and cut to most characters.
func clean(s string, most int) string {
	s = terminal.ReplaceAllString(strings.ToValidUTF8(s, ""), "")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// Keys under which errors have their words. Those of said are told together, in
// this order: a title and then what it was about. Of those of hinted one is
// told, if there are none of said.
var (
	said   = [...]string{"error", "errors", "title", "loc", "message", "msg", "detail", "error_description", "error_message", "errormessage"}
	hinted = [...]string{"details", "reason", "description", "fault", "faultstring", "exception", "text", "status", "code", "type"}
)

// failureReader goes over the JSON of an error token by token, so that one which
// is cut off says what it has.
type failureReader struct {
	body    []byte
	dec     *json.Decoder
	broken  bool // there is no JSON from here on
	failure Failure
}

// part is where in an error answer a value stands.
type part uint8

const (
	outermost part = iota
	inError        // the value of the outermost object's error
	within         // the error itself, wrapped in some other way
	about          // one of the things that the error is about
)

func (r *failureReader) read() Failure {
	r.failure.Message = clean(r.value(r.token(), 0, outermost), mostWords)
	return r.failure
}

// token returns the next token; nil for null, and at the end of the JSON. Of a
// string that is cut off it returns what is there.
func (r *failureReader) token() json.Token {
	if r.broken {
		return nil
	}
	from := r.dec.InputOffset()
	t, err := r.dec.Token()
	if err == nil {
		return t
	}
	r.broken = true
	rest := bytes.TrimLeft(r.body[from:], ":, \t\r\n")
	if len(rest) == 0 || rest[0] != '"' {
		return nil
	}
	for cut := 0; cut < min(len(rest), len(`\u0000`)); cut++ { // it may end within an escape
		var s string
		if json.Unmarshal(append(slices.Clone(rest[:len(rest)-cut]), '"'), &s) == nil {
			return s
		}
	}
	return nil
}

// more reports whether the container under way has another item.
func (r *failureReader) more() bool { return !r.broken && r.dec.More() }

// skip passes over the rest of the container under way.
func (r *failureReader) skip() {
	for open := 1; open > 0 && !r.broken; {
		switch r.token() {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
	}
}

// value returns the words of the value that begins with t.
func (r *failureReader) value(t json.Token, depth int, p part) string {
	switch t {
	case json.Delim('{'), json.Delim('['):
		if depth == failureDepth {
			r.skip()
			return ""
		}
		if t == json.Delim('{') {
			return r.object(depth+1, p)
		}
		return r.array(depth+1, p)
	}
	s, _ := t.(string)
	return s
}

func (r *failureReader) array(depth int, p part) string {
	if p < within {
		p = within
	}
	var items []string
	for r.more() {
		if len(items) == failureItems {
			r.skip()
			return strings.Join(items, "; ") + "; …"
		}
		if s := r.value(r.token(), depth, p); s != "" {
			items, p = append(items, s), about
		}
	}
	r.token()
	return strings.Join(items, "; ")
}

func (r *failureReader) object(depth int, p part) string {
	var words [len(said)]string
	var hints [len(hinted)]string
	for r.more() {
		key, _ := r.token().(string)
		key = strings.ToLower(key)
		t := r.token()
		if key == "loc" && t == json.Delim('[') {
			words[slices.Index(said[:], key)] = r.path()
			continue
		}
		inner := about
		switch {
		case key == "error" && p == outermost:
			inner = inError
		case key == "error" && p < about:
			inner = within
		}
		if inner == inError {
			r.failure.Shaped = t == json.Delim('{')
		}
		s := r.value(t, depth, inner)
		if i := slices.Index(said[:], key); i >= 0 {
			words[i] = s
		} else if i := slices.Index(hinted[:], key); i >= 0 {
			hints[i] = s
		}
		if p < about {
			r.note(key, s)
		}
	}
	r.token()
	var all string
	for _, s := range words {
		if s = strings.TrimSpace(s); s != "" && !strings.Contains(all, s) {
			all = strings.TrimLeft(strings.TrimSuffix(all, ".")+": "+s, ": ")
		}
	}
	return cmp.Or(append([]string{all}, hints[:]...)...)
}

// note keeps what an error says of itself besides its words. What comes first
// stays.
func (r *failureReader) note(key, s string) {
	f := &r.failure
	switch s = clean(s, mostName); {
	case s == "":
	case key == "type" && f.Type == "" && s != "error" && !strings.Contains(s, ":"): // no address of a page
		f.Type = s
	case key == "param" && f.Param == "":
		f.Param = s
	case key == "code" && f.Code == "":
		f.Code = s
	}
}

// path returns where in a request the mistake is, as of FastAPI: the rest of an
// array of names and numbers, with dots between them.
func (r *failureReader) path() string {
	var steps []string
	for r.more() {
		switch t := r.token().(type) {
		case json.Delim:
			r.skip()
		case string:
			steps = append(steps, t)
		case float64:
			steps = append(steps, strconv.FormatFloat(t, 'f', -1, 64))
		}
	}
	r.token()
	return strings.Join(steps[:min(len(steps), failureItems)], ".")
}
