package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/report"
)

// Bounds on the conversation with a gateway.
const (
	askTimeout = 10 * time.Second
	maxAnswer  = 64 << 20 // bytes; 1,000 targets at 512 levels are 40 MiB
)

// DefaultAdmin is the admin port of a gateway whose configuration names none.
const DefaultAdmin = "http://127.0.0.1:9090"

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// adminPort is the admin port of a running gateway.
type adminPort struct {
	base   string // without a slash at its end
	client *http.Client
	token  string // of an admin; "" = none is shown

	// What a user may do otherwise: ask for less when an answer is too large,
	// and ask elsewhere when nobody is there. "" = nothing.
	ask, otherwise string
}

// newAdminPort returns the port at admin, a URL or an address. dial replaces
// the network; nil means TCP.
func newAdminPort(admin string, dial Dial) (*adminPort, error) {
	if !strings.Contains(admin, "://") {
		admin = "http://" + admin
	}
	u, err := url.Parse(admin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("--admin is no address of an admin port; write one such as %s", DefaultAdmin)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dial, DisableKeepAlives: true}
	return &adminPort{
		base: u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/"),
		client: &http.Client{
			Transport: transport, Timeout: askTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// get decodes what the port answers.
func (g *adminPort) get(ctx context.Context, path string, query url.Values, into any) error {
	return g.exchange(ctx, http.MethodGet, path+"?"+query.Encode(), nil, into)
}

// exchange sends question, nil = none, and decodes what the port answers.
func (g *adminPort) exchange(ctx context.Context, method, path string, question, into any) error {
	var body []byte
	var err error
	if question != nil {
		if body, err = json.Marshal(question); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, g.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if g.token != "" {
		request.Header.Set("Authorization", "Bearer "+g.token)
	}
	if question != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := g.client.Do(request)
	if err != nil {
		return g.absent(ctx, err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return g.absent(ctx, err)
	case len(body) > maxAnswer:
		return fmt.Errorf("%s%s: the answer is larger than %d MiB; ask for %s", g.base, path, maxAnswer>>20, g.ask)
	}
	if response.StatusCode == http.StatusOK && json.Unmarshal(body, into) == nil {
		return nil
	}
	var refusal api.Refusal
	path, _, _ = strings.Cut(path, "?")
	why := "it has no " + path
	if json.Unmarshal(body, &refusal) == nil && refusal.Error.Message != "" {
		why = report.Harmless(refusal.Error.Message)
	}
	if code := refusal.Error.Code; code == "model_not_found" || code == "invalid_body" || g.token != "" && code != "" && code != "not_found" {
		return fmt.Errorf("%.500s", why)
	}
	return fmt.Errorf("%s answers %s, but not as the admin port of a gateway does (%.200s); name that port with --admin http://HOST:PORT", g.base, report.Harmless(response.Status), why)
}

// absent says that nobody is there, and what to do.
func (g *adminPort) absent(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	cause := err
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		cause = wrapped.Err
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		cause = fmt.Errorf("no answer within %v", askTimeout)
	}
	either, or := " or", ""
	if g.otherwise != "" {
		either, or = ",", g.otherwise
	}
	return fmt.Errorf("no gateway at %s: %w; start one with pacer serve%s name its admin port with --admin http://HOST:PORT%s", g.base, cause, either, or)
}
