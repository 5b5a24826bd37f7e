package batch_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/batch/storetest"
	"github.com/pacer-dev/pacer/internal/must"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) batch.Store { return batch.NewMemory(1000, time.Hour) })
}

func input(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"c%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","n":%d}}`+"\n", i, i)
	}
	return b.String()
}

// add puts a job with that file into s.
func add(t *testing.T, s batch.Store, id, content string, window time.Duration) {
	t.Helper()
	now := time.Now()
	must.Do(t, s.AddFile(t.Context(), batch.File{ID: "f-" + id, Created: now, Expires: now.Add(48 * time.Hour)}, []byte(content)))
	in, problems := batch.ReadInput([]byte(content), "/v1/chat/completions")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	must.Do(t, s.AddJob(t.Context(), batch.Job{ID: id, Input: "f-" + id, Total: in.Len(), Created: now, Expires: now.Add(window)}))
}

// Two runners do 500 lines: each once, though requests are refused for a while, and
// one runner ends in the middle.
func TestRunnersDoEachLineOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := batch.NewMemory(1<<20, time.Hour)
		var mu sync.Mutex
		tries, most, now := map[string]int{}, 0, 0
		serve := func(ctx context.Context, _ batch.Job, l batch.Line) batch.Answer {
			mu.Lock()
			tries[l.CustomID]++
			refuse := tries[l.CustomID] == 1 && len(tries)%7 == 0
			now++
			most = max(most, now)
			mu.Unlock()
			defer func() { mu.Lock(); now--; mu.Unlock() }()
			if refuse {
				return batch.Answer{Status: 429, Again: 2 * time.Second}
			}
			select {
			case <-ctx.Done():
				return batch.Answer{Status: 499}
			case <-time.After(100 * time.Millisecond):
			}
			status := 200
			if l.CustomID == "c3" {
				status = 400
			}
			return batch.Answer{Status: status, RequestID: "r", Body: []byte(`{"n":1}`)}
		}
		add(t, s, "job", input(500), 24*time.Hour)
		o := batch.Options{Store: s, Serve: serve, Slots: 8}
		ctx, stop := context.WithCancel(t.Context())
		one, cancelOne := context.WithCancel(ctx)
		var done sync.WaitGroup
		done.Go(func() { _ = batch.NewRunner(o).Run(one) })
		done.Go(func() { _ = batch.NewRunner(o).Run(ctx) })
		time.Sleep(2 * time.Second)
		cancelOne()
		time.Sleep(time.Minute)
		j, err := s.Job(ctx, "job")
		if err != nil || j.Status != batch.Completed || j.Completed != 499 || j.Failed != 1 {
			t.Errorf("got %+v, %v", j, err)
		}
		if most > 16 {
			t.Errorf("%d at once, want at most 16", most)
		}
		var out, errs bytes.Buffer
		must.Do(t, batch.WriteOutput(ctx, s, j, true, &out))
		must.Do(t, batch.WriteOutput(ctx, s, j, false, &errs))
		if n := strings.Count(out.String(), "\n"); n != 499 {
			t.Errorf("the output has %d lines", n)
		}
		if want := `{"id":"batch_req_job_4","custom_id":"c3","response":{"status_code":400,"request_id":"r","body":{"n":1}},"error":null}` + "\n"; errs.String() != want {
			t.Errorf("the errors are %s, want %s", errs.String(), want)
		}
		stop()
		done.Wait()
	})
}

// A job that is cancelled ends within two seconds, whatever runs; one whose time is
// over names what was not done.
func TestJobsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := batch.NewMemory(1<<20, time.Hour)
		var running atomic.Int64
		serve := func(ctx context.Context, _ batch.Job, _ batch.Line) batch.Answer {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			return batch.Answer{}
		}
		ctx, stop := context.WithCancel(t.Context())
		r := batch.NewRunner(batch.Options{Store: s, Serve: serve, Slots: 4})
		var done sync.WaitGroup
		done.Go(func() { _ = r.Run(ctx) })
		add(t, s, "a", input(10), 24*time.Hour)
		time.Sleep(time.Second)
		if running.Load() != 4 {
			t.Fatalf("%d run, want 4", running.Load())
		}
		must.Get(s.Cancel(ctx, "a", time.Now()))(t)
		time.Sleep(2 * time.Second)
		if j, _ := s.Job(ctx, "a"); j.Status != batch.Cancelled || running.Load() != 0 {
			t.Errorf("two seconds after the cancel: %s, %d run", j.Status, running.Load())
		}
		add(t, s, "b", input(3), time.Minute)
		time.Sleep(3 * time.Minute)
		j, _ := s.Job(ctx, "b")
		if j.Status != batch.Expired {
			t.Errorf("after its time: %s, %d run", j.Status, running.Load())
		}
		var errs bytes.Buffer
		if err := batch.WriteOutput(ctx, s, j, false, &errs); err != nil || strings.Count(errs.String(), "batch_expired") != 3 || !strings.Contains(errs.String(), `"custom_id":"c2"`) {
			t.Errorf("got %s, %v", errs.String(), err)
		}
		stop()
		done.Wait()
	})
}

func TestReadInput(t *testing.T) {
	ok := `{"custom_id":"a","method":"POST","url":"/v1/x","body":{}}`
	for name, c := range map[string]struct {
		text string
		code string
		line int
	}{
		"good":           {ok + "\n\n" + strings.Replace(ok, `"a"`, `"b"`, 1), "", 0},
		"empty":          {" \n", "empty_file", 0},
		"no json":        {ok + "\n{", "invalid_json_line", 2},
		"no id":          {`{"method":"POST","url":"/v1/x","body":{}}`, "invalid_custom_id", 1},
		"an id twice":    {ok + "\n" + ok, "duplicate_custom_id", 2},
		"another method": {strings.Replace(ok, "POST", "GET", 1), "invalid_method", 1},
		"another url":    {strings.Replace(ok, "/v1/x", "/v1/y", 1), "mismatched_endpoint", 1},
		"no body":        {strings.Replace(ok, `,"body":{}`, "", 1), "missing_body", 1},
		"a body of text": {strings.Replace(ok, "{}", `"x"`, 1), "missing_body", 1},
		"too many":       {strings.Repeat("1\n", batch.MostLines+1), "too_many_requests", 0},
	} {
		_, problems := batch.ReadInput([]byte(c.text), "/v1/x")
		switch {
		case c.code == "" && len(problems) == 0:
		case len(problems) != 1 || problems[0].Code != c.code || problems[0].Line != c.line:
			t.Errorf("%s: got %+v, want %s in line %d", name, problems, c.code, c.line)
		}
	}
}

func FuzzReadInput(f *testing.F) {
	f.Add(input(2))
	f.Add("{}\n[]\n\xEF\xBB\xBF")
	f.Fuzz(func(t *testing.T, text string) {
		in, problems := batch.ReadInput([]byte(text), "/v1/chat/completions")
		if len(problems) > 0 {
			return
		}
		for i := range in.Len() {
			if l, err := in.Line(i); err != nil || l.CustomID == "" {
				t.Errorf("line %d was taken, and is %+v, %v", i, l, err)
			}
		}
	})
}

// An answer that comes as the runner ends is written down: nobody asks again.
func TestAnAnswerAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := batch.NewMemory(1<<20, time.Hour)
		add(t, s, "a", input(4), time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		r := batch.NewRunner(batch.Options{Store: s, Slots: 2, Serve: func(ctx context.Context, _ batch.Job, l batch.Line) batch.Answer {
			<-ctx.Done()
			if l.CustomID == "c0" {
				return batch.Answer{Status: 200, Body: []byte("{}")}
			}
			return batch.Answer{Status: 502, Body: []byte("{}"), Again: time.Second}
		}})
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if j, err := s.Job(t.Context(), "a"); err != nil || j.Completed != 1 || j.Failed != 0 {
			t.Errorf("got %+v, %v, want the one that was answered", j, err)
		}
		now := time.Now()
		if claims, err := s.Claim(t.Context(), now, now.Add(time.Minute), 10, false); err != nil || len(claims) != 3 {
			t.Errorf("%v are to be done again (%v), want the three others", claims, err)
		}
	})
}

// A job is cancelled within two seconds: its lines run on two replicas and never end, a
// third replica died with lines of it, and another job has all the slots.
func TestACancelIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := batch.NewMemory(1<<20, time.Hour)
		var broken atomic.Int64
		serve := func(ctx context.Context, _ batch.Job, _ batch.Line) batch.Answer {
			<-ctx.Done()
			broken.Add(1)
			return batch.Answer{Status: 499}
		}
		add(t, s, "a", input(100), 24*time.Hour)
		dead, err := s.Claim(t.Context(), time.Now(), time.Now().Add(30*time.Second), 10, false)
		if err != nil || len(dead) != 10 {
			t.Fatal(dead, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var done sync.WaitGroup
		for range 2 {
			done.Go(func() { _ = batch.NewRunner(batch.Options{Store: s, Serve: serve, Slots: 4}).Run(ctx) })
		}
		time.Sleep(time.Second)
		add(t, s, "b", input(100), 24*time.Hour)
		for _, id := range []string{"a", "b"} { // b gets the slots that a gives up
			if j, err := s.Cancel(t.Context(), id, time.Now()); err != nil || id == "a" && j.Status != batch.Cancelling {
				t.Fatal(j, err)
			}
			time.Sleep(2 * time.Second)
			if j, err := s.Job(t.Context(), id); err != nil || j.Status != batch.Cancelled {
				t.Errorf("%s after two seconds: %+v, %v", id, j, err)
			}
		}
		if n := broken.Load(); n != 16 {
			t.Errorf("%d lines were broken off, want the 8 of each", n)
		}
		stop()
		done.Wait()
	})
}
