package config

import (
	"net/url"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/hostname"
)

// OIDC lets people into the admin port by an OpenID Connect provider; Issuer "" =
// none.
type OIDC struct {
	// the provider, as its tokens name it: `/.well-known/openid-configuration` lies below it
	Issuer string `yaml:"issuer" is:"issuer" required:"https://login.example.com"`
	// what the provider knows Pacer by
	ClientID string `yaml:"client_id" required:"pacer"`
	// the secret that goes with it
	ClientSecret Secret `yaml:"client_secret" unset:"none: a public client, by PKCE alone"`
	// `scheme://host[:port]` under which browsers reach this port. The provider has to allow `/oidc/callback` below it
	URL string `yaml:"url" is:"site" required:"https://pacer.example.com"`
	// what is asked for beside `openid`
	Scopes []string `yaml:"scopes" is:"scope" want:"a list of scopes" unset:"profile, email"`
	// the claim that names a person's groups: one word, or a list
	Claim string `yaml:"claim" is:"scope" default:"groups"`
	// which groups have which role; whoever is in none has no role
	Roles OIDCRoles `yaml:"roles" required:"{ view: [ staff ], admin: [ platform ] }"`
	// how long somebody stays signed in
	Session time.Duration `yaml:"session" above:"0" default:"8h"`
}

// OIDCRoles are the groups that have each role; one that several have counts for the
// highest.
type OIDCRoles struct {
	// groups that may look
	View []string `yaml:"view" want:"a list of groups" unset:"none"`
	// groups that may drain and resume backends too
	Operate []string `yaml:"operate" want:"a list of groups" unset:"none"`
	// groups that may hand out keys and read the audit log too
	Admin []string `yaml:"admin" want:"a list of groups" unset:"none"`
}

const maxOIDCSession = 7 * 24 * time.Hour

func (c *OIDC) check(r *reader, o object) {
	if o.fine["client_id"] && c.ClientID == "" {
		r.problem(o.at("client_id"), "client_id is empty; write what the provider knows Pacer by")
	}
	if o.fine["session"] && c.Session > maxOIDCSession {
		r.problem(o.at("session"), "session is longer than a week; write 168h or less")
	}
	if o.fine["roles"] && len(c.Roles.View)+len(c.Roles.Operate)+len(c.Roles.Admin) == 0 {
		r.problem(o.at("roles"), "roles names no group, so nobody could get in; write such as { view: [ staff ], admin: [ platform ] }")
	}
	if !o.has("scopes") {
		c.Scopes = []string{"profile", "email"}
	}
}

// check refuses a group that nobody could have.
func (g *OIDCRoles) check(r *reader, o object) {
	for field, groups := range map[string][]string{"view": g.View, "operate": g.Operate, "admin": g.Admin} {
		for _, name := range groups {
			if name == "" && o.fine[field] {
				r.problem(o.at(field), "%s has a group without a name; leave it out", field)
				break
			}
		}
	}
}

// safeURL reads a URL without a password, a query or a fragment. Only on this
// machine may it do without TLS.
func (r *reader) safeURL(v value, path bool) (string, bool) {
	s, ok := r.text(v)
	if !ok {
		return "", false
	}
	u, err := url.Parse(s.text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		r.problem(v.place(), "%s is no URL; write one such as https://login.example.com", v.name)
	case !path && strings.Trim(u.Path, "/") != "":
		r.problem(v.place(), "%s has a path; write scheme://host[:port] alone, such as https://pacer.example.com", v.name)
	case u.Scheme == "http" && !hostname.Local(hostname.Of(u.Host)):
		r.problem(v.place(), "%s does without TLS, and who signs in could be read along; write https://", v.name)
	default:
		return s.text, true
	}
	return "", false
}

func (r *reader) issuer(v value, to *string) {
	if text, ok := r.safeURL(v, true); ok {
		*to = text
	}
}

func (r *reader) site(v value, to *string) {
	if text, ok := r.safeURL(v, false); ok {
		*to = strings.ToLower(strings.TrimRight(text, "/"))
	}
}
