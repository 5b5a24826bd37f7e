package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/upstream"
)

// Key is one API key of the data port.
type Key struct {
	// how the key is called in logs: 1 to 64 letters, digits, `. _ - : @ /`
	Name string `yaml:"name" is:"key_name" required:"mobile"`
	// lower-case hex of the SHA-256 of the key's bytes; `printf %s KEY | sha256sum` prints it. Or `key_file`, a file that holds the
	// key; one line break at its end is not part of it. Or `key`, the key itself; works, with a warning
	SHA256 [sha256.Size]byte `yaml:"key_sha256,key_file,key" is:"key" unset:"one of them is required"`
	// models that the key may use; `"*"` is all
	Routes []string `yaml:"routes" is:"model" all:"*" want:"a list of routes, or \"*\" for all" empty:"write at least one entry, or leave the field out" unset:"all"`
	// from when on the key is refused, such as `2027-01-01T00:00:00Z`
	Expires time.Time `yaml:"expires" is:"time" unset:"never"`
	// what requests may ask for beyond their route: see [allow](#allow)
	Allow Allow `yaml:"allow" unset:"none"`
	// what it may use, over all gateways that share a Redis: see [limits of a key](#limits-of-a-key)
	Limits KeyLimits `yaml:"limits" unset:"none"`
	// whom its usage is added up with: see [teams](#teams)
	Team string `yaml:"team" is:"key_name" unset:"none"`
	// what it may spend: see [budget](#budget)
	Budget Budget `yaml:"budget" unset:"none"`

	// Issued says that the key was handed out while the gateway ran, and stands in no
	// file.
	Issued bool
}

// Allow says what requests of the key may ask for beyond their route.
type Allow struct {
	// classes other than the route's
	Classes []string `yaml:"class" enum:"interactive,batch" want:"a list of interactive, batch" empty:"write at least one entry, or leave the field out" unset:"the route's"`
	// the highest floor, in tokens per second
	MinTPSMax float64 `yaml:"min_tps_max" eg:"60" unset:"the route's"`
	// the shortest time to the first token
	MaxTTFTMin time.Duration `yaml:"max_ttft_min" above:"0" unset:"the route's"`
	// `true`: it may name the backend, by `x-pacer-target`
	Target bool `yaml:"target" default:"false"`
	// `true`: it may use what the account of a backend keeps: vector stores, fine tuning, and files for them
	Account bool `yaml:"account" default:"false"`
}

// KeyLimits bounds a key; 0 = no limit.
type KeyLimits struct {
	// requests that may start within a minute
	RequestsPerMinute int `yaml:"requests_per_minute" min:"1" unset:"none"`
	// tokens of prompts and answers
	TokensPerMinute int `yaml:"tokens_per_minute" min:"1" unset:"none"`
	// requests at once, from their heads on: one that sends its body counts. One of several sequences (`n`, `best_of`, prompts in an array) counts as that many
	Concurrency int `yaml:"concurrency" min:"1" unset:"none"`
}

func (k *Key) check(r *reader, o object) {
	given := slices.DeleteFunc([]string{"key", "key_sha256", "key_file"}, func(field string) bool { return !o.has(field) })
	switch {
	case len(given) == 0:
		r.problem(o.start, "%s has no key_sha256; write key_sha256: with the hash that printf %%s KEY | sha256sum prints, or key_file: with a file that holds the key", o.name)
	case len(given) > 1:
		r.problem(o.keys[given[1]], "%s are given; keep one, best key_sha256", strings.Join(given, " and "))
		k.SHA256 = [sha256.Size]byte{}
	}
	for j, name := range k.Routes {
		if name != "" && slices.Contains(k.Routes[:j], name) {
			at := fmt.Sprintf("routes[%d]", j)
			r.problem(o.at(at), "the route %s is listed twice; keep one", quote(o.raw(at)))
		}
	}
	if slices.Contains(k.Routes, everyModel) {
		k.Routes = nil
	}
}

// key reads one of the ways to write a key.
func (r *reader) key(v value, to *[sha256.Size]byte) {
	switch v.name {
	case "key":
		r.plainKey(v, to)
	case "key_file":
		r.keyFile(v, to)
	default:
		r.keyHash(v, to)
	}
}

// moment reads a point in time; a day alone is its beginning in UTC.
func (r *reader) moment(v value, to *time.Time) {
	s, ok := r.scalar(v, "a time, such as 2027-01-01T00:00:00Z")
	if !ok {
		return
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, s.text); err == nil && !at.IsZero() { // zero stands for never
			*to = at
			return
		}
	}
	r.problem(v.place(), "%s %s is no time; write it with its zone, such as 2027-01-01T00:00:00Z, or a day such as 2027-01-01", v.name, quote(s.raw))
}

func (r *reader) plainKey(v value, to *[sha256.Size]byte) {
	s, ok := r.text(v)
	if !ok || !r.usableKey(v, s.text) {
		return
	}
	r.warn(v.place(), "the key is configured as plain text; better write key_sha256: with the hash that printf %%s KEY | sha256sum prints, or key_file:")
	*to = sha256.Sum256([]byte(s.text))
	if r.plain == nil {
		r.plain = map[place][sha256.Size]byte{}
	}
	r.plain[v.place()] = *to
}

// usableKey reports a key that no client could send.
func (r *reader) usableKey(v value, key string) bool {
	switch {
	case key == "":
		r.problem(v.place(), "the %s is empty; write a key, such as openssl rand -hex 32 prints", v.name)
	case len(key) > 4096 || !upstream.HeaderValue(key) || strings.Contains(key, " "):
		r.problem(v.place(), "the %s holds blanks or control characters, or more than 4096 bytes, which clients cannot send; write a key such as openssl rand -hex 32 prints", v.name)
	default:
		return true
	}
	return false
}

func (r *reader) keyHash(v value, to *[sha256.Size]byte) {
	// A hash of decimal digits alone is a number to YAML, and then the same
	// digits again.
	s, ok := r.scalar(v, "a hash")
	if !ok {
		return
	}
	sum, err := hex.DecodeString(s.text)
	switch {
	case err != nil || len(sum) != sha256.Size:
		r.problem(v.place(), "key_sha256 must be 64 hex digits; write the hash that printf %%s KEY | sha256sum prints")
	case strings.ToLower(s.text) != s.text:
		r.problem(v.place(), "key_sha256 has upper-case digits; write it in lower case")
	case [sha256.Size]byte(sum) == sha256.Sum256(nil):
		r.problem(v.place(), "key_sha256 is the hash of no key at all; check that the command that made it was given the key")
	default:
		*to = [sha256.Size]byte(sum)
	}
}

// keyFile reads a key from a file; one line break at its end is not part of
// the key.
func (r *reader) keyFile(v value, to *[sha256.Size]byte) {
	s, ok := r.text(v)
	if !ok {
		return
	}
	if r.readFile == nil {
		r.problem(v.place(), "a key_file cannot be read here; write key_sha256")
		return
	}
	data, ok := r.content(v.place(), r.path(s.text), "key_file "+quote(s.raw), "a file that holds the key")
	if key := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"); ok && r.usableKey(v, key) {
		*to = sha256.Sum256([]byte(key))
	}
}
