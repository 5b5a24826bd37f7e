package gateway

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
)

// leastSecret is how long a key must be to be one, in bytes: a shorter one
// (none, EMPTY) is a word like any other.
const leastSecret = 6

// secretsOf returns what no error of b, and no header, may repeat, beside its keys.
func secretsOf(b config.Backend) (values []string) {
	for _, value := range b.Headers {
		words := strings.Fields(value.Reveal()) // Bearer, Basic, and then the secret
		values = append(values, words[max(0, len(words)-1):]...)
	}
	return values
}

// secrets returns what no error of b, and no header, may repeat; the longest first,
// since one may hold another one.
func (b *backend) secrets() []string {
	all := slices.DeleteFunc(slices.Concat(b.fixed, b.Secrets()), func(s string) bool { return len(s) < leastSecret })
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// repeats reports whether one of values, of a header, repeats one of secrets.
func repeats(values, secrets []string) bool {
	return slices.ContainsFunc(secrets, func(secret string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, secret) })
	})
}

// readError reads what an error answer says that begins with start. One that is
// Shaped may go to the client as it is. Of others the secrets are cut out.
func (u *roundTrip) readError(start []byte) openai.Failure {
	encoding := u.resp.Header.Get("Content-Encoding")
	text, hid, secrets := unpacked(start, encoding), false, u.backend.secrets()
	for _, secret := range secrets {
		text = bytes.ReplaceAll(text, []byte(secret), []byte("…"))
	}
	f := openai.ReadFailure(u.resp.Header.Get("Content-Type"), text)
	for _, s := range []*string{&f.Message, &f.Type, &f.Param, &f.Code} {
		for _, secret := range secrets { // it was escaped
			if strings.Contains(*s, secret) {
				*s, hid = strings.ReplaceAll(*s, secret, "…"), true
			}
		}
	}
	// Cohere has the message itself where others have an object.
	f.Shaped = f.Shaped || u.request.end.Dialect == endpoint.CohereChat && gjson.GetBytes(text, "message").Type == gjson.String
	unbroken := u.first.err == nil || u.first.err == io.EOF && json.Valid(start)
	f.Shaped = f.Shaped && unbroken && !hid && isPlain(encoding)
	return f
}

// isPlain reports whether what has this Content-Encoding is not compressed.
func isPlain(encoding string) bool { return encoding == "" || strings.EqualFold(encoding, "identity") }

// unpacked returns the beginning of text as it was before it was compressed, at
// most as much as is looked at of an error.
func unpacked(text []byte, encoding string) []byte {
	if isPlain(encoding) {
		return text
	}
	var r io.Reader
	var err error
	switch strings.ToLower(encoding) {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(bytes.NewReader(text))
	case "deflate":
		r, err = zlib.NewReader(bytes.NewReader(text))
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	out, _ := io.ReadAll(io.LimitReader(r, errorStart)) // of one that is cut off, what is there
	return out
}

// masked is the body of an error answer in which stars stand for what no answer
// may repeat. It holds the last bytes back until it is known that they are not
// the beginning of a secret.
type masked struct {
	io.ReadCloser
	secrets []string // the longest first
	held    []byte   // read, and not given out
	clear   int      // of held: these can be given out
	err     error    // what follows held
}

// mask returns body without secrets.
func mask(body io.ReadCloser, secrets []string) io.ReadCloser {
	if len(secrets) == 0 {
		return body
	}
	return &masked{ReadCloser: body, secrets: secrets}
}

// Read implements io.Reader.
func (m *masked) Read(p []byte) (int, error) {
	for m.clear == 0 && m.err == nil {
		m.more(len(p))
	}
	n := copy(p, m.held[:m.clear])
	m.clear -= n
	m.held = m.held[:copy(m.held, m.held[n:])]
	if len(m.held) > 0 {
		return n, nil
	}
	return n, m.err
}

// more reads at most most bytes more.
func (m *masked) more(most int) {
	m.held = slices.Grow(m.held, most)
	var n int
	n, m.err = m.ReadCloser.Read(m.held[len(m.held):][:most])
	m.held = m.held[:len(m.held)+n]
	for _, secret := range m.secrets {
		copy(m.held, bytes.ReplaceAll(m.held, []byte(secret), bytes.Repeat([]byte("*"), len(secret))))
	}
	m.clear = max(0, len(m.held)-len(m.secrets[0])+1)
	if m.err != nil {
		m.clear = len(m.held)
	}
}
