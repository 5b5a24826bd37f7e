package batch_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/internal/must"
)

// The lines of a file that begins with a byte order mark are those that were checked.
func TestOutputOfAFileWithAByteOrderMark(t *testing.T) {
	s := batch.NewMemory(1<<20, time.Hour)
	add(t, s, "a", "\xEF\xBB\xBF"+input(2), time.Hour)
	j := must.Get(s.Cancel(t.Context(), "a", time.Now()))(t)
	var out strings.Builder
	if err := batch.WriteOutput(t.Context(), s, j, false, &out); err != nil || !strings.Contains(out.String(), `"custom_id":"c0"`) {
		t.Errorf("%v:\n%s", err, &out)
	}
}

// unread is a store of which no file is to be read.
type unread struct {
	batch.Store
	t *testing.T
}

func (u unread) Content(ctx context.Context, id string) ([]byte, error) {
	u.t.Error("the file was read")
	return u.Store.Content(ctx, id)
}

// What came of a job that is done is written without its file, which may be large.
func TestOutputIsWrittenWithoutTheFile(t *testing.T) {
	s := batch.NewMemory(1<<20, time.Hour)
	add(t, s, "a", input(1), time.Hour)
	now := time.Now()
	for _, c := range must.Get(s.Claim(t.Context(), now, now.Add(time.Minute), 1, false))(t) {
		must.Do(t, s.Done(t.Context(), c, now, true, []byte(`{"response":{"status_code":200,"body":{}}}`)))
	}
	j := must.Get(s.Job(t.Context(), "a"))(t)
	for good, want := range map[bool]int{true: 1, false: 0} {
		var out strings.Builder
		if err := batch.WriteOutput(t.Context(), unread{s, t}, j, good, &out); err != nil || strings.Count(out.String(), "\n") != want {
			t.Errorf("good %v: %v, %q; want %d lines", good, err, &out, want)
		}
	}
}

// A job that rests at half of the room goes on as soon as its owner is alone.
func TestAJobGoesOnWhenItsOwnerIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := batch.NewMemory(int64(len(input(3)))*3/2, time.Hour)
		add(t, s, "a", input(3), time.Hour)
		var many atomic.Bool
		many.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() {
			_ = batch.NewRunner(batch.Options{Store: s, Slots: 1, Halves: many.Load, Serve: func(context.Context, batch.Job, batch.Line) batch.Answer {
				return batch.Answer{Status: 200, Body: []byte("{}")}
			}}).Run(ctx)
		})
		for alone, begun := range []bool{false, true} {
			many.Store(alone == 0)
			time.Sleep(time.Minute)
			if j := must.Get(s.Job(t.Context(), "a"))(t); (j.Completed > 0) != begun {
				t.Errorf("alone %v: %d lines are done", begun, j.Completed)
			}
		}
		stop()
		ended.Wait()
	})
}
