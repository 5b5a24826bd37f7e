package learn_test

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/profiles/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Subject {
		now := time.Unix(1_700_000_000, 0)
		m := &learn.Memory{HalfLife: storetest.HalfLife, Now: func() time.Time { return now }}
		return storetest.Subject{
			Store: m, Reopen: func() profiles.Store { return m },
			Pass: func(d time.Duration) { now = now.Add(d) },
		}
	})
}
