package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/pacer-dev/pacer/internal/must"
)

// hangs is a provider that takes a request and never answers.
type hangs struct{ asked atomic.Int64 }

func (h *hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked.Add(1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Before a provider that hangs one asks, the others wait no longer than their own
// requests last, and who signs out does not wait at all.
func TestAProviderThatHangsHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hangs{}
		d := New(Options{Issuer: "https://provider.example", URL: "https://pacer.example", Transport: h})
		began := time.Now()
		var waiting sync.WaitGroup
		for i, want := range []time.Duration{providerTimeout, time.Second, providerTimeout} {
			waiting.Go(func() {
				ctx := t.Context()
				if i == 1 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				}
				_, err := d.provider.find(ctx, d.o.Issuer)
				if took := time.Since(began); !errors.Is(err, ErrProvider) || took != want {
					t.Errorf("number %d: %v after %v, want that it cannot be found after %v", i, err, took, want)
				}
			})
			synctest.Wait() // the first one asks
		}
		if to := d.Logout(httptest.NewRecorder(), httptest.NewRequest("POST", LogoutPath, nil)); to != "" || time.Since(began) != 0 {
			t.Errorf("signing out took %v and leads to %q, want at once and to nowhere", time.Since(began), to)
		}
		waiting.Wait()
		if n := h.asked.Load(); n != 1 {
			t.Errorf("the provider was asked %d times, want once", n)
		}
	})
}

// What a session keeps of groups is bounded, and is theirs alone.
func TestGroupsOfASession(t *testing.T) {
	var names []string
	for i := range 2 * maxGroups {
		names = append(names, fmt.Sprintf("%0*d", maxText, i))
	}
	claim := must.Get(json.Marshal(append(names, "late")))(t)
	v := Visit{Groups: groupsIn(claim)}
	if size := len(v.Groups) * int(unsafe.Sizeof(Group{})); size > 16<<10 {
		t.Errorf("a session keeps %d bytes of groups, want at most 16 KiB", size)
	}
	if !v.In([]string{"other", names[7]}) || v.In([]string{"other", names[7][1:], strings.ToUpper("late")}) || v.In(nil) {
		t.Error("groups are told apart wrongly")
	}
	if one := (Visit{Groups: groupsIn([]byte(`"ops"`))}); !one.In([]string{"ops"}) || one.In([]string{""}) {
		t.Error("one group as a word is not read")
	}
}
