package h1server

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/pacer-dev/pacer/internal/httpfield"
)

// head is what the beginning of a request says.
type head struct {
	method string
	target string
	url    *url.URL
	host   string
	header http.Header
	length int64 // of the body; 0 = there is none
	close  bool  // the client wants the connection closed behind the answer
}

// parse reads the head at the beginning of p and returns how long it is; 0 = it is
// not there whole, or is not plain. Nothing of p is kept.
func (h *head) parse(p []byte) int {
	end := bytes.Index(p, headEnd)
	if end < 0 {
		return 0
	}
	text := string(p[:end+len(crlf)])
	line, rest, ok := cutLine(text)
	if !ok || !h.request(line) || !h.fields(rest) {
		return 0
	}
	return end + len(headEnd)
}

var (
	crlf    = []byte("\r\n")
	headEnd = []byte("\r\n\r\n")
)

// cutLine returns the first line of s without its end, which is CRLF, and what
// comes behind it.
func cutLine(s string) (line, rest string, ok bool) {
	i := strings.IndexByte(s, '\n')
	if i < 1 || s[i-1] != '\r' {
		return "", "", false
	}
	return s[:i-1], s[i+1:], true
}

// request reads the first line, and reports whether it is plain.
func (h *head) request(line string) bool {
	line, ok := strings.CutSuffix(line, " HTTP/1.1")
	if !ok {
		return false
	}
	method, target, ok := strings.Cut(line, " ")
	if !ok || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") {
		return false
	}
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		h.method = method
	default:
		return false
	}
	h.target = target
	if plainPath(target) {
		h.url = &url.URL{Path: target}
		return true
	}
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	var err error
	h.url, err = url.ParseRequestURI(target)
	return err == nil
}

// plainPath reports whether a target is a path in which nothing is encoded, or
// would have to be.
func plainPath(target string) bool {
	for i := range len(target) {
		switch c := target[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '/', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// fields reads the lines behind the first, and reports whether all are plain.
func (h *head) fields(rest string) bool {
	count := strings.Count(rest, "\n")
	h.header = make(http.Header, count)
	values := make([]string, count)
	hosts, lengths := 0, 0
	for i := 0; rest != ""; i++ {
		line, after, ok := cutLine(rest)
		if !ok {
			return false
		}
		rest = after
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return false
		}
		if name, ok = httpfield.Canonical(name); !ok {
			return false
		}
		if value = strings.Trim(value, " \t"); !httpguts.ValidHeaderFieldValue(value) {
			return false
		}
		switch name {
		case "Host":
			hosts++
			h.host = value
			continue
		case "Content-Length":
			lengths++
			n, err := strconv.ParseUint(value, 10, 63)
			if h.length = int64(n); err != nil {
				return false
			}
		case "Connection":
			h.close = h.close || strings.EqualFold(value, "close")
			if !h.close && !strings.EqualFold(value, "keep-alive") {
				return false
			}
		case "Transfer-Encoding", "Upgrade", "Expect", "Trailer", "Pragma":
			return false
		}
		if before := h.header[name]; before != nil {
			h.header[name] = append(before, value)
			continue
		}
		values[i] = value
		h.header[name] = values[i : i+1 : i+1]
	}
	return hosts == 1 && lengths <= 1 && len(h.header["Connection"]) <= 1 && hostname(h.host)
}

// hostname reports whether s is a host, with or without a port, as nobody
// misunderstands it.
func hostname(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_', c == ':', c == '[', c == ']':
		default:
			return false
		}
	}
	return s != ""
}
