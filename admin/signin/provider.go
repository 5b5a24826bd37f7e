package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	providerTimeout = 10 * time.Second
	maxAnswer       = 1 << 20 // bytes of one answer of the provider

	// restAfter is how long a provider that cannot be found is left alone.
	restAfter = 2 * time.Second

	maxGroups = 1000
	maxText   = 256 // bytes of a name or a group
)

// provider is what the provider says of itself, asked for once.
type provider struct {
	client *http.Client

	mu     sync.Mutex    // guards what follows; a leaf
	asking chan struct{} // closed when who asks has its answer; nil = nobody asks
	found  *oidc.Provider
	end    string // where a session of the provider ends; "" = it does not say
	err    error  // of the last try, until rest
	rest   time.Time
}

// find returns what the provider says of itself. One asks; the others wait for its
// answer as long as their own requests last.
func (p *provider) find(ctx context.Context, issuer string) (*oidc.Provider, error) {
	for {
		p.mu.Lock()
		switch {
		case p.found != nil || p.err != nil && time.Now().Before(p.rest):
			defer p.mu.Unlock()
			if p.found == nil {
				return nil, p.err
			}
			return p.found, nil
		case p.asking == nil:
			p.asking = make(chan struct{})
			p.mu.Unlock()
			p.ask(ctx, issuer)
			continue
		}
		asking := p.asking
		p.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrProvider, ctx.Err())
		}
	}
}

// known is what find has found; false = nothing yet. It waits for nobody.
func (p *provider) known() (end string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end, p.found != nil
}

// ask asks the provider, and wakes those who wait for its answer.
func (p *provider) ask(ctx context.Context, issuer string) {
	// Not bound to the request: the provider goes on to fetch keys by this context, and
	// others wait for the answer.
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), p.client)
	found, err := oidc.NewProvider(ctx, issuer)
	var more struct {
		End string `json:"end_session_endpoint"`
	}
	end := ""
	if err == nil && found.Claims(&more) == nil && sameScheme(more.End, issuer) {
		end = more.End
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.err, p.rest = fmt.Errorf("%w: %w", ErrProvider, plain(err)), time.Now().Add(restAfter)
	} else {
		p.found, p.end, p.err = found, end, nil
	}
	close(p.asking)
	p.asking = nil
}

// sameScheme reports whether a is a URL that is as safe as b.
func sameScheme(a, b string) bool {
	u, err := url.Parse(a)
	v, err2 := url.Parse(b)
	return err == nil && err2 == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == v.Scheme && u.Scheme == "http")
}

// redeem changes a code for the visit of the person who brought it.
func (d *Door) redeem(ctx context.Context, code string, p *pending) (Visit, error) {
	found, err := d.provider.find(ctx, d.o.Issuer)
	if err != nil {
		return Visit{}, err
	}
	ctx = oidc.ClientContext(ctx, d.provider.client)
	token, err := d.oauth(found).Exchange(ctx, code, oauth2.VerifierOption(p.Verifier))
	if err != nil {
		return Visit{}, fmt.Errorf("signin: the provider does not take the code: %w", plain(err))
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return Visit{}, errors.New("signin: the provider sent no ID token; is openid among the scopes?")
	}
	id, err := found.VerifierContext(ctx, &oidc.Config{ClientID: d.o.ClientID}).Verify(ctx, raw)
	if err != nil {
		return Visit{}, fmt.Errorf("signin: the ID token does not hold: %s", clean(err.Error()))
	}
	if id.Nonce != p.Nonce {
		return Visit{}, errors.New("signin: the ID token is of another sign-in")
	}
	if id.Subject == "" {
		return Visit{}, errors.New("signin: the ID token names nobody")
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			return Visit{}, fmt.Errorf("signin: the access token is not of the ID token: %w", err)
		}
	}
	v := Visit{Subject: clean(id.Subject)}
	claims := map[string]json.RawMessage{}
	if err := id.Claims(&claims); err != nil {
		return Visit{}, errors.New("signin: the ID token has no claims that can be read")
	}
	if claims[d.o.Claim] == nil && found.UserInfoEndpoint() != "" {
		// Some providers keep groups out of the token.
		more, err := d.userInfo(ctx, found, token, id.Subject)
		if err != nil {
			return Visit{}, err
		}
		for name, value := range more {
			if claims[name] == nil {
				claims[name] = value
			}
		}
	}
	v.Name, v.Groups = nameIn(claims), groupsIn(claims[d.o.Claim])
	return v, nil
}

// userInfo asks the provider what it knows of the person besides.
func (d *Door) userInfo(ctx context.Context, found *oidc.Provider, token *oauth2.Token, subject string) (map[string]json.RawMessage, error) {
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, fmt.Errorf("signin: the provider does not say who it is: %w", plain(err))
	}
	if info.Subject != subject { // OpenID Connect Core 5.3.2
		return nil, errors.New("signin: what the provider says is of somebody else")
	}
	claims := map[string]json.RawMessage{}
	if err := info.Claims(&claims); err != nil {
		return nil, errors.New("signin: what the provider says cannot be read")
	}
	return claims, nil
}

// nameIn is what people call the person.
func nameIn(claims map[string]json.RawMessage) string {
	for _, claim := range []string{"email", "preferred_username", "name"} {
		var text string
		if json.Unmarshal(claims[claim], &text) == nil && text != "" {
			return clean(text)
		}
	}
	return ""
}

// groupsIn reads one word, or a list of them.
func groupsIn(claim json.RawMessage) []Group {
	var list []string
	var one string
	if json.Unmarshal(claim, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(claim, &list) != nil {
		return nil
	}
	out := []Group{}
	for _, g := range list[:min(len(list), maxGroups)] {
		if g != "" && len(g) <= maxText {
			out = append(out, GroupOf(g))
		}
	}
	return out
}

// clean is text without what has no place in a line, and not too long.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	for len(text) > maxText {
		text = text[:maxText]
		text = strings.ToValidUTF8(text, "")
	}
	return text
}

// plain is err without what the other side wrote: a body may hold anything.
func plain(err error) error {
	if told := (*oauth2.RetrieveError)(nil); errors.As(err, &told) {
		if told.Response != nil {
			return fmt.Errorf("status %d, %s", told.Response.StatusCode, known(told.ErrorCode))
		}
		return errors.New(known(told.ErrorCode))
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err // without the address, which may hold a secret
	}
	// What follows a colon is what the library quotes.
	words, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "oidc: "), ": ")
	return errors.New(clean(words))
}

// known is an error code of OAuth or OpenID Connect, or a word for all others.
func known(code string) string {
	switch code {
	case "access_denied", "invalid_request", "unauthorized_client", "unsupported_response_type", "invalid_scope", "server_error", "temporarily_unavailable",
		"invalid_client", "invalid_grant", "unsupported_grant_type",
		"interaction_required", "login_required", "account_selection_required", "consent_required":
		return code
	}
	return "an error of its own"
}

// bounded is a transport whose answers end after maxAnswer bytes.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// newClient is one for the provider: it follows nobody elsewhere.
func newClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxConnsPerHost = 8
		own.IdleConnTimeout = 4 * time.Second
		transport = own
	}
	return &http.Client{
		Transport: bounded{transport}, Timeout: providerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
