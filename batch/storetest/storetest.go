// Package storetest is the suite that every batch.Store passes.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/internal/must"
)

// Run runs the suite; open returns an empty store with room for 1,000 bytes of
// files.
func Run(t *testing.T, open func(t *testing.T) batch.Store) {
	for name, test := range map[string]func(*testing.T, batch.Store){
		"files":         files,
		"lines once":    linesOnce,
		"a dead claim":  deadClaim,
		"cancel":        cancel,
		"expiry":        expiry,
		"what is over":  over,
		"owners' lists": lists,
		"room":          room,
		"halves":        halves,
		"turns":         turns,
		"large results": largeResults,
		"many jobs":     many,
		"a dead cancel": deadCancel,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func file(id string) batch.File {
	now := time.Now()
	return batch.File{ID: id, Owner: "o", Name: "x.jsonl", Purpose: "batch", Bytes: 3, Created: now, Expires: now.Add(time.Hour)}
}

func job(id string, total int) batch.Job {
	now := time.Now()
	return batch.Job{ID: id, Owner: "o", Endpoint: "/v1/chat/completions", Input: "f", Total: total, Created: now, Expires: now.Add(time.Hour)}
}

func files(t *testing.T, s batch.Store) {
	ctx := t.Context()
	if _, err := s.File(ctx, "f"); !errors.Is(err, batch.ErrNotFound) {
		t.Errorf("a file that is none: %v", err)
	}
	f := file("f")
	must.Do(t, s.AddFile(ctx, f, []byte("abc")))
	got, err := s.File(ctx, "f")
	if err != nil || got.Name != f.Name || got.Owner != "o" || got.Created.Sub(f.Created).Abs() > time.Second {
		t.Errorf("got %+v, %v", got, err)
	}
	if content, err := s.Content(ctx, "f"); err != nil || string(content) != "abc" {
		t.Errorf("got %q, %v", content, err)
	}
	if err := s.AddFile(ctx, file("g"), make([]byte, 998)); !errors.Is(err, batch.ErrFull) {
		t.Errorf("a file beyond the room: %v", err)
	}
	must.Do(t, s.DeleteFile(ctx, "f"))
	if _, err := s.Content(ctx, "f"); !errors.Is(err, batch.ErrNotFound) {
		t.Errorf("a file that was deleted: %v", err)
	}
	must.Do(t, s.AddFile(ctx, file("g"), make([]byte, 998)))
}

func claim(t *testing.T, s batch.Store, now time.Time, most int) []batch.Claim {
	t.Helper()
	claims, err := s.Claim(t.Context(), now, now.Add(30*time.Second), most, false)
	must.Do(t, err)
	return claims
}

// linesOnce claims and does all lines of two jobs; the first result of a line stays.
func linesOnce(t *testing.T, s batch.Store) {
	ctx := t.Context()
	must.Do(t, s.AddJob(ctx, job("a", 5)))
	must.Do(t, s.AddJob(ctx, job("b", 3)))
	now := time.Now()
	seen := map[batch.Claim]bool{}
	for {
		claims := claim(t, s, now, 2)
		if len(claims) == 0 {
			break
		}
		if len(claims) > 2 {
			t.Fatalf("%d claims, want 2 at most", len(claims))
		}
		for _, c := range claims {
			if seen[c] {
				t.Fatalf("%+v was claimed twice", c)
			}
			seen[c] = true
			must.Do(t, s.Done(ctx, c, now, c.Line != 1, []byte(fmt.Sprintf("%s-%d", c.Job, c.Line))))
			must.Do(t, s.Done(ctx, c, now, true, []byte("again")))
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d lines were claimed, want 8", len(seen))
	}
	j, err := s.Job(ctx, "a")
	if err != nil || j.Status != batch.Completed || j.Completed != 4 || j.Failed != 1 || j.Ended.IsZero() {
		t.Errorf("got %+v, %v", j, err)
	}
	results, err := s.Results(ctx, "a", 1, 10)
	if err != nil || len(results) != 4 || string(results[0]) != "a-1" || string(results[3]) != "a-4" {
		t.Errorf("got %q, %v", results, err)
	}
}

// largeResults are read some at a time: an output is sent as slowly as its client reads.
func largeResults(t *testing.T, s batch.Store) {
	ctx, now := t.Context(), time.Now()
	must.Do(t, s.AddJob(ctx, job("a", 5)))
	for _, c := range claim(t, s, now, 5) {
		if c.Line != 1 {
			must.Do(t, s.Done(ctx, c, now, true, bytes.Repeat([]byte{'x'}, batch.MostRead*2/3)))
		}
	}
	for _, want := range []struct{ from, results int }{{0, 3}, {1, 3}, {3, 2}, {4, 1}} {
		results, err := s.Results(ctx, "a", want.from, 10)
		if err != nil || len(results) != want.results {
			t.Errorf("from line %d on there are %d results, %v; want %d", want.from, len(results), err, want.results)
		}
	}
}

// deadClaim has a line done by another one when its claim has run out.
func deadClaim(t *testing.T, s batch.Store) {
	ctx, now := t.Context(), time.Now()
	must.Do(t, s.AddJob(ctx, job("a", 2)))
	first := claim(t, s, now, 2)
	if len(first) != 2 || len(claim(t, s, now, 2)) != 0 {
		t.Fatalf("got %v, then more", first)
	}
	if ended, err := s.Renew(ctx, first[:1], now, now.Add(90*time.Second)); err != nil || len(ended) != 0 {
		t.Errorf("renewing: %v, %v", ended, err)
	}
	again := claim(t, s, now.Add(31*time.Second), 2)
	if len(again) != 1 || again[0] != first[1] {
		t.Errorf("after a dead claim: got %v, want %v", again, first[1:])
	}
	must.Do(t, s.Release(ctx, first[0]))
	if got := claim(t, s, now.Add(32*time.Second), 2); len(got) != 1 || got[0] != first[0] {
		t.Errorf("after a release: got %v, want %v", got, first[:1])
	}
}

func cancel(t *testing.T, s batch.Store) {
	ctx, now := t.Context(), time.Now()
	must.Do(t, s.AddJob(ctx, job("a", 3)))
	claims := claim(t, s, now, 2)
	j, err := s.Cancel(ctx, "a", now)
	if err != nil || j.Status != batch.Cancelling || j.Asked.IsZero() {
		t.Errorf("got %+v, %v", j, err)
	}
	if more := claim(t, s, now, 2); len(more) != 0 {
		t.Errorf("claimed %v of a job that is cancelled", more)
	}
	ended, err := s.Renew(ctx, claims, now, now.Add(time.Minute))
	if err != nil || len(ended) != 2 {
		t.Errorf("renewing: %v, %v", ended, err)
	}
	must.Do(t, s.Done(ctx, claims[0], now, true, []byte("x")))
	must.Do(t, s.Release(ctx, claims[1]))
	claim(t, s, now, 2)
	if j, err = s.Job(ctx, "a"); err != nil || j.Status != batch.Cancelled || j.Completed != 1 {
		t.Errorf("got %+v, %v", j, err)
	}
	if _, err := s.Cancel(ctx, "none", now); !errors.Is(err, batch.ErrNotFound) {
		t.Errorf("a job that is none: %v", err)
	}
	must.Do(t, s.AddJob(ctx, job("b", 3)))
	if j, err := s.Cancel(ctx, "b", now); err != nil || j.Status != batch.Cancelled {
		t.Errorf("one of which nothing runs: %+v, %v", j, err)
	}
}

func expiry(t *testing.T, s batch.Store) {
	ctx, now := t.Context(), time.Now()
	must.Do(t, s.AddJob(ctx, job("a", 2)))
	claims := claim(t, s, now, 1)
	late := now.Add(2 * time.Hour)
	if ended, err := s.Renew(ctx, claims, late, late.Add(time.Minute)); err != nil || len(ended) != 1 {
		t.Errorf("renewing after the end: %v, %v", ended, err)
	}
	if got := claim(t, s, late, 5); len(got) != 0 {
		t.Errorf("claimed %v after the end", got)
	}
	j, err := s.Job(ctx, "a")
	if err != nil || j.Status != batch.Expired {
		t.Errorf("got %+v, %v", j, err)
	}
	must.Do(t, s.Done(ctx, claims[0], late, true, []byte("late")))
	if j, err = s.Job(ctx, "a"); err != nil || j.Completed != 0 || j.Status != batch.Expired {
		t.Errorf("got %+v, %v", j, err)
	}
}

func over(t *testing.T, s batch.Store) {
	ctx, now := t.Context(), time.Now()
	j := job("a", 0)
	j.Status, j.Problems = batch.Failed, []batch.Problem{{Code: "empty_file", Line: 0}}
	must.Do(t, s.AddJob(ctx, j))
	got, err := s.Job(ctx, "a")
	if err != nil || got.Status != batch.Failed || len(got.Problems) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if claims := claim(t, s, now, 5); len(claims) != 0 {
		t.Errorf("claimed %v", claims)
	}
	if _, err := s.Results(ctx, "none", 0, 1); !errors.Is(err, batch.ErrNotFound) {
		t.Errorf("results of no job: %v", err)
	}
	if err := s.Done(ctx, batch.Claim{Job: "none"}, now, true, nil); !errors.Is(err, batch.ErrNotFound) {
		t.Errorf("a line of no job: %v", err)
	}
}

func lists(t *testing.T, s batch.Store) {
	ctx := context.Background()
	for i := range 3 {
		f, j := file(fmt.Sprint("f", i)), job(fmt.Sprint("j", i), 1)
		f.Created = f.Created.Add(time.Duration(i) * time.Second)
		j.Created = j.Created.Add(time.Duration(i) * time.Second)
		must.Do(t, s.AddFile(ctx, f, []byte("x")))
		must.Do(t, s.AddJob(ctx, j))
	}
	files, err := s.Files(ctx, "o")
	if err != nil || len(files) != 3 || files[0].ID != "f2" {
		t.Errorf("got %v, %v", files, err)
	}
	jobs, err := s.Jobs(ctx, "o")
	if err != nil || len(jobs) != 3 || jobs[0].ID != "j2" {
		t.Errorf("got %v, %v", jobs, err)
	}
	if other, err := s.Jobs(ctx, "p"); err != nil || len(other) != 0 {
		t.Errorf("another's: %v, %v", other, err)
	}
	running, err := s.Running(ctx, 10)
	if err != nil || len(running) != 3 || running[0].ID != "j0" || running[0].Total != 1 {
		t.Errorf("running: %v, %v", running, err)
	}
	if first, err := s.Running(ctx, 2); err != nil || len(first) != 2 || first[1].ID != "j1" {
		t.Errorf("the first two that run: %v, %v", first, err)
	}
	if _, err := s.Cancel(ctx, "j0", time.Now()); err != nil {
		t.Error(err)
	}
	if left, err := s.Running(ctx, 10); err != nil || len(left) != 2 || left[0].ID != "j1" {
		t.Errorf("running after one was cancelled: %v, %v", left, err)
	}
}

// room has what came of jobs stay within the room: a full store has no line begun, says
// so, ends jobs all the same, and goes on when something is gone.
func room(t *testing.T, s batch.Store) {
	ctx, now := t.Context(), time.Now()
	must.Do(t, s.AddFile(ctx, file("f"), make([]byte, 300)))
	first := job("a", 3)
	first.Expires = now.Add(24 * time.Hour)
	must.Do(t, s.AddJob(ctx, first))
	done := 0
	var err error
	for i := range 103 {
		if i == 3 { // the first one is over
			for _, id := range []string{"b", "c"} {
				j := job(id, 100)
				j.Expires = now.Add(24 * time.Hour)
				must.Do(t, s.AddJob(ctx, j))
			}
		}
		var claims []batch.Claim
		if claims, err = s.Claim(ctx, now, now.Add(time.Minute), 1, false); err != nil || len(claims) == 0 {
			break
		}
		must.Do(t, s.Done(ctx, claims[0], now, true, make([]byte, 100)))
		must.Do(t, s.Done(ctx, claims[0], now, true, make([]byte, 100))) // counts once
		done++
	}
	if !errors.Is(err, batch.ErrFull) || done != 7 {
		t.Errorf("%d lines of 100 bytes beside a file of 300, then %v; want 7, then that it is full", done, err)
	}
	if err := s.AddFile(ctx, file("g"), []byte("x")); !errors.Is(err, batch.ErrFull) {
		t.Errorf("another file: %v", err)
	}
	noted := job("d", 1)
	noted.Metadata = []byte(`{"a":"b"}`)
	if err := s.AddJob(ctx, noted); !errors.Is(err, batch.ErrFull) {
		t.Errorf("another job with notes: %v", err)
	}
	if j, err := s.Cancel(ctx, "c", now); err != nil || j.Status != batch.Cancelled {
		t.Errorf("cancelling in a full store: %+v, %v", j, err)
	}
	// The first job was over at now: its results go an hour later.
	later := now.Add(2 * time.Hour)
	if claims, err := s.Claim(ctx, later, later.Add(time.Minute), 1, false); err != nil || len(claims) != 1 {
		t.Errorf("when there is room again: %v, %v", claims, err)
	}
}

// halves has an owner who is not alone leave half of the room to the others, whatever the
// room is taken by; one who is alone has all.
func halves(t *testing.T, s batch.Store) {
	ctx, now := t.Context(), time.Now()
	add := func(id, owner string, half bool, size int) error {
		f := file(id)
		f.Owner, f.Half = owner, half
		return s.AddFile(ctx, f, make([]byte, size))
	}
	if err := add("f", "o", true, 501); !errors.Is(err, batch.ErrHalf) || !errors.Is(err, batch.ErrFull) {
		t.Errorf("a file of more than half: %v", err)
	}
	must.Do(t, add("f", "o", true, 400))
	if err := add("g", "o", true, 101); !errors.Is(err, batch.ErrHalf) {
		t.Errorf("files of more than half: %v", err)
	}
	noted := job("a", 1)
	noted.Half, noted.Metadata = true, []byte(`"`+strings.Repeat("x", 99)+`"`)
	if err := s.AddJob(ctx, noted); !errors.Is(err, batch.ErrHalf) {
		t.Errorf("a job with notes beyond half: %v", err)
	}
	must.Do(t, add("h", "p", true, 300))

	// Of what comes of o's lines there is room for 100 bytes.
	for id, owner := range map[string]string{"a": "o", "b": "p"} {
		j := job(id, 5)
		j.Owner, j.Half, j.Expires = owner, true, now.Add(24*time.Hour)
		must.Do(t, s.AddJob(ctx, j))
	}
	done := map[string]int{}
	var err error
	for range 20 {
		var claims []batch.Claim
		if claims, err = s.Claim(ctx, now, now.Add(time.Minute), 1, true); len(claims) == 0 {
			break
		}
		must.Do(t, s.Done(ctx, claims[0], now, true, make([]byte, 50)))
		done[claims[0].Job]++
	}
	if !errors.Is(err, batch.ErrFull) || done["a"] != 2 || done["b"] != 4 {
		t.Errorf("%v lines of 50 bytes beside files of 400 and 300, then %v; want 2 of a, 4 of b, then that it is full", done, err)
	}
	must.Do(t, s.DeleteFile(ctx, "f"))
	if claims, err := s.Claim(ctx, now, now.Add(time.Minute), 5, true); err != nil && !errors.Is(err, batch.ErrFull) || len(claims) != 3 {
		t.Errorf("when a file is gone: %v, %v; want 3 lines", claims, err)
	}
	// Half is what it is when the line is begun, whatever it was when the job was.
	must.Do(t, s.DeleteFile(ctx, "h"))
	must.Do(t, add("f", "o", true, 400))
	late := job("c", 1)
	late.Half = true
	must.Do(t, s.AddJob(ctx, late))
	if claims, err := s.Claim(ctx, now, now.Add(time.Minute), 5, true); !errors.Is(err, batch.ErrFull) || len(claims) != 1 || claims[0].Job != "b" {
		t.Errorf("beside other keys: %v, %v; want the last line of b", claims, err)
	}
	if claims, err := s.Claim(ctx, now, now.Add(time.Minute), 5, false); err != nil || len(claims) != 1 || claims[0].Job != "c" {
		t.Errorf("alone by now: %v, %v; want the line of c", claims, err)
	}
	must.Do(t, s.DeleteFile(ctx, "f"))
	must.Do(t, add("i", "alone", false, 700))
}

// turns has an owner with many jobs leave every second look to one who has one job.
func turns(t *testing.T, s batch.Store) {
	ctx, now := t.Context(), time.Now()
	add := func(id, owner string, lines int) {
		j := job(id, lines)
		j.Owner, j.Expires = owner, now.Add(time.Hour)
		must.Do(t, s.AddJob(ctx, j))
	}
	for i := range 500 {
		add(fmt.Sprint("o", i), "o", 5)
	}
	add("p", "p", 100)
	got := 0
	for range 60 {
		for _, c := range must.Get(s.Claim(ctx, now, now.Add(time.Minute), 1, false))(t) {
			if c.Job == "p" {
				got++
			}
		}
	}
	if got < 10 { // of 30; fewer come by chance once in 10⁷
		t.Errorf("one job beside 500 of another owner has %d of 60 lines", got)
	}
}

// many bounds the jobs of one owner that run; those of others, and what is over, do not
// count.
func many(t *testing.T, s batch.Store) {
	ctx := t.Context()
	for i := range batch.MostRunning {
		must.Do(t, s.AddJob(ctx, job(fmt.Sprint("j", i), 1)))
	}
	if err := s.AddJob(ctx, job("more", 1)); !errors.Is(err, batch.ErrMany) {
		t.Errorf("one job more than may run: %v", err)
	}
	other := job("other", 1)
	other.Owner = "p"
	must.Do(t, s.AddJob(ctx, other))
	if j, err := s.Cancel(ctx, "j7", time.Now()); err != nil || j.Status != batch.Cancelled {
		t.Errorf("cancelling one of many: %+v, %v", j, err)
	}
	must.Do(t, s.AddJob(ctx, job("more", 1)))
}

// deadCancel has a job end that is cancelled, though a replica that is dead has claims on
// its lines, and though nobody has room for another line.
func deadCancel(t *testing.T, s batch.Store) {
	ctx, now := t.Context(), time.Now()
	must.Do(t, s.AddJob(ctx, job("a", 3)))
	claims := claim(t, s, now, 2)
	must.Get(s.Cancel(ctx, "a", now))(t)
	claim(t, s, now.Add(batch.CancelWait-time.Millisecond), 0)
	if j, err := s.Job(ctx, "a"); err != nil || j.Status != batch.Cancelling {
		t.Errorf("before the wait is over: %+v, %v", j, err)
	}
	claim(t, s, now.Add(batch.CancelWait), 0)
	if j, err := s.Job(ctx, "a"); err != nil || j.Status != batch.Cancelled {
		t.Errorf("when the wait is over: %+v, %v", j, err)
	}
	must.Do(t, s.Done(ctx, claims[0], now.Add(2*time.Second), true, []byte("late")))
	if j, err := s.Job(ctx, "a"); err != nil || j.Completed != 0 {
		t.Errorf("what came too late: %+v, %v", j, err)
	}
}
