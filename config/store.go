package config

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/internal/hostname"
)

// Store says where curves and load are shared.
type Store struct {
	// `host:port` of a single Redis or Valkey, of two nodes of a Cluster or more (one alone is taken for a single server), or of the Sentinels
	Addrs []string `yaml:"addrs" is:"redis" required:"[ \"redis:6379\" ]" want:"a list such as [ \"redis:6379\" ]" empty:"write one address for a single Redis, several for Sentinel or a Cluster, or store: memory"`
	// name of the master that the Sentinels at `addrs` watch
	Master string `yaml:"master" unset:"no Sentinel"`
	// number of the database; a Cluster has only 0
	DB int `yaml:"db" min:"0" default:"0"`
	// every key starts with it; letters, digits and `. _ - :`
	Prefix string `yaml:"prefix" is:"prefix" default:"pacer"`
	// of the user; "" is the default one
	Username string `yaml:"username" unset:"none"`
	// of the user
	Password Secret `yaml:"password" unset:"none"`
	// `{ username: …, password: … }` of the Sentinels themselves
	Sentinel Login `yaml:"sentinel" unset:"none"`
	// `{}` or `true`: TLS with the system's authorities; `{ ca_file: redis-ca.pem }` adds those of a PEM file
	TLS bool `yaml:"tls" is:"store_tls" unset:"off"`
	// a store, written as this one, that the gateways of all regions share: budgets, usage, and keys that are handed out are kept there, and all else here
	Global *Store `yaml:"global" is:"global_store" unset:"all is here"`

	CAFile string // with TLS: PEM of authorities trusted beside the system's; "" = the system's alone
	Memory bool   // no Redis: the fields above are empty, but for Prefix
}

// Login is what a Sentinel is asked with.
type Login struct {
	// "" is the default user
	Username string `yaml:"username" unset:"none"`
	// of that user
	Password Secret `yaml:"password" unset:"none"`
}

// decode reads memory, a redis:// URL, or the fields of a Redis.
func (s *Store) decode(r *reader, v value) {
	if isMapping(v) {
		r.object(v, s)
		return
	}
	if read, ok := r.storeURL(v); ok {
		*s = read
	}
}

// check looks at what the fields of a Redis say together.
func (s *Store) check(r *reader, o object) {
	s.Memory = false
	if !o.clean() {
		return
	}
	if o.has("sentinel") && s.Master == "" {
		r.problem(o.at("sentinel"), "sentinel has no effect without master; name the master that the Sentinels watch, or leave sentinel out")
	}
	if len(s.Addrs) > 1 && s.Master == "" && s.DB != 0 {
		r.problem(o.at("db"), "a Cluster has no database but 0; leave db out, or name the Sentinels' master")
	}
}

// globalStore reads the store of all regions.
func globalStore(r *reader, v value, to **Store) {
	before, s := r.count(), defaulted[Store]()
	s.decode(r, v)
	switch {
	case r.count() > before:
	case s.Memory:
		r.problem(v.place(), "global is what several regions share, and memory is of one gateway; write redis://host:6379/0, or leave global out")
	case s.Global != nil:
		r.problem(v.place(), "a global store has no global store of its own; leave that out")
	default:
		*to = &s
	}
}

// inMemory is the store of a file that names none.
func inMemory() Store {
	s := defaulted[Store]()
	s.Memory = true
	return s
}

// ParseStore reads a store as store: has it as text: memory, or a redis:// or
// rediss:// URL. The error never shows the text, which may hold a password.
func ParseStore(text string) (Store, error) {
	r := &reader{getenv: os.LookupEnv}
	s, ok := r.storeURL(value{node: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, name: "store"})
	if !ok {
		return Store{}, errors.New(r.problems[0].Message)
	}
	return s, nil
}

func (r *reader) storeURL(v value) (Store, bool) {
	s := inMemory()
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

// storeTLS reads true, false, or a mapping; an empty one is TLS as it comes.
func (r *reader) storeTLS(v value, s *Store) {
	if !isMapping(v) {
		r.truth(v, &s.TLS)
		return
	}
	var files struct {
		CA string `yaml:"ca_file" is:"ca_file"`
	}
	_, s.TLS = r.object(v, &files)
	s.CAFile = files.CA
}
