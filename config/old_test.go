package config

import (
	"strings"
	"testing"
)

// A name that goes is read as before, and the warning says where it stands, until when
// it is read and what to write. The name that stays has none.
func TestOldNamesWarnWithTheirDate(t *testing.T) {
	type sized struct {
		Streams int `yaml:"streams,users" old:"users 2027-06-30 write streams"`
	}
	for _, c := range []struct{ text, warning string }{
		{"streams: 7", ""},
		{"\nusers: 7", `pacer.yaml:2:1: "users" is deprecated, and no longer read after 2027-06-30; write streams`},
	} {
		root, problem := tree([]byte(c.text))
		if problem != nil {
			t.Fatal(problem)
		}
		r, got := &reader{file: "pacer.yaml", cfg: &Config{}}, sized{}
		r.object(value{node: root, name: "the configuration"}, &got)
		var said []string
		for _, w := range r.warnings {
			said = append(said, w.String())
		}
		if err := r.result(); err != nil || got.Streams != 7 || strings.Join(said, "\n") != c.warning {
			t.Errorf("%q: %d streams, %v, warnings %q, want 7 and %q", c.text, got.Streams, err, said, c.warning)
		}
	}
}
