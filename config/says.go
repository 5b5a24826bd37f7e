package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/upstream"
)

// sayable are the fields that an engine may say of itself. None of them moves a
// connection, names a file or holds a secret: who may start an engine is not
// trusted with those.
var sayable = []string{"kind", "labels", "max_concurrency", "models", "price", "prior", "usd_per_hour"}

// With returns b with the fields that an engine says of itself, each in its
// YAML. A field that cannot be read stays as b has it; the error is an Errors
// that names all of them.
func (b Backend) With(says map[string]string) (Backend, error) {
	if len(says) == 0 {
		return b, nil
	}
	r := &reader{getenv: func(string) (string, bool) { return "", false }}
	all := reflect.ValueOf(&b).Elem()
	s := r.shape(all.Type())
	for _, name := range slices.Sorted(maps.Keys(says)) {
		if !slices.Contains(sayable, name) {
			r.problem(place{}, "an engine may not say %s; it may say %s", quote(name), strings.Join(sayable, ", "))
			continue
		}
		f := s.byName[name]
		to := all.FieldByIndex(f.Index)
		before, was := r.count(), reflect.ValueOf(to.Interface())
		r.said(f, name, says[name], to, &b)
		if r.count() > before {
			to.Set(was)
		}
	}
	return b, r.result()
}

// said reads one field that stands alone.
func (r *reader) said(f *field, name, text string, to reflect.Value, b *Backend) {
	root, problem := tree([]byte(text))
	if problem != nil {
		r.problem(place{}, "%s: %s", name, problem.Message)
		return
	}
	r.read(f, value{node: root, name: name, path: "." + name}, to, b)
	if engines := upstream.Engines(); name == "kind" && !slices.Contains(engines, b.Kind) {
		r.problem(place{}, "an engine may not say that it is %s; it may be %s", quote(b.Kind), strings.Join(engines, ", "))
	}
}
