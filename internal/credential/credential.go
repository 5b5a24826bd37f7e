package credential

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Value is what a request carries. One of Secret and AWS is set.
type Value struct {
	Secret string // a key or a token
	Token  bool   // Secret is a token, which goes into Authorization whatever header keys have

	AWS *AWS // keys that requests are signed with; nil = Secret is sent

	Expires time.Time // zero = never
}

// AWS are keys that requests are signed with.
type AWS struct {
	AccessKey, SecretKey string
	SessionToken         string // "" = there is none
}

// Source makes values. It is safe for concurrent use.
type Source interface {
	// Get returns what is good now. It may take as long as ctx lasts.
	Get(ctx context.Context) (Value, error)

	// Refused says that the backend did not take a value. It reports whether the
	// next Get may return another one.
	Refused(Value) bool

	// Secrets are those that no error may repeat: of what was made last, and before.
	Secrets() []string
}

// static is a secret that stays.
type static Value

// Static returns a source of one secret.
func Static(secret string) Source { return static(Value{Secret: secret}) }

// Get implements Source.
func (s static) Get(context.Context) (Value, error) { return Value(s), nil }

// Refused implements Source.
func (s static) Refused(Value) bool { return false }

// Secrets implements Source.
func (s static) Secrets() []string { return secretsOf(Value(s)) }

func secretsOf(v Value) (all []string) {
	if v.Secret != "" {
		all = append(all, v.Secret)
	}
	if v.AWS != nil {
		all = append(all, v.AWS.SecretKey)
		if v.AWS.SessionToken != "" {
			all = append(all, v.AWS.SessionToken)
		}
	}
	return all
}

// Bounds of what is made.
const (
	// secretMost bounds a secret, in bytes: heads of requests have room for 64 KiB.
	secretMost = 16 << 10

	// againAfter is how long a source that failed is left alone, and the least time
	// between two looks at one whose value was refused.
	againAfter = 5 * time.Second

	// early is the share of a value's life that is left when the next one is made,
	// and earlyMost bounds it.
	early     = 0.2
	earlyMost = 2 * time.Minute
)

var (
	errEmpty  = errors.New("is empty")
	errLong   = errors.New("is longer than 16 KiB")
	errBroken = errors.New("holds a line break, a control character or outer blanks, which no HTTP header can carry")
)

// usable says what is wrong with a secret; nil = nothing.
func usable(secret string) error {
	switch {
	case secret == "":
		return errEmpty
	case len(secret) > secretMost:
		return errLong
	case strings.ContainsFunc(secret, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		return errBroken
	}
	return nil
}
