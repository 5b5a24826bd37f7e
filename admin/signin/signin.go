package signin

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Paths of a Door on the port that it belongs to.
const (
	LoginPath    = "/oidc/login"
	CallbackPath = "/oidc/callback"
	LogoutPath   = "/oidc/logout"
)

const (
	// loginWithin is how long a person may take at the provider.
	loginWithin = 10 * time.Minute

	// maxRedeeming is how many codes are taken to the provider at once.
	maxRedeeming = 8
)

// Options configures a Door. All fields are required unless said.
type Options struct {
	Issuer       string // of the provider, as its tokens have it
	ClientID     string
	ClientSecret string        // "" = a public client, which PKCE alone protects
	URL          string        // scheme://host[:port] under which browsers reach the port
	Scopes       []string      // beside openid
	Claim        string        // that names the groups of a person
	Session      time.Duration // how long one lasts

	Transport http.RoundTripper // to the provider; nil = the network, by HTTPS_PROXY and friends
}

// Door lets people in.
type Door struct {
	o         Options
	provider  provider
	seal      seal
	sessions  sessions
	redeeming chan struct{}
}

// New returns a Door. It asks nobody yet.
func New(o Options) *Door {
	return &Door{o: o, provider: provider{client: newClient(o.Transport)}, seal: newSeal(), redeeming: make(chan struct{}, maxRedeeming)}
}

// Options are those that d was made with.
func (d *Door) Options() *Options { return &d.o }

// Visit returns who sends r, if somebody who has signed in does.
func (d *Door) Visit(r *http.Request) (Visit, bool) {
	c, err := r.Cookie(d.cookieName("session"))
	if err != nil {
		return Visit{}, false
	}
	return d.sessions.find(time.Now(), c.Value)
}

// Login sends a browser to the provider.
func (d *Door) Login(w http.ResponseWriter, r *http.Request) error {
	found, err := d.provider.find(r.Context(), d.o.Issuer)
	if err != nil {
		return err
	}
	p := pending{State: random(), Nonce: random(), Verifier: oauth2.GenerateVerifier(), Until: time.Now().Add(loginWithin)}
	d.set(w, "login", d.seal.close(p), loginWithin)
	to := d.oauth(found).AuthCodeURL(p.State, oidc.Nonce(p.Nonce), oauth2.S256ChallengeOption(p.Verifier))
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// ErrBusy is that too many sign in at once; ErrStale that the sign-in that comes
// back was begun by another browser, by another process, or too long ago; and
// ErrProvider that the provider cannot be found.
var (
	ErrBusy     = errors.New("signin: too many sign in at once")
	ErrProvider = errors.New("signin: the provider cannot be found")
	ErrStale    = errors.New("signin: the sign-in was not begun in this browser, or too long ago")
)

// Callback takes a browser back that the provider has sent, and returns who it is.
// With an error nobody has signed in, and nothing was written but cookies.
func (d *Door) Callback(w http.ResponseWriter, r *http.Request) (Visit, error) {
	p, err := d.begun(r)
	d.set(w, "login", "", -1)
	if err != nil {
		return Visit{}, err
	}
	q := r.URL.Query()
	if iss := q.Get("iss"); iss != "" && iss != d.o.Issuer { // RFC 9207
		return Visit{}, errors.New("signin: the answer is of another provider")
	}
	if told := q.Get("error"); told != "" {
		return Visit{}, fmt.Errorf("signin: the provider says %s", known(told))
	}
	select {
	case d.redeeming <- struct{}{}:
		defer func() { <-d.redeeming }()
	default:
		return Visit{}, ErrBusy
	}
	ctx, cancel := context.WithTimeout(r.Context(), providerTimeout)
	defer cancel()
	v, err := d.redeem(ctx, q.Get("code"), &p)
	if err != nil {
		return Visit{}, err
	}
	v.Began = time.Now()
	v.Ends = v.Began.Add(d.o.Session)
	if c, err := r.Cookie(d.cookieName("session")); err == nil {
		d.sessions.end(c.Value) // a new one for whoever signs in again
	}
	d.set(w, "session", d.sessions.begin(v), d.o.Session)
	return v, nil
}

// begun reads the sign-in that r comes back from.
func (d *Door) begun(r *http.Request) (pending, error) {
	c, err := r.Cookie(d.cookieName("login"))
	if err != nil {
		return pending{}, ErrStale
	}
	p, err := d.seal.open(c.Value)
	state := r.URL.Query().Get("state")
	if err != nil || !time.Now().Before(p.Until) || subtle.ConstantTimeCompare([]byte(state), []byte(p.State)) != 1 {
		return pending{}, ErrStale
	}
	return p, nil
}

// Logout ends the session of r, and returns where the provider ends its own; "" =
// it does not say.
func (d *Door) Logout(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(d.cookieName("session")); err == nil {
		d.sessions.end(c.Value)
	}
	d.set(w, "session", "", -1)
	end, ok := d.provider.known() // who has signed in has found it
	if !ok || end == "" {
		return ""
	}
	u, err := url.Parse(end)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("client_id", d.o.ClientID)
	u.RawQuery = q.Encode()
	return u.String()
}

func (d *Door) oauth(found *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: d.o.ClientID, ClientSecret: d.o.ClientSecret, Endpoint: found.Endpoint(),
		RedirectURL: d.o.URL + CallbackPath, Scopes: append([]string{oidc.ScopeOpenID}, d.o.Scopes...),
	}
}

// secure reports whether browsers come by TLS.
func (d *Door) secure() bool { return strings.HasPrefix(d.o.URL, "https://") }

// cookieName is that of a cookie. With TLS no other name of the domain can set it.
func (d *Door) cookieName(what string) string {
	if d.secure() {
		return "__Host-pacer-" + what
	}
	return "pacer-" + what
}

// set sets a cookie for so long; below 0 = it goes. Lax, for the browser comes back
// from another site.
func (d *Door) set(w http.ResponseWriter, what, value string, age time.Duration) {
	seconds := int(age.Seconds())
	if age < 0 {
		seconds = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: d.cookieName(what), Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: d.secure(), SameSite: http.SameSiteLaxMode,
	})
}
