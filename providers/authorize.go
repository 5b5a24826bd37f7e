package providers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/internal/credential"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// KeyError reports that there were no credentials to send a request with.
type KeyError struct{ Err error }

// Error says why.
func (e *KeyError) Error() string { return "no credentials: " + e.Err.Error() }

// Unwrap returns why.
func (e *KeyError) Unwrap() error { return e.Err }

// authorize puts what the key of l made into req, whose body is body.
func (b *Backend) authorize(ctx context.Context, req *http.Request, body Body, l *loan) error {
	v := l.value
	if v.AWS != nil {
		hash, err := hashOf(body)
		if err != nil {
			return err
		}
		return credential.Sign(ctx, req, v.AWS, hash, b.kind.Service, b.region, time.Now())
	}
	carry(req.Header, &b.kind, v)
	return nil
}

// carry puts a secret into the header that a kind has for it, unless another one
// stands there.
func carry(h http.Header, kind *upstream.Kind, v credential.Value) {
	if name, value := carried(kind, v); h[name] == nil {
		h[name] = []string{value}
	}
}

// carried is the header that carries a secret.
func carried(kind *upstream.Kind, v credential.Value) (name, value string) {
	if v.Token {
		return "Authorization", "Bearer " + v.Secret
	}
	return kind.Key(v.Secret)
}

// hashOf is the SHA-256 of a body, in hexadecimal.
func hashOf(body Body) (string, error) {
	sum := sha256.New()
	if body != nil && body.Len() > 0 {
		r, err := body.Open()
		if err != nil {
			return "", err
		}
		defer r.Close()
		if _, err := io.Copy(sum, r); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Secrets are those of its keys, which no error of b may repeat.
func (b *Backend) Secrets() (all []string) {
	for _, k := range b.pool.keys {
		all = append(all, k.Source.Secrets()...)
	}
	return all
}

// Limits is what b has told that is left of its rate limits for a model; told is
// whether it has told anything that still holds.
func (b *Backend) Limits(now time.Time, model string) (limits upstream.Limits, told bool) {
	return b.pool.limits(now, model)
}
