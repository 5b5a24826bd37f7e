package config

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"
)

// fields are what a mapping may hold, each with what reads it.
type fields map[string]func(value)

// belongs names the field that another field stands in, for those that are
// easily put one level too high.
var belongs = map[string]string{
	"min_tps": "slo", "max_ttft": "slo", "attainment": "slo", "grace": "slo",
	"requests_per_minute": "limits", "tokens_per_minute": "limits", "concurrency": "limits",
	"min_tps_max": "allow", "max_ttft_min": "allow",
	"input": "price", "output": "price",
	"token": "admin", "level": "log", "format": "log", "origins": "cors",
	"body": "limits", "header": "limits", "streams": "limits", "queue": "limits", "buffered": "limits",
	"connect": "timeouts", "first_byte": "timeouts", "silence": "timeouts", "total": "timeouts", "drain": "timeouts", "linger": "timeouts",
}

// object is a mapping that was read: where each of its fields stands.
type object struct {
	r     *reader
	name  string
	start place
	keys  map[string]place
	vals  map[string]place
}

// object reads a mapping, handing each known field to its reader in the order
// of the file. It reports fields that are unknown or given twice.
func (r *reader) object(v value, known fields) (object, bool) {
	o := object{r: r, name: v.name, start: v.place(), keys: map[string]place{}, vals: map[string]place{}}
	ok := r.pairs(v, "a mapping of fields", func(key string, at place, v value) {
		read, isKnown := known[key]
		switch {
		case isKnown:
			v.name = key
			o.keys[key], o.vals[key] = at, v.place()
			read(v)
		case known[belongs[key]] != nil:
			r.problem(at, "unknown field %s; it stands in %s: { %s: … }", quote(key), belongs[key], key)
		default:
			r.problem(at, "unknown field %s; %s", quote(key), meant(key, slices.Collect(maps.Keys(known))))
		}
	})
	return o, ok
}

// pairs walks the fields of a mapping, each key once.
func (r *reader) pairs(v value, want string, each func(key string, at place, v value)) bool {
	if !v.is(yaml.MappingNode) {
		r.mismatch(v, want)
		return false
	}
	parts := v.node.Content // a key, its value, a key …
	seen := make(map[string]place, len(parts)/2)
	for ; len(parts) > 1; parts = parts[2:] {
		at := place{parts[0].Line, parts[0].Column}
		if parts[0].Kind != yaml.ScalarNode {
			r.problem(at, "a key that starts with ? is not supported; write name: value")
			continue
		}
		key := unmask(parts[0].Value)
		if earlier, twice := seen[key]; twice {
			r.problem(at, "%s is given twice, first in line %d; keep one", quote(key), earlier.line)
			continue
		}
		seen[key] = at
		each(key, at, value{node: parts[1], name: quote(key), key: at})
	}
	return true
}

// list returns the entries of a list.
func (r *reader) list(v value, want string) ([]value, bool) {
	if !v.is(yaml.SequenceNode) {
		r.mismatch(v, want)
		return nil, false
	}
	entries := make([]value, len(v.node.Content))
	for i, n := range v.node.Content {
		entries[i] = value{node: n, name: fmt.Sprintf("%s[%d]", v.name, i), key: v.place()}
	}
	return entries, true
}

// has tells whether the field is in the file, right or wrong.
func (o object) has(field string) bool {
	_, ok := o.keys[field]
	return ok
}

// at is where the value of a field starts, or where the mapping does.
func (o object) at(field string) place {
	if p, ok := o.vals[field]; ok {
		return p
	}
	return o.start
}

// require reports a field that is missing. example is what to write.
func (o object) require(field, example string) {
	if !o.has(field) {
		o.r.problem(o.start, "%s has no %s; write %s: %s", o.name, field, field, example)
	}
}

func isMapping(v value) bool { return v.is(yaml.MappingNode) }
