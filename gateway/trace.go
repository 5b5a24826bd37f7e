package gateway

import (
	"net/http"
	"strings"
)

// trace is the W3C trace that a client says its request is part of. The zero value
// is none.
type trace struct {
	id      string // 32 lower-case hex digits, part of the header; "" = none
	sampled bool   // somebody records it
}

// traceOf reads traceparent: version, trace, parent span and flags, as in
// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01. What is malformed, or
// there twice, is none: a line of the log may not bear what a client made up.
func traceOf(h http.Header) trace {
	values := h["Traceparent"]
	if len(values) != 1 {
		return trace{}
	}
	v := values[0]
	const length = 55
	switch {
	case len(v) < length, v[2] != '-', v[35] != '-', v[52] != '-',
		len(v) > length && (v[:2] == "00" || v[length] != '-'): // later versions may say more
		return trace{}
	case v[:2] == "ff", zero(v[3:35]), zero(v[36:52]):
		return trace{}
	case !hexadecimal(v[:2]), !hexadecimal(v[3:35]), !hexadecimal(v[36:52]), !hexadecimal(v[53:length]):
		return trace{}
	}
	// The lowest bit of the last digit.
	return trace{id: v[3:35], sampled: strings.IndexByte("13579bdf", v[length-1]) >= 0}
}

func zero(s string) bool { return strings.Trim(s, "0") == "" }

func hexadecimal(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// exemplar is the trace that metrics may point to: one that somebody records.
func (t trace) exemplar() string {
	if t.sampled {
		return t.id
	}
	return ""
}
