package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"sync"

	"github.com/pacer-dev/pacer/admin/signin"
	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
)

// doors keeps the door of the configuration in force. One that is configured
// otherwise is another one, and knows nobody yet.
type doors struct {
	mu   sync.Mutex // a leaf
	door *signin.Door
}

// of returns the door that c describes; nil = nobody can sign in.
func (d *doors) of(c *config.OIDC, transport http.RoundTripper) *signin.Door {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.Issuer == "" {
		d.door = nil
		return nil
	}
	o := signin.Options{
		Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret.Reveal(), URL: c.URL,
		Scopes: c.Scopes, Claim: c.Claim, Session: c.Session, Transport: transport,
	}
	if d.door == nil || !reflect.DeepEqual(d.door.Options(), &o) {
		d.door = signin.New(o)
	}
	return d.door
}

func (p *port) door() *signin.Door {
	return p.doors.of(&p.settings().conf.Admin.OIDC, p.o.Provider)
}

// visitor is somebody who has signed in, with the highest role of their groups.
func visitor(c *config.OIDC, v *signin.Visit) shower {
	s := shower{name: "oidc:" + v.Subject, visit: v}
	if v.Name != "" {
		s.name += " " + v.Name
	}
	switch {
	case v.In(c.Roles.Admin):
		s.role = administrator
	case v.In(c.Roles.Operate):
		s.role = operator
	case v.In(c.Roles.View):
		s.role = viewer
	}
	return s
}

// identify finds who sends r: by a token, or else by a session.
func (p *port) identify(r *http.Request) shower {
	a := &p.settings().conf.Admin
	if r.Header.Get("Authorization") != "" {
		return byToken(a, r)
	}
	if door := p.door(); door != nil {
		if v, ok := door.Visit(r); ok {
			return visitor(&a.OIDC, &v)
		}
	}
	return byToken(a, r)
}

// byDoor serves what is there only while people can sign in.
func (p *port) byDoor(serve func(*signin.Door, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if door := p.door(); door != nil {
			serve(door, w, r)
			return
		}
		notFound(w, r)
	}
}

// serveLogin answers GET /oidc/login.
func (p *port) serveLogin(door *signin.Door, w http.ResponseWriter, r *http.Request) {
	if err := door.Login(w, r); err != nil {
		p.refuseLogin(w, err)
	}
}

// serveCallback answers GET /oidc/callback.
func (p *port) serveCallback(door *signin.Door, w http.ResponseWriter, r *http.Request) {
	v, err := door.Callback(w, r)
	if err != nil {
		p.refuseLogin(w, err)
		return
	}
	s := visitor(&p.settings().conf.Admin.OIDC, &v)
	p.noteBy(context.WithoutCancel(r.Context()), s.name, "session.open", s.role.String())
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// serveLogout answers POST /oidc/logout.
func (p *port) serveLogout(door *signin.Door, w http.ResponseWriter, r *http.Request) {
	if s := p.identify(r); s.visit != nil {
		p.noteBy(context.WithoutCancel(r.Context()), s.name, "session.end", s.role.String())
	}
	send(w, http.StatusOK, api.SignedOut{Next: door.Logout(w, r)})
}

// refuseLogin tells a person that signing in came to nothing, and the log why.
func (p *port) refuseLogin(w http.ResponseWriter, err error) {
	status, words := http.StatusForbidden, "signing in came to nothing; the log of the gateway says why"
	switch {
	case errors.Is(err, signin.ErrStale):
		status, words = http.StatusBadRequest, "this sign-in was not begun in this browser, or too long ago; begin again at "+signin.LoginPath
	case errors.Is(err, signin.ErrBusy), errors.Is(err, signin.ErrProvider):
		status, words = http.StatusServiceUnavailable, "nobody can sign in at the moment; try again"
	}
	if p.o.Log != nil && !errors.Is(err, signin.ErrStale) {
		p.o.Log.Warn("somebody could not sign in", "error", err)
	}
	fail(w, status, "sign_in", words)
}

// serveSession answers GET /api/v1/session.
func (p *port) serveSession(w http.ResponseWriter, r *http.Request) {
	answer := api.Session{}
	if p.door() != nil {
		answer.SignIn = signin.LoginPath
	}
	if s := p.identify(r); s.role != anybody || s.visit != nil {
		answer.Name = s.name
		if s.role != anybody {
			answer.Role = s.role.String()
		}
		if s.visit != nil {
			ends := s.visit.Ends.UTC()
			answer.SignedIn, answer.Ends = true, &ends
		}
	}
	send(w, http.StatusOK, answer)
}

// publicHost is the host under which browsers reach the port behind a proxy; "" =
// none is configured.
func (p *port) publicHost() string {
	u, err := url.Parse(p.settings().conf.Admin.OIDC.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
