package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStore(t *testing.T) {
	got, err := ParseStore("rediss://me:s3cret@redis/2")
	want := Store{Addrs: []string{"redis:6379"}, DB: 2, Prefix: "pacer", Username: "me", Password: "s3cret", TLS: true}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, err := ParseStore("memory"); err != nil || !got.Memory {
		t.Errorf("memory: %+v, %v", got, err)
	}
	for _, text := range []string{"", "redis", "http://s3cret@redis", "redis://:s3cret@re dis", "redis://s3cret:@h:70000", "${NOT_SET_ANYWHERE}"} {
		if s, err := ParseStore(text); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %+v, %v; want an error without the secret", text, s, err)
		}
	}
}
