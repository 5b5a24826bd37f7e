package openai

import (
	"bytes"
	"fmt"
	"mime"
	"strings"
)

const (
	// maxParts bounds the fields and files of one form.
	maxParts = 256

	// maxPartHead bounds the headers of one of them, in bytes.
	maxPartHead = 8 << 10

	// maxFormValue is the longest value of a field that is read.
	maxFormValue = 1024
)

// PeekForm is Peek for a body of multipart/form-data, whose Content-Type is
// given: it reads the fields model and stream, wherever they stand among the
// files. Edit of the Request that it returns replaces the value of the field.
//
// What two parsers could read differently is refused: a field of these that
// comes twice, differs by case, or is sent as a file.
func PeekForm(body []byte, contentType string) (Request, error) {
	_, params, err := mime.ParseMediaType(contentType)
	boundary := params["boundary"]
	if err != nil || boundary == "" || len(boundary) > 70 {
		return Request{}, &BadRequest{Message: "The Content-Type of the form has no usable boundary."}
	}
	f := form{body: body, delimiter: []byte("\r\n--" + boundary)}
	f.req.body, f.req.form = body, true
	if bad := f.read(); bad != nil {
		return Request{}, bad
	}
	if f.model > 0 && f.req.Model == "" {
		return Request{}, &BadRequest{Message: "model must not be empty.", Param: "model"}
	}
	f.req.Sequences = 1
	return f.req, nil
}

// form is the state of one PeekForm.
type form struct {
	body          []byte
	delimiter     []byte // the line end before it belongs to it
	req           Request
	model, stream int // how often they came
}

var errForm = &BadRequest{Message: "The request body is not valid multipart/form-data, or ends too early."}

// read goes over the parts.
func (f *form) read() *BadRequest {
	at, last := f.start()
	for parts := 0; !last; parts++ {
		if at < 0 {
			return errForm
		}
		if parts == maxParts {
			return &BadRequest{Message: fmt.Sprintf("The form has more than %d parts.", maxParts)}
		}
		var bad *BadRequest
		if at, last, bad = f.part(at); bad != nil {
			return bad
		}
	}
	return nil
}

// start finds the first delimiter, which may stand at the very beginning, and
// returns the offset behind its line; -1 when there is none.
func (f *form) start() (at int, last bool) {
	if bytes.HasPrefix(f.body, f.delimiter[2:]) {
		i := len(f.delimiter) - 2
		f.req.spans.delimiter = span{0, i}
		if at, last = f.behind(i); at >= 0 || f.unclear(i) {
			return at, last
		}
	}
	begins, at, last := f.next(0)
	f.req.spans.delimiter = span{begins + 2, begins + len(f.delimiter)}
	if begins > 0 && bytes.Contains(f.body[:begins], f.delimiter[1:]) {
		return -1, false // parsers that take a line end without CR begin there
	}
	return at, last
}

// next finds the delimiter at or after i: where it begins, the offset behind
// its line, and whether it is the last one. behind is -1 when there is none,
// or before it something that another parser could take for one.
func (f *form) next(i int) (begins, behind int, last bool) {
	for {
		n := bytes.Index(f.body[i:], f.delimiter)
		if n < 0 {
			return -1, -1, false
		}
		begins = i + n
		after := begins + len(f.delimiter)
		if behind, last = f.behind(after); behind >= 0 || f.unclear(after) {
			return begins, behind, last
		}
		i = begins + 1 // the beginning of a longer line: no delimiter
	}
}

// behind reads the rest of a delimiter's line at i.
func (f *form) behind(i int) (at int, last bool) {
	rest := f.body[i:]
	if bytes.HasPrefix(rest, []byte("--")) {
		rest, last = rest[2:], true
	}
	n := len(rest) - len(bytes.TrimLeft(rest, " \t"))
	switch {
	case bytes.HasPrefix(rest[n:], []byte("\r\n")):
		n += 2
	case last && n == len(rest): // the line end behind the last one is optional
	default:
		return -1, false
	}
	return len(f.body) - len(rest) + n, last
}

// unclear reports whether what follows a delimiter at i, and is not the rest of
// its line, ends it all the same for some parsers: they look at this much.
func (f *form) unclear(i int) bool {
	rest := f.body[i:]
	return len(rest) > 0 && strings.IndexByte(" \t\r\n", rest[0]) >= 0 || bytes.HasPrefix(rest, []byte("--"))
}

// part reads the part at i and returns what follows it.
func (f *form) part(i int) (at int, last bool, bad *BadRequest) {
	// A part without headers has its blank line at once: no name, and so
	// nothing of a form.
	n := bytes.Index(f.body[i:min(len(f.body), i+maxPartHead)], []byte("\r\n\r\n"))
	if n < 0 {
		return 0, false, errForm
	}
	head, from := f.body[i:i+n], i+n+4
	to, at, last := f.next(from)
	if at < 0 || bytes.HasPrefix(f.body[from:], f.delimiter[2:]) { // parsers differ on the latter
		return 0, false, errForm
	}
	name, plain, bad := disposition(head)
	if bad != nil {
		return 0, false, bad
	}
	return at, last, f.field(name, plain, span{from, to})
}

// disposition reads the head of a part: its name, and whether it is a field in
// plain text.
func disposition(head []byte) (name string, plain bool, bad *BadRequest) {
	plain, found := true, false
	for line := range strings.SplitSeq(string(head), "\r\n") {
		key, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(key, " \t") || strings.ContainsAny(value, "\r\n") {
			return "", false, errForm // a folded line, too
		}
		switch strings.ToLower(key) {
		case "content-disposition":
			kind, params, err := mime.ParseMediaType(value)
			if err != nil || kind != "form-data" || found || params["name"] == "" {
				return "", false, errForm
			}
			found, name = true, params["name"]
			if _, file := params["filename"]; file {
				plain = false
			}
		case "content-transfer-encoding":
			plain = false
		}
	}
	if !found {
		return "", false, errForm
	}
	return name, plain, nil
}

// field takes the value of a field that Pacer decides by.
func (f *form) field(name string, plain bool, value span) *BadRequest {
	lower := strings.ToLower(name)
	if lower != "model" && lower != "stream" {
		return nil
	}
	text := f.body[value.from:value.to]
	switch {
	case name != lower:
		return lookalike(name)
	case !plain:
		return &BadRequest{Message: name + " must be a field of the form, not a file.", Param: name}
	case len(text) > maxFormValue:
		return &BadRequest{Message: name + " is too long.", Param: name}
	}
	seen := &f.stream
	if name == "model" {
		seen = &f.model
		f.req.Model, f.req.model, f.req.spans.model = string(text), string(text), value
	} else {
		f.req.Stream, _ = truth(string(text))
	}
	if *seen++; *seen > 1 {
		return &BadRequest{Message: fmt.Sprintf("The form has the field %q twice.", name), Param: name}
	}
	return nil
}
