package learn_test

import (
	"testing"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/profiles/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) profiles.Store { return &learn.Memory{HalfLife: storetest.HalfLife} })
}
