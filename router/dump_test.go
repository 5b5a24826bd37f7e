package router

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/pacer-dev/pacer/profiles"
)

// dump writes all that r keeps, as deep as it goes: two that are equal say that
// nothing was changed in between. Left out is what has no meaning between two
// questions (scratch, what is computed again where it is needed) and what has a
// test of its own.
func dump(r *Router) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := dumper{seen: map[any]int{}}
	d.write(reflect.ValueOf(r))
	return d.String()
}

type dumper struct {
	strings.Builder
	seen map[any]int
}

var (
	dumpNot = map[string]bool{
		"Router.rand": true, "Router.scratch": true, "journal.records": true,
		"lengths.tails": true, "lengths.ready": true, "Time.loc": true, "model.gist": true,
	}
	dumpNoType = []reflect.Type{reflect.TypeFor[sync.Mutex](), reflect.TypeFor[*profiles.Occupancy](), reflect.TypeFor[curve]()}
)

func (d *dumper) write(v reflect.Value) {
	if !v.IsValid() || slices.Contains(dumpNoType, v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			d.WriteString("nil")
			return
		}
		id, again := d.seen[v.UnsafePointer()]
		if !again {
			id = len(d.seen)
			d.seen[v.UnsafePointer()] = id
		}
		fmt.Fprintf(d, "&%d", id)
		if !again {
			d.write(v.Elem())
		}
	case reflect.Interface:
		d.write(v.Elem())
	case reflect.Struct:
		d.WriteString("{")
		for i := range v.NumField() {
			if f := v.Type().Field(i); !dumpNot[v.Type().Name()+"."+f.Name] {
				fmt.Fprintf(d, "%s:", f.Name)
				d.write(v.Field(i))
				d.WriteString("\n")
			}
		}
		d.WriteString("}")
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			d.write(v.Index(i))
			d.WriteString(",")
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, k := range keys {
			fmt.Fprintf(d, "%v=", k)
			d.write(v.MapIndex(k))
			d.WriteString(",")
		}
	case reflect.Func, reflect.Chan:
	default:
		fmt.Fprint(d, v)
	}
}
