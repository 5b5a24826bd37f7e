package main

import (
	"errors"
	"testing"
	"time"
)

func TestOutageIsSaidOnceAndLate(t *testing.T) {
	alone := false
	o := outage{alone: func() bool { return alone }}
	start := time.Unix(1000, 0)
	said := 0
	at := func(after time.Duration, err error) {
		if o.tell(start.Add(after), err) {
			said++
		}
	}
	down := errors.New("down")
	at(0, down)
	at(4*time.Second, down)
	at(4500*time.Millisecond, nil)
	at(5*time.Second, down)
	alone = true
	at(11*time.Second, down)
	if said != 0 {
		t.Errorf("said %d times while the store is away as a whole, or for less than five seconds", said)
	}
	alone = false
	at(12*time.Second, down)
	at(13*time.Second, down)
	if said != 1 {
		t.Errorf("said %d times, want once", said)
	}
}
