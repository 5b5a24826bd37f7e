package openai

import "bytes"

// maxResponseID is the longest id that is taken for one, in bytes.
const maxResponseID = 256

// ResponseID finds the id of a Responses answer in b: the document, or the data
// of an event that carries one ("response": {"id": …}). b may be the beginning
// of it alone; "" means that the id is not there, or not yet.
func ResponseID(b []byte) string {
	w := walker{b: b, inf: true}
	return w.responseID(w.space(0), 0)
}

func (w *walker) responseID(i, depth int) string {
	if w.kind(i) != '{' {
		return ""
	}
	at, done := w.first(i, '}')
	for !done {
		key, _, v := w.key(at)
		if v < 0 {
			return ""
		}
		if depth == 0 && string(key) == "response" && w.kind(v) == '{' {
			return w.responseID(v, 1)
		}
		end := w.value(v, depth+1)
		if end < 0 {
			return ""
		}
		if string(key) == "id" && w.kind(v) == '"' {
			raw := w.b[v:end]
			if id := unquote(raw, bytes.IndexByte(raw, '\\') >= 0); SaneResponseID(id) {
				return id
			}
			return ""
		}
		at, done = w.next(end, '}')
	}
	return ""
}

// SaneResponseID reports whether id may stand in a path as it is.
func SaneResponseID(id string) bool {
	if id == "" || len(id) > maxResponseID || id == "." || id == ".." {
		return false
	}
	for _, c := range []byte(id) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && c != '_' && c != '-' && c != '.' && c != ':' {
			return false
		}
	}
	return true
}
