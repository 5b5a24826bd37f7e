package config

import (
	"cmp"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/pacer-dev/pacer/internal/hostname"
)

// Store says where curves and load are shared.
type Store struct {
	Memory   bool     // no Redis: the fields below are empty, but for Prefix
	Addrs    []string // host:port; several without a Master are a Cluster
	Master   string   // name of the master that Sentinels at Addrs watch; "" = no Sentinel
	DB       int
	Prefix   string // every key starts with it
	Username string // "" = the default user
	Password Secret // "" = none
	Sentinel Login  // of the Sentinels themselves
	TLS      bool
	CAFile   string // with TLS: PEM of authorities trusted beside the system's; "" = the system's alone
}

// Login is what a Sentinel is asked with.
type Login struct {
	Username string // "" = the default user
	Password Secret // "" = none
}

// store reads memory, a redis:// URL, or the fields of a Redis.
func (r *reader) store(v value) {
	var s Store
	var ok bool
	if isMapping(v) {
		s, ok = r.storeFields(v)
	} else {
		s, ok = r.storeURL(v)
	}
	if ok {
		r.cfg.Store = s
	}
}

func (r *reader) storeURL(v value) (Store, bool) {
	s := defaultStore()
	t, ok := r.scalar(v, `memory, a redis:// URL, or { addrs: ["host:6379"], … }`)
	if !ok || t.text == "memory" {
		return s, ok
	}
	// The text may hold a password: no message shows it, nor the error of
	// url.Parse, which repeats it.
	u, err := url.Parse(t.text)
	switch {
	case err != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		r.problem(v.place(), "the store cannot be read as a URL; write redis://host:6379/0, and a password with special characters as { addrs: [ \"host:6379\" ], password: … }")
		return s, false
	case u.Scheme != "redis" && u.Scheme != "rediss":
		r.problem(v.place(), "unknown store; write memory, redis://host:6379/0, or rediss://host:6379/0 for TLS")
		return s, false
	}
	port := cmp.Or(u.Port(), "6379")
	db, err := strconv.ParseUint("0"+strings.Trim(u.Path, "/"), 10, 16)
	if err != nil || !hostname.Valid(u.Hostname()) || !hostname.ValidPort(port) {
		r.problem(v.place(), "the store's URL has no valid host, port or database; write redis://host:6379/0")
		return s, false
	}
	s.Memory, s.TLS = false, u.Scheme == "rediss"
	s.Addrs, s.DB = []string{net.JoinHostPort(u.Hostname(), port)}, int(db)
	s.Username = u.User.Username()
	password, _ := u.User.Password()
	s.Password = Secret(password)
	return s, true
}

func (r *reader) storeFields(v value) (Store, bool) {
	s := defaultStore()
	before := len(r.problems)
	o, _ := r.object(v, fields{
		"addrs":    func(v value) { s.Addrs = r.addresses(v) },
		"master":   r.textInto(&s.Master),
		"db":       r.wholeInto(&s.DB, 0),
		"prefix":   func(v value) { r.prefix(v, &s.Prefix) },
		"username": r.textInto(&s.Username),
		"password": r.secretInto(&s.Password),
		"sentinel": func(v value) { r.sentinel(v, &s) },
		"tls":      func(v value) { r.storeTLS(v, &s) },
	})
	o.require("addrs", `[ "redis:6379" ]`)
	if len(r.problems) > before {
		return s, false
	}
	if o.has("sentinel") && s.Master == "" {
		r.problem(o.at("sentinel"), "sentinel has no effect without master; name the master that the Sentinels watch, or leave sentinel out")
	}
	if len(s.Addrs) > 1 && s.Master == "" && s.DB != 0 {
		r.problem(o.at("db"), "a Cluster has no database but 0; leave db out, or name the Sentinels' master")
	}
	s.Memory = false
	return s, true
}

func (r *reader) addresses(v value) []string {
	list, ok := r.list(v, `a list such as [ "redis:6379" ]`)
	if ok && len(list) == 0 {
		r.problem(v.place(), `addrs is empty; write one address for a single Redis, several for Sentinel or a Cluster, or store: memory`)
	}
	var addrs []string
	for _, v := range list {
		s, ok := r.text(v)
		if !ok {
			continue
		}
		if host, port, err := net.SplitHostPort(s.text); err != nil || !hostname.Valid(host) || !hostname.ValidPort(port) {
			r.problem(v.place(), "%s is no address; write host:port, such as redis:6379", v.name)
			continue
		}
		addrs = append(addrs, s.text)
	}
	return addrs
}

// prefix reads what every key starts with. Braces would move the hash tags
// that keep the keys of one backend on one node of a Cluster.
func (r *reader) prefix(v value, to *string) {
	s, ok := r.text(v)
	if !ok {
		return
	}
	if s.text == "" || len(s.text) > 64 || strings.ContainsFunc(s.text, func(c rune) bool { return !hostname.NameRune(c) && c != ':' }) {
		r.problem(v.place(), "prefix must be 1 to 64 letters, digits or . _ - :; write one such as pacer")
		return
	}
	*to = s.text
}

// sentinel reads with what the Sentinels are asked.
func (r *reader) sentinel(v value, to *Store) {
	r.object(v, fields{"username": r.textInto(&to.Sentinel.Username), "password": r.secretInto(&to.Sentinel.Password)})
}

// storeTLS reads true, false, or a mapping; an empty one is TLS as it comes.
func (r *reader) storeTLS(v value, to *Store) {
	if isMapping(v) {
		_, to.TLS = r.object(v, fields{"ca_file": func(v value) { r.caFile(v, &to.CAFile) }})
		return
	}
	to.TLS, _ = r.truth(v)
}
