package redisstore

import (
	"strconv"
	"testing"

	"github.com/pacer-dev/pacer/profiles"
)

// Engines that come and go do not make the store of a replica grow without end;
// what is asked for is never forgotten.
func TestForgetsWhatNobodyAsksFor(t *testing.T) {
	s := &Store{known: map[profiles.Target]hash{}}
	stays := profiles.Target{Backend: "stays"}
	s.known[stays] = hash{birth: "1"}
	for i := range 10 * maxForeign {
		pod := profiles.Target{Backend: strconv.Itoa(i)}
		s.known[pod] = hash{}
		s.forget([]profiles.Target{stays, pod})
		if s.known[stays].birth != "1" {
			t.Fatal("what is asked for was forgotten")
		}
		if n := len(s.known); n > maxForeign+2 {
			t.Fatalf("%d targets are known, 2 are asked for", n)
		}
	}
}
