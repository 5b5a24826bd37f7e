package batch_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/batch"
)

// What came of jobs stays within the room: a full store has no line begun, says so,
// and goes on when something is gone.
func TestMemoryIsBoundedByWhatCame(t *testing.T) {
	s := batch.NewMemory(1000, time.Hour)
	now := time.Now()
	add(t, s, "a", input(3), 24*time.Hour) // some 300 bytes
	done, stored := 0, 0
	var err error
	for i := range 103 {
		if i == 3 { // the first one is over
			if err := s.AddJob(t.Context(), batch.Job{ID: "b", Total: 100, Created: now, Expires: now.Add(24 * time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
		var claims []batch.Claim
		if claims, err = s.Claim(t.Context(), now, now.Add(time.Minute), 1); err != nil || len(claims) == 0 {
			break
		}
		if err := s.Done(t.Context(), claims[0], now, true, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		done, stored = done+1, stored+100
	}
	if !errors.Is(err, batch.ErrFull) || stored > 1000 || done < 4 {
		t.Errorf("%d bytes came in %d lines, then %v; want some, then that it is full", stored, done, err)
	}
	// The first job was over at now: its results go an hour later.
	later := now.Add(2 * time.Hour)
	if claims, err := s.Claim(t.Context(), later, later.Add(time.Minute), 1); err != nil || len(claims) != 1 {
		t.Errorf("when there is room again: %v, %v", claims, err)
	}
}

// The lines of a file that begins with a byte order mark are those that were checked.
func TestOutputOfAFileWithAByteOrderMark(t *testing.T) {
	s := batch.NewMemory(1<<20, time.Hour)
	add(t, s, "a", "\xEF\xBB\xBF"+input(2), time.Hour)
	j, err := s.Cancel(t.Context(), "a", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := batch.WriteOutput(t.Context(), s, j, false, &out); err != nil || !strings.Contains(out.String(), `"custom_id":"c0"`) {
		t.Errorf("%v:\n%s", err, &out)
	}
}
