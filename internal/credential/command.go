package credential

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// CommandOptions say how a command makes secrets.
type CommandOptions struct {
	Args    []string      // the program and its arguments; no shell is between. Required
	Timeout time.Duration // how long it may take. Default: 10s
	Life    time.Duration // of a secret that comes without a time. Default: 5m
}

const (
	defaultTimeout = 10 * time.Second
	defaultLife    = 5 * time.Minute

	// outputMost bounds what is read of a command, in bytes.
	outputMost = 64 << 10

	// killPatience is how long what a command has started may hold its output open
	// after it ended.
	killPatience = time.Second
)

var (
	errMuch   = errors.New("prints more than 64 KiB")
	errJSON   = errors.New("prints JSON that has no token, access_token or AWS keys")
	errExpiry = errors.New("prints an expiry that is no time")
	errSlow   = errors.New("has not ended in time")
)

// Command returns a source of what a command prints: a secret alone, or JSON with
// a token and when it expires. Its output is shown nowhere.
func Command(o CommandOptions) Source {
	o.Timeout, o.Life = cmp.Or(o.Timeout, defaultTimeout), cmp.Or(o.Life, defaultLife)
	return newKept("the command "+o.Args[0], func(ctx context.Context) (Value, error) { return o.run(ctx) })
}

// run runs the command once. That a client has gone does not end it: the next
// request would have to wait as long.
func (o CommandOptions) run(ctx context.Context) (Value, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Timeout)
	defer cancel()
	out := limited{cancel: cancel}
	c := exec.CommandContext(ctx, o.Args[0], o.Args[1:]...)
	c.Stdout = &out // Stdin and Stderr are the null device
	c.WaitDelay = killPatience
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case out.over:
		return Value{}, errMuch
	case ctx.Err() != nil:
		return Value{}, fmt.Errorf("%w (%v)", errSlow, o.Timeout)
	case errors.As(err, &exit):
		return Value{}, fmt.Errorf("ends with %s", exit.ProcessState)
	case errors.Is(err, exec.ErrWaitDelay):
		return Value{}, errors.New("ends and leaves its output open")
	case err != nil: // it could not be started: the words are the system's
		return Value{}, err
	}
	return readOutput(time.Now(), out.text.Bytes(), o.Life)
}

// limited keeps at most outputMost bytes, and ends the command at more.
type limited struct {
	text   bytes.Buffer // not embedded: its ReadFrom would know no bound
	cancel context.CancelFunc
	over   bool
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.text.Len()+len(p) > outputMost {
		l.over = true
		l.cancel()
		return 0, io.ErrShortBuffer
	}
	return l.text.Write(p)
}

// output is JSON as the tools of clouds print it: AWS's credential_process,
// Kubernetes' ExecCredential, and what token endpoints answer.
type output struct {
	Token        string          `json:"token"`
	AccessToken  string          `json:"access_token"`
	AccessToken2 string          `json:"accessToken"`
	ExpiresIn    json.Number     `json:"expires_in"`
	ExpiresAt    string          `json:"expires_at"`
	Expiry       string          `json:"expiry"`
	Expiration   string          `json:"Expiration"`
	ExpiresOn    json.RawMessage `json:"expires_on"` // of az: seconds since 1970
	AccessKeyID  string          `json:"AccessKeyId"`
	SecretKey    string          `json:"SecretAccessKey"`
	SessionToken string          `json:"SessionToken"`
	Status       struct {
		Token   string `json:"token"`
		Expires string `json:"expirationTimestamp"`
	} `json:"status"`
}

// readOutput reads what a command printed.
func readOutput(now time.Time, text []byte, life time.Duration) (Value, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		secret := string(text)
		return Value{Secret: secret, Expires: now.Add(life)}, usable(secret)
	}
	var o output
	if json.Unmarshal(text, &o) != nil {
		return Value{}, errJSON // the error would repeat what was printed
	}
	expires, err := o.expires(now, life)
	if err != nil {
		return Value{}, err
	}
	if o.AccessKeyID != "" && o.SecretKey != "" {
		if err := cmp.Or(usable(o.AccessKeyID), usable(o.SecretKey)); err != nil {
			return Value{}, err
		}
		return Value{AWS: &AWS{o.AccessKeyID, o.SecretKey, o.SessionToken}, Expires: expires}, nil
	}
	if token := cmp.Or(o.Token, o.AccessToken, o.AccessToken2, o.Status.Token); token != "" {
		return Value{Secret: token, Token: true, Expires: expires}, usable(token)
	}
	return Value{}, errJSON
}

// expires is when what was printed expires.
func (o *output) expires(now time.Time, life time.Duration) (time.Time, error) {
	if text := cmp.Or(o.ExpiresAt, o.Expiry, o.Expiration, o.Status.Expires); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return time.Time{}, errExpiry
		}
		return at, nil
	}
	if text := strings.Trim(string(o.ExpiresOn), `"`); text != "" && text != "null" {
		s, err := json.Number(text).Int64()
		if err != nil {
			return time.Time{}, errExpiry
		}
		return time.Unix(s, 0), nil
	}
	if o.ExpiresIn != "" {
		s, err := o.ExpiresIn.Float64()
		if err != nil || !(s >= 0 && s < 1e9) {
			return time.Time{}, errExpiry
		}
		return now.Add(time.Duration(s * float64(time.Second))), nil
	}
	return now.Add(life), nil
}
