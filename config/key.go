package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/internal/hostname"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// Key is one API key of the data port.
type Key struct {
	Name   string
	SHA256 [sha256.Size]byte // of the key's bytes
	Routes []string          // names of models; nil = all
	Allow  Allow
	Limits KeyLimits
}

// Allow says which wishes of a request the key may state beyond its route.
type Allow struct {
	Classes    []string      // none = the route's own
	MinTPSMax  float64       // tokens/s; 0 = no stricter than the route
	MaxTTFTMin time.Duration // 0 = no stricter than the route
}

// KeyLimits bounds a key; 0 = no limit.
type KeyLimits struct {
	RequestsPerMinute, TokensPerMinute, Concurrency int
}

// keyMarks are the places of a key's fields; routes is parallel to Routes.
type keyMarks struct {
	name, secret place
	known        bool // SHA256 was read
	routes       []mention
}

func (r *reader) keys(v value) {
	list, _ := r.list(v, "a list of keys")
	for _, v := range list {
		k, marks := r.key(v)
		r.cfg.Keys = append(r.cfg.Keys, k)
		r.marks.keys = append(r.marks.keys, marks)
	}
}

func (r *reader) key(v value) (Key, keyMarks) {
	var k Key
	var m keyMarks
	o, ok := r.object(v, fields{
		"name":       func(v value) { r.keyName(v, &k.Name) },
		"key":        func(v value) { m.known = r.plainKey(v, &k.SHA256) },
		"key_sha256": func(v value) { m.known = r.keyHash(v, &k.SHA256) },
		"key_file":   func(v value) { m.known = r.keyFile(v, &k.SHA256) },
		"routes":     func(v value) { k.Routes, m.routes = r.keyRoutes(v) },
		"allow":      func(v value) { r.allow(v, &k.Allow) },
		"limits":     func(v value) { r.keyLimits(v, &k.Limits) },
	})
	if !ok {
		return k, m
	}
	o.require("name", "mobile")
	var given []string
	for _, field := range []string{"key", "key_sha256", "key_file"} {
		if o.has(field) {
			given = append(given, field)
		}
	}
	switch len(given) {
	case 0:
		r.problem(o.start, "%s has no key_sha256; write key_sha256: with the hash that printf %%s KEY | sha256sum prints, or key_file: with a file that holds the key", o.name)
	case 1:
		m.secret = o.at(given[0])
	default:
		r.problem(o.keys[given[1]], "%s are given; keep one, best key_sha256", strings.Join(given, " and "))
		m.known = false
	}
	m.name = o.at("name")
	return k, m
}

// keyName reads the name under which a key is logged.
func (r *reader) keyName(v value, to *string) {
	s, ok := r.text(v)
	if !ok {
		return
	}
	if s.text == "" || len(s.text) > 64 || strings.ContainsFunc(s.text, func(c rune) bool { return !hostname.NameRune(c) && !strings.ContainsRune(":@/", c) }) {
		r.problem(v.place(), "the name %s is not allowed; write 1 to 64 letters, digits or . _ - : @ /", quote(s.raw))
	}
	*to = s.text
}

func (r *reader) plainKey(v value, to *[sha256.Size]byte) bool {
	s, ok := r.text(v)
	if !ok || !r.usableKey(v, s.text) {
		return false
	}
	r.warn(v.place(), "the key is configured as plain text; better write key_sha256: with the hash that printf %%s KEY | sha256sum prints, or key_file:")
	*to = sha256.Sum256([]byte(s.text))
	return true
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

func (r *reader) keyHash(v value, to *[sha256.Size]byte) bool {
	// A hash of decimal digits alone is a number to YAML, and then the same
	// digits again.
	s, ok := r.scalar(v, "a hash")
	if !ok {
		return false
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
		return true
	}
	return false
}

// keyFile reads a key from a file; one line break at its end is not part of
// the key.
func (r *reader) keyFile(v value, to *[sha256.Size]byte) bool {
	s, ok := r.text(v)
	if !ok {
		return false
	}
	if r.readFile == nil {
		r.problem(v.place(), "a key_file cannot be read here; write key_sha256")
		return false
	}
	data, err := r.readFile(r.path(s.text))
	if err != nil {
		r.problem(v.place(), "the key_file %s cannot be read (%s); name a file that holds the key", quote(s.raw), reason(err))
		return false
	}
	key := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if !r.usableKey(v, key) {
		return false
	}
	*to = sha256.Sum256([]byte(key))
	return true
}

// keyRoutes reads the routes of a key; "*" is all of them, and so nil.
func (r *reader) keyRoutes(v value) (names []string, mentions []mention) {
	if v.is(yaml.ScalarNode) && v.node.Value == everyModel {
		return nil, nil
	}
	all := false
	r.several(v, `a list of routes, or "*" for all`, func(v value) {
		for _, v := range orList(v) {
			name, ok := r.modelName(v)
			switch {
			case !ok:
			case slices.Contains(names, name.text):
				r.problem(v.place(), "the route %s is listed twice; keep one", quote(name.raw))
			default:
				names, mentions = append(names, name.text), append(mentions, mention{v.place(), name.raw})
				all = all || name.text == everyModel
			}
		}
	})
	if all {
		return nil, nil
	}
	return names, mentions
}

func (r *reader) allow(v value, to *Allow) {
	r.object(v, fields{
		"class": func(v value) {
			r.several(v, "a list of interactive, batch", func(v value) {
				for _, v := range orList(v) {
					c, ok := r.oneOf(v, []string{classInteractive, classBatch}, nil)
					if ok && !slices.Contains(to.Classes, c) {
						to.Classes = append(to.Classes, c)
					}
				}
			})
		},
		"min_tps_max":  r.numberInto(&to.MinTPSMax, "60"),
		"max_ttft_min": r.durationInto(&to.MaxTTFTMin, positive),
	})
}

func (r *reader) keyLimits(v value, to *KeyLimits) {
	r.object(v, fields{
		"requests_per_minute": r.wholeInto(&to.RequestsPerMinute, 1),
		"tokens_per_minute":   r.wholeInto(&to.TokensPerMinute, 1),
		"concurrency":         r.wholeInto(&to.Concurrency, 1),
	})
}
