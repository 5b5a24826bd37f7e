package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/internal/spelling"
	"github.com/pacer-dev/pacer/internal/upstream"
	"github.com/pacer-dev/pacer/router"
)

// The types of a Config say in tags what their fields are called in the file and
// what may stand there. The same tags, with the fields' comments, make the tables
// of docs/CONFIG.md and the JSON Schema.
//
//	yaml      names: the first one, and other ways to write the same
//	single    of a list: the name under which one entry is written without brackets
//	default   value where the file has none; unset says in docs what none means
//	required  the field has to be there; what to write, as an example
//	enum      the words that may stand there; @kind = those of package upstream, @policy = of router
//	min       least whole number
//	above     0: a duration of 0 is too short
//	range     bounds of a number: (0,1) or [0,1]
//	eg        a number, for messages
//	want      what a list is, for messages
//	empty     what to write instead of an empty list; without it one is allowed
//	all       the word that stands for the whole list, which then is nil
//	is        what has rules of its own: see textRules and reads
//	old       a name that goes, until when it is read at least, and what to write: "users 2027-06-30 write streams"
//
// A type with a method decode reads itself. One with a method check looks at what
// its fields say together, once they were read.
type (
	decoder interface{ decode(r *reader, v value) }
	checker interface{ check(r *reader, o object) }
)

// field is one field of a struct that the file may hold.
type field struct {
	reflect.StructField
	names []string // in the file
}

func (f *field) tag(name string) string { return f.Tag.Get(name) }

func (f *field) has(tag string) bool {
	_, ok := f.Tag.Lookup(tag)
	return ok
}

// words are those that an enum allows.
func (f *field) words() []string {
	switch e := f.tag("enum"); e {
	case "@kind":
		return upstream.Words()
	case "@policy":
		return router.Preferences()
	default:
		return strings.Split(e, ",")
	}
}

// old is what the tag of that name says; ok is false without one.
func (f *field) old() (name, until, instead string, ok bool) {
	text, ok := f.Tag.Lookup("old")
	name, text, _ = strings.Cut(text, " ")
	until, instead, _ = strings.Cut(text, " ")
	return name, until, instead, ok
}

// shape is what a mapping may hold.
type shape struct {
	empty  reflect.Value // a struct in which every default is filled in
	fields []*field
	byName map[string]*field
}

func shapeOf(t reflect.Type) *shape {
	s := &shape{empty: reflect.New(t).Elem(), byName: map[string]*field{}}
	for i := range t.NumField() {
		sf := t.Field(i)
		names, ok := sf.Tag.Lookup("yaml")
		if !ok {
			continue
		}
		f := &field{StructField: sf, names: strings.Split(names, ",")}
		if one := f.tag("single"); one != "" {
			f.names = append(f.names, one)
		}
		s.fields = append(s.fields, f)
		for _, name := range f.names {
			s.byName[name] = f
		}
		if _, until, _, ok := f.old(); ok {
			_, err := time.Parse(time.DateOnly, until)
			f.mustBe(err)
		}
		f.fill(s.empty.Field(i))
	}
	return s
}

// fill puts the default of f in place, read as if the file had it.
func (f *field) fill(to reflect.Value) {
	text, ok := f.Tag.Lookup("default")
	switch {
	case !ok && to.Kind() == reflect.Struct:
		to.Set(shapeOf(to.Type()).empty)
	case ok:
		r := &reader{}
		r.read(f, value{node: &yaml.Node{Kind: yaml.ScalarNode, Value: text}, name: f.Name}, to, nil)
		f.mustBe(r.result())
	}
}

func (f *field) mustBe(err error) {
	if err != nil {
		panic(fmt.Sprintf("config: tags of %s: %v", f.Name, err))
	}
}

// defaulted returns a T as a file that says nothing makes it.
func defaulted[T any]() T {
	return shapeOf(reflect.TypeFor[T]()).empty.Interface().(T)
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
)

// shape is shapeOf, once for each type.
func (r *reader) shape(t reflect.Type) *shape {
	s := r.shapes[t]
	if s == nil {
		s = shapeOf(t)
		if r.shapes == nil {
			r.shapes = map[reflect.Type]*shape{}
		}
		r.shapes[t] = s
	}
	return s
}

// object is a mapping that was read: where each of its fields stands.
type object struct {
	r      *reader
	name   string // what messages call it
	path   string // see reader.noted
	start  place
	before int              // problems that there were
	keys   map[string]place // of the fields that the file has, right or wrong
	fine   map[string]bool  // those that were read without a problem
}

// object reads a mapping into the struct that into points to, handing each field
// to what its tags say in the order of the file. It reports fields that are
// unknown, given twice or missing.
func (r *reader) object(v value, into any) (object, bool) {
	to := reflect.ValueOf(into).Elem()
	s := r.shape(to.Type())
	to.Set(s.empty)
	o := object{r: r, name: v.name, path: v.path, start: v.place(), before: r.count(), keys: map[string]place{}, fine: map[string]bool{}}
	ok := r.pairs(v, "a mapping of fields", func(key string, at place, v value) {
		f := s.byName[key]
		if f == nil {
			r.problem(at, "unknown field %s; %s", quote(key), r.instead(key, s))
			return
		}
		if name, until, instead, ok := f.old(); ok && name == key {
			r.warn(at, "%s is deprecated, and no longer read after %s; %s", quote(key), until, instead)
		}
		v.name, v.path = key, o.path+"."+f.names[0]
		r.note(v, "")
		o.keys[key] = at
		before := r.count()
		r.read(f, v, to.FieldByIndex(f.Index), into)
		o.fine[key] = r.count() == before
	})
	if !ok {
		return o, false
	}
	for _, f := range s.fields {
		if example, must := f.Tag.Lookup("required"); must && !o.has(f.names...) {
			name := f.names[len(f.names)-1]
			r.problem(o.start, "%s has no %s; write %s: %s", o.name, name, name, example)
		}
	}
	if c, ok := into.(checker); ok {
		c.check(r, o)
	}
	return o, true
}

// instead says what to write for a field that a mapping of shape s does not
// have: the section in which it stands, or the one that was meant.
func (r *reader) instead(key string, s *shape) string {
	if key == "model_list" {
		return "this is a configuration of LiteLLM: pacer import litellm FILE makes one of Pacer of it"
	}
	var known []string
	for _, f := range s.fields {
		if known = append(known, f.names...); f.Type.Kind() == reflect.Struct && !reflect.PointerTo(f.Type).Implements(reflect.TypeFor[decoder]()) && r.shape(f.Type).byName[key] != nil {
			return fmt.Sprintf("it stands in %s: { %s: … }", f.names[0], key)
		}
	}
	return spelling.Meant(key, known)
}

// read reads the value of one field, which in holds.
func (r *reader) read(f *field, v value, to reflect.Value, in any) {
	if to.Kind() == reflect.Slice {
		r.sequence(f, v, to, in)
		return
	}
	if read := reads(f.tag("is")); read != nil {
		read(r, v, to.Addr().Interface(), in)
		return
	}
	switch p := to.Addr().Interface().(type) {
	case decoder:
		p.decode(r, v)
	case *string:
		if f.has("enum") {
			r.oneOf(v, p, f.words(), nil)
		} else {
			r.textInto(v, p)
		}
	case *Secret:
		r.textInto(v, (*string)(p))
	case *bool:
		r.truth(v, p)
	case *int:
		low, _ := strconv.Atoi(f.tag("min"))
		r.whole(v, p, low)
	case *int64:
		r.size(v, p)
	case *float64:
		r.share(v, p, f.tag("range"), f.tag("eg"))
	case *time.Duration:
		r.duration(v, p, f.has("above"))
	default:
		r.object(v, p)
	}
}

// sequence reads a list. An entry that cannot be read stays empty, so that the
// others keep their places.
func (r *reader) sequence(f *field, v value, to reflect.Value, in any) {
	single := v.name == f.tag("single")
	switch {
	case single && v.is(yaml.SequenceNode):
		r.mismatch(v, "text; several are written "+v.name+"s: [a, b]")
		return
	case f.has("all") && v.is(yaml.ScalarNode) && v.node.Value == f.tag("all"):
		return
	case !single && !v.is(yaml.SequenceNode):
		r.mismatch(v, f.tag("want"))
		return
	case !single && len(v.node.Content) == 0:
		if f.has("empty") {
			r.problem(v.place(), "%s is empty; %s", v.name, f.tag("empty"))
		}
		return
	}
	nodes := []*yaml.Node{v.node}
	if !single {
		nodes = v.node.Content
	}
	list := reflect.MakeSlice(to.Type(), len(nodes), len(nodes))
	one := &field{StructField: f.StructField, names: f.names}
	for i, n := range nodes {
		e := v.entry(i, n)
		if f.has("enum") || f.tag("is") == "model" { // their messages name the field
			e.name, e.key = v.name, v.key
		}
		r.note(e, "")
		r.read(one, e, list.Index(i), in)
	}
	to.Set(list)
}

// entry is one entry of the list v.
func (v value) entry(i int, n *yaml.Node) value {
	at := fmt.Sprintf("[%d]", i)
	return value{node: n, name: v.name + at, key: v.place(), path: v.path + at}
}

func isMapping(v value) bool { return v.is(yaml.MappingNode) }

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

// has tells whether one of the fields is in the file, right or wrong.
func (o object) has(fields ...string) bool {
	return slices.ContainsFunc(fields, func(f string) bool { _, ok := o.keys[f]; return ok })
}

// at is where the value of a field starts, or where the mapping does.
func (o object) at(field string) place { return o.r.at(o.path + "." + field) }

// raw is the text of a field as the file has it.
func (o object) raw(field string) string { return o.r.raw(o.path + "." + field) }

// clean tells whether nothing was wrong in the mapping.
func (o object) clean() bool { return o.r.count() == o.before }
