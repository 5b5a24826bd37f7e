package gateway

import (
	"errors"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// What a request holds comes off all budgets at its end, and once.
func TestAHoldingIsGivenBackOnce(t *testing.T) {
	var all, tenant budget
	all.limit.Store(onHeap * 100)
	tenant.limit.Store(onHeap * 1000)
	h := holding{budgets: budgets{all: &all, tenant: &tenant}}
	must.Do(t, h.take(60))
	if err := h.take(50); !errors.Is(err, errOverloaded) {
		t.Errorf("110 of 100 bytes: %v, want %v", err, errOverloaded)
	}
	h.adjust(80) // cannot be refused
	h.adjust(-10)
	if got := all.used.Load(); got != onHeap*130 || tenant.used.Load() != got {
		t.Errorf("%d and %d bytes held, want %d of both", got, tenant.used.Load(), onHeap*130)
	}
	h.giveBack()
	h.giveBack()
	if all.used.Load() != 0 || tenant.used.Load() != 0 {
		t.Errorf("%d and %d bytes held at the end, want none", all.used.Load(), tenant.used.Load())
	}
}
