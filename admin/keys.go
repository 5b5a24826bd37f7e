package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/hostname"
	"github.com/pacer-dev/pacer/internal/spelling"
	"github.com/pacer-dev/pacer/keys"
)

const (
	// maxGrace is how long the secret before a rotation is taken at most.
	maxGrace = 30 * 24 * time.Hour

	maxEntries = 1000
)

// serveKeys answers GET /api/v1/keys.
func (p *port) serveKeys(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	answer := api.Keys{Keys: []api.Key{}}
	issued := map[string]bool{}
	if p.o.Keys != nil {
		for _, k := range p.o.Keys.List() {
			issued[k.Spec.Name] = true
			answer.Keys = append(answer.Keys, keyOf(now, k))
		}
	}
	for _, k := range p.o.Config().Keys {
		if !k.Issued {
			answer.Keys = append(answer.Keys, fileKey(now, k))
		}
	}
	slices.SortFunc(answer.Keys, func(a, b api.Key) int { return strings.Compare(a.Name, b.Name) })
	send(w, http.StatusOK, answer)
}

func keyOf(now time.Time, k keys.Key) api.Key {
	out := api.Key{KeySpec: k.Spec, Source: "store", State: "active", Hint: k.Hint, By: k.By, Created: &k.Created}
	switch {
	case !k.Revoked.IsZero():
		out.State, out.Revoked = "revoked", &k.Revoked
	case k.Spec.Expires != nil && !now.Before(*k.Spec.Expires):
		out.State = "expired"
	}
	return out
}

func fileKey(now time.Time, k config.Key) api.Key {
	out := api.Key{KeySpec: api.KeySpec{Name: k.Name, Routes: k.Routes, Team: k.Team}, Source: "file", State: "active"}
	if !k.Expires.IsZero() {
		at := k.Expires.UTC()
		if out.Expires = &at; !now.Before(at) {
			out.State = "expired"
		}
	}
	if l := k.Limits; l != (config.KeyLimits{}) {
		out.Limits = &api.KeyLimits{RequestsPerMinute: l.RequestsPerMinute, TokensPerMinute: l.TokensPerMinute, Concurrency: l.Concurrency}
	}
	if b := k.Budget; b.USD > 0 {
		then := "refuse"
		switch {
		case b.Then.Warn:
			then = "warn"
		case b.Then.Spill != "":
			then = "spill"
		}
		out.Budget = &api.KeyBudget{USD: b.USD, Per: b.Per, Warn: b.Warn, Then: then, Spill: b.Then.Spill}
	}
	return out
}

// issuing answers a change where no key can be handed out.
func (p *port) issuing(w http.ResponseWriter) bool {
	switch {
	case p.o.Keys == nil:
		fail(w, http.StatusConflict, "no_store", "keys that are handed out have to be kept; configure store: with a Redis, or state_dir:")
	case !slices.ContainsFunc(p.o.Config().Keys, func(k config.Key) bool { return !k.Issued }):
		fail(w, http.StatusConflict, "open_port", "the data port is open to everybody; configure one key in keys: first, so that it stays closed while the store cannot be read")
	default:
		return true
	}
	return false
}

// serveNewKey answers POST /api/v1/keys.
func (p *port) serveNewKey(w http.ResponseWriter, r *http.Request) {
	if !p.issuing(w) {
		return
	}
	var spec api.KeySpec
	if !questionOf(w, r, &spec, `write {"name": "…"}, and if you like "routes", "team", "expires", "limits" and "budget"`) {
		return
	}
	now := time.Now()
	if err := p.checkSpec(now, &spec); err != nil {
		fail(w, http.StatusBadRequest, "invalid_body", err.Error())
		return
	}
	k, secret, err := p.o.Keys.Create(r.Context(), now, who(r), spec)
	p.answerKey(w, k, secret, err)
}

// serveRotate answers POST /api/v1/keys/{name}/rotate.
func (p *port) serveRotate(w http.ResponseWriter, r *http.Request) {
	if !p.issuing(w) {
		return
	}
	var q api.Rotation
	body, came := bodyOf(w, r)
	if !came || len(body) > 0 && !readQuestion(w, body, &q, `write {"grace_s": 3600}, or nothing`) {
		return
	}
	if !(q.GraceS >= 0 && q.GraceS <= maxGrace.Seconds()) {
		fail(w, http.StatusBadRequest, "invalid_body", fmt.Sprintf("grace_s: write seconds from 0 to %.0f", maxGrace.Seconds()))
		return
	}
	k, secret, err := p.o.Keys.Rotate(r.Context(), time.Now(), who(r), keyName(r), time.Duration(q.GraceS*float64(time.Second)))
	p.answerKey(w, k, secret, err)
}

// serveRevoke answers DELETE /api/v1/keys/{name}.
func (p *port) serveRevoke(w http.ResponseWriter, r *http.Request) {
	if !p.issuing(w) {
		return
	}
	k, err := p.o.Keys.Revoke(r.Context(), time.Now(), who(r), keyName(r))
	if err == nil {
		p.keysChanged()
		send(w, http.StatusOK, keyOf(time.Now(), k))
		return
	}
	p.answerKey(w, k, "", err)
}

// keyName is the name in the path, which chi leaves escaped where it was.
func keyName(r *http.Request) string {
	name := chi.URLParam(r, "name")
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

func (p *port) keysChanged() {
	if p.o.KeysChanged != nil {
		p.o.KeysChanged()
	}
}

// answerKey answers a change that returned these.
func (p *port) answerKey(w http.ResponseWriter, k keys.Key, secret string, err error) {
	switch {
	case err == nil:
		p.keysChanged()
		send(w, http.StatusOK, api.NewKey{Key: keyOf(time.Now(), k), Secret: secret})
	case errors.Is(err, keys.ErrNotFound):
		var names []string
		for _, k := range p.o.Keys.List() {
			names = append(names, k.Spec.Name)
		}
		fail(w, http.StatusNotFound, "key_not_found", "no key of that name was handed out; "+spelling.Meant("", names))
	case errors.Is(err, keys.ErrExists):
		fail(w, http.StatusConflict, "key_exists", "there is a key of that name; rotate it, or revoke it first")
	case errors.Is(err, keys.ErrRevoked):
		fail(w, http.StatusConflict, "key_revoked", "the key is revoked")
	case errors.Is(err, keys.ErrTooMany):
		fail(w, http.StatusConflict, "too_many_keys", fmt.Sprintf("there are %d keys, which is as many as there may be", keys.Most))
	case errors.Is(err, keys.ErrConflict):
		fail(w, http.StatusConflict, "conflict", "somebody else has changed the key at the same time; look, and try again")
	default:
		fail(w, http.StatusServiceUnavailable, "store_out", "the store that keeps the keys does not take the change; nothing was changed that is known of. Look at the keys, and try again")
	}
}

// checkSpec refuses what the configuration would refuse, and fills in defaults.
func (p *port) checkSpec(now time.Time, s *api.KeySpec) error {
	c := p.o.Config()
	isName := func(text string, more string) bool {
		return text != "" && len(text) <= 64 && !strings.ContainsFunc(text, func(r rune) bool { return !hostname.NameRune(r) && !strings.ContainsRune(more, r) })
	}
	known := func(route string) bool {
		return slices.ContainsFunc(c.Routes, func(r config.Route) bool { return slices.Contains(r.Models, route) })
	}
	switch {
	case !isName(s.Name, ":@") || strings.Trim(s.Name, ".") == "":
		return errors.New("name: write 1 to 64 letters, digits or . _ - : @")
	case slices.ContainsFunc(c.Keys, func(k config.Key) bool { return k.Name == s.Name && !k.Issued }):
		return errors.New("name: the configuration has a key of that name; write another")
	case s.Team != "" && !isName(s.Team, ":@/"):
		return errors.New("team: write 1 to 64 letters, digits or . _ - : @ /")
	case s.Expires != nil && !s.Expires.After(now):
		return errors.New("expires: write a time that is to come, such as 2027-01-31T00:00:00Z")
	case len(s.Routes) > 1000:
		return errors.New("routes: write at most 1,000")
	}
	for _, route := range s.Routes {
		if route != "*" && !known(route) {
			return fmt.Errorf("routes: there is no route %.80q; %s", route, spelling.Meant(route, p.o.Config().RouteNames()))
		}
	}
	if l := s.Limits; l != nil && (l.RequestsPerMinute < 0 || l.TokensPerMinute < 0 || l.Concurrency < 0) {
		return errors.New("limits: write numbers from 0, which is no limit")
	}
	b := s.Budget
	if b == nil {
		return nil
	}
	b.Per, b.Warn, b.Then = cmp.Or(b.Per, "month"), cmp.Or(b.Warn, 0.8), cmp.Or(b.Then, "refuse")
	switch {
	case !(b.USD > 0 && b.USD <= 1_000_000):
		return errors.New("budget.usd: write an amount above 0, up to a million")
	case !slices.Contains([]string{"day", "week", "month"}, b.Per):
		return errors.New("budget.per: write day, week or month")
	case !(b.Warn > 0 && b.Warn <= 1):
		return errors.New("budget.warn: write a share from 0 to 1")
	case !slices.Contains([]string{"refuse", "warn", "spill"}, b.Then):
		return errors.New("budget.then: write refuse, warn or spill")
	case (b.Then == "spill") != (b.Spill != "") || b.Spill != "" && !known(b.Spill):
		return errors.New("budget.spill: write a route with then: spill, and none else")
	}
	return nil
}

// serveAudit answers GET /api/v1/audit.
func (p *port) serveAudit(w http.ResponseWriter, r *http.Request) {
	answer := api.Audit{Entries: []api.AuditEntry{}}
	if p.o.Keys != nil {
		entries, err := p.o.Keys.Entries(r.Context(), maxEntries)
		if err != nil {
			fail(w, http.StatusServiceUnavailable, "store_out", "the store that keeps the audit log does not answer")
			return
		}
		answer.Entries = append(answer.Entries, entries...)
	}
	send(w, http.StatusOK, answer)
}

// note has the audit log say what was done. It does not wait.
func (p *port) note(r *http.Request, did, to string) {
	p.noteBy(context.WithoutCancel(r.Context()), who(r), did, to)
}

func (p *port) noteBy(ctx context.Context, who, did, to string) {
	if p.o.Note != nil {
		p.o.Note(ctx, who, did, to)
	}
}
