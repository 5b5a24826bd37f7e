package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/admin/signin"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/clientconn"
)

// role is what whoever shows a token may do: each one all that those before may.
type role uint8

const (
	anybody role = iota
	viewer
	operator
	administrator
)

// roles are the words of the configuration; of the first it has none.
var roles = []string{"nobody", "view", "operate", "admin"}

func (r role) String() string { return roles[r] }

// shower is who shows a token, or has signed in; the zero value is nobody that is
// known.
type shower struct {
	name  string
	role  role
	visit *signin.Visit // nil = a token
}

type showerKey struct{}

// who is the name for the audit log.
func who(r *http.Request) string {
	s, _ := r.Context().Value(showerKey{}).(shower)
	return s.name
}

// byToken finds whose token r carries, as Bearer or as the password of Basic. All
// tokens are compared, so that the time taken tells nothing.
func byToken(a *config.Admin, r *http.Request) shower {
	shown := ""
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		shown = strings.TrimSpace(bearer)
	} else if _, password, ok := r.BasicAuth(); ok {
		shown = password
	}
	var found shower
	got := sha256.Sum256([]byte(shown))
	match := func(token config.Secret, s shower) {
		want := sha256.Sum256([]byte(token.Reveal()))
		if subtle.ConstantTimeCompare(want[:], got[:]) == 1 && token != "" {
			found = s
		}
	}
	match(a.Token, shower{name: "admin", role: administrator})
	for _, t := range a.Tokens {
		match(t.Token, shower{name: t.Name, role: role(max(slices.Index(roles, t.Role), 0))})
	}
	return found
}

// allows answers a call that needs a role unless whoever shows a token has it.
func (p *port) allows(w http.ResponseWriter, r *http.Request, needs role) (*http.Request, bool) {
	a := &p.settings().conf.Admin
	if needs > viewer && a.Token == "" && len(a.Tokens) == 0 && a.OIDC.Issuer == "" {
		fail(w, http.StatusForbidden, "no_admin_token", "calls that change something need a token; configure admin.token, and send it as Authorization: Bearer TOKEN")
		return nil, false
	}
	s := p.identify(r)
	switch {
	case s.role == anybody && s.visit != nil:
		fail(w, http.StatusForbidden, "role", s.name+" has signed in, and is in no group that admin.oidc.roles names")
		return nil, false
	case s.role == anybody && a.OIDC.Issuer != "" && needs == viewer && r.URL.Path == "/" && r.Header.Get("Authorization") == "":
		http.Redirect(w, r, signin.LoginPath, http.StatusSeeOther)
		return nil, false
	case s.role == anybody:
		if h := w.Header(); needs > viewer || a.OIDC.Issuer != "" {
			h.Set("WWW-Authenticate", "Bearer")
		} else {
			h.Set("WWW-Authenticate", `Basic realm="pacer: the password is an admin token", charset="UTF-8"`) // so that a browser asks
		}
		fail(w, http.StatusUnauthorized, "invalid_admin_token", "the admin token is missing or wrong; send Authorization: Bearer TOKEN with the value of admin.token")
		return nil, false
	case s.role < needs:
		fail(w, http.StatusForbidden, "role", "this call needs the role "+needs.String()+", and "+s.name+" has "+s.role.String())
		return nil, false
	}
	clientconn.Known(r.Context())
	return r.WithContext(context.WithValue(r.Context(), showerKey{}, s)), true
}

// mayLook reports whether whoever sends r may look, now.
func (p *port) mayLook(r *http.Request) bool {
	return !p.settings().conf.Admin.Private || p.identify(r).role >= viewer
}

// open are the paths that ask nobody who they are.
var open = []string{"/healthz", signin.LoginPath, signin.CallbackPath, signin.LogoutPath}

// private asks for a token of everybody where the configuration says so. Paths
// that change something ask for one of their own.
func (p *port) private(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.settings().conf.Admin.Private && !slices.Contains(open, r.URL.Path) {
			var ok bool
			if r, ok = p.allows(w, r, viewer); !ok {
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// administered asks for the role of administrators, and, since a browser that knows a
// password sends it for any page, for a call that no other page makes.
func (p *port) administered(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r, ok := p.allows(w, r, administrator); ok {
			sameOrigin(h).ServeHTTP(w, r)
		}
	}
}
