package translate

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/openai"
)

// parse reads text, which must not be changed while the result is in use. It
// reports whether text is one JSON object.
func parse(text []byte) (gjson.Result, bool) {
	if !openai.Valid(text) {
		return gjson.Result{}, false
	}
	r := gjson.Parse(unsafe.String(unsafe.SliceData(text), len(text)))
	return r, r.IsObject()
}

// raw is the JSON of r, which shares its memory.
func raw(r gjson.Result) []byte {
	return unsafe.Slice(unsafe.StringData(r.Raw), len(r.Raw))
}

// quoted is r as it is written, if it is a string, and nil otherwise.
func quoted(r gjson.Result) []byte {
	if r.Type != gjson.String {
		return nil
	}
	return raw(r)
}

// isEmpty reports whether a quoted string has no text.
func isEmpty(q []byte) bool { return len(q) <= 2 }

// inner is a quoted string without its quotes.
func inner(q []byte) []byte {
	if len(q) < 2 {
		return nil
	}
	return q[1 : len(q)-1]
}

// member is a field that is looked for by its name, and where its value goes.
type member struct {
	name string
	to   *gjson.Result
}

// pick reads fields of the object v in one pass. What v does not have stays as it is.
func pick(v gjson.Result, members ...member) {
	v.ForEach(func(key, v gjson.Result) bool {
		for i := range members {
			if key.Str == members[i].name {
				*members[i].to = v
				break
			}
		}
		return true
	})
}

// hasMembers reports whether the object v has any.
func hasMembers(v gjson.Result) (has bool) {
	v.ForEach(func(_, _ gjson.Result) bool {
		has = true
		return false
	})
	return has
}

// count reads a number of tokens, which is never negative nor beyond 2³¹−1.
func count(r gjson.Result) int {
	if r.Type != gjson.Number || !(r.Num > 0) {
		return 0
	}
	return int(min(r.Num, 1<<31-1))
}

// writer appends JSON. The commas come by themselves.
type writer struct{ b []byte }

// next puts a comma where one has to be.
func (w *writer) next() {
	if n := len(w.b); n > 0 {
		switch w.b[n-1] {
		case '{', '[', ':', ' ', '\n':
		default:
			w.b = append(w.b, ',')
		}
	}
}

func (w *writer) open(c byte) {
	w.next()
	w.b = append(w.b, c)
}

func (w *writer) close(c byte) { w.b = append(w.b, c) }

// key writes the name of a field; it needs no escapes.
func (w *writer) key(name string) {
	w.next()
	w.b = append(append(append(w.b, '"'), name...), '"', ':')
}

func (w *writer) str(s string) {
	w.next()
	w.b = openai.AppendString(w.b, s)
}

// raw writes JSON as it is.
func (w *writer) raw(text string) {
	w.next()
	w.b = append(w.b, text...)
}

// field writes a field that is a string, rawField one that is JSON.
func (w *writer) field(name, s string) {
	w.key(name)
	w.b = openai.AppendString(w.b, s)
}

func (w *writer) rawField(name, text string) {
	w.key(name)
	w.b = append(w.b, text...)
}

func (w *writer) bytesField(name string, text []byte) {
	w.key(name)
	w.b = append(w.b, text...)
}

func (w *writer) intField(name string, n int) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, int64(n), 10)
}

func (w *writer) boolField(name string, is bool) {
	w.key(name)
	w.b = strconv.AppendBool(w.b, is)
}

// optional writes a field that is a string unless that is empty.
func (w *writer) optional(name, s string) {
	if s != "" {
		w.field(name, s)
	}
}

// within writes a field whose value is an object, or an array, that fill fills.
func (w *writer) within(name string, open, end byte, fill func()) {
	w.key(name)
	w.b = append(w.b, open)
	fill()
	w.close(end)
}

// object writes an object that fill fills, as an item of an array or by itself.
func (w *writer) object(fill func()) {
	w.open('{')
	fill()
	w.close('}')
}

// quote returns s as a quoted string.
func quote(s string) []byte { return openai.AppendString(make([]byte, 0, len(s)+2), s) }

// dataURL splits a data: URL of base64.
func dataURL(url string) (media, data string, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	head, data, ok := strings.Cut(rest, ",")
	media, isBase64 := strings.CutSuffix(head, ";base64")
	media, _, _ = strings.Cut(media, ";")
	return media, data, ok && isBase64
}

// isObject reports whether text is one JSON object.
func isObject(text string) bool {
	_, ok := parse([]byte(text))
	return ok
}
