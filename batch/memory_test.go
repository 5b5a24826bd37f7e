package batch

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// Jobs are bounded as files are, and one that failed as it was made is dropped in
// time.
func TestMemoryBoundsJobs(t *testing.T) {
	m := NewMemory(1000, time.Hour)
	now := time.Now()
	add := func(id string, status Status, at time.Time, metadata int) error {
		return m.AddJob(t.Context(), Job{ID: id, Status: status, Created: at, Metadata: make([]byte, metadata)})
	}
	if err := add("large", InProgress, now, 1001); !errors.Is(err, ErrFull) {
		t.Errorf("metadata beyond the store's size: %v", err)
	}
	must.Do(t, add("failed", Failed, now, 0))
	for i := len(m.jobs); i < mostJobs; i++ { // each Add looks through all
		m.jobs[fmt.Sprint(i)] = &memoryJob{Job: m.jobs["failed"].Job}
	}
	if err := add("another", Failed, now, 0); !errors.Is(err, ErrFull) {
		t.Errorf("one job more than there may be: %v", err)
	}
	for i := range mostJobs {
		m.files[fmt.Sprint(i)] = &memoryFile{File: File{Created: now, Expires: now.Add(time.Hour)}}
	}
	if err := m.AddFile(t.Context(), File{ID: "another", Created: now}, nil); !errors.Is(err, ErrFull) {
		t.Errorf("one empty file more than there may be: %v", err)
	}
	if err := add("later", InProgress, now.Add(2*time.Hour), 900); err != nil || len(m.jobs) != 1 || m.used != 900 {
		t.Errorf("after those have expired: %v, %d jobs of %d bytes", err, len(m.jobs), m.used)
	}
}

// Whether a result is good is found by its beginning, whatever a client writes into it.
func TestGood(t *testing.T) {
	const trap = `"response":{"status_code":200,`
	for i, x := range []struct {
		custom string
		a      Answer
		code   string
		want   bool
	}{
		{"c", Answer{Status: 200, Body: []byte(`{}`)}, "", true},
		{"c", Answer{Status: 400, Body: []byte(`{` + trap + `"x":0}}`)}, "", false},
		{trap, Answer{Status: 429, Body: []byte(trap)}, "", false},
		{`\` + trap, Answer{}, "batch_expired", false},
		{`x","response":{"status_code":200,`, Answer{Status: 500}, "", false},
	} {
		if got := Good(resultLine(Claim{"j", 0}, x.custom, x.a, x.code, trap)); got != x.want {
			t.Errorf("result %d: got %v, want %v", i, got, x.want)
		}
	}
}

func BenchmarkGood(b *testing.B) {
	result := resultLine(Claim{"j", 0}, "c", Answer{Status: 200, Body: append(append([]byte(`{"x":"`), bytes.Repeat([]byte("y"), 4000)...), `"}`...)}, "", "")
	b.SetBytes(int64(len(result)))
	b.ReportAllocs()
	for b.Loop() {
		Good(result)
	}
}

// An owner who is not alone has half of the files and of the jobs that there may be.
func TestMemoryBoundsTheFilesAndJobsOfAnOwner(t *testing.T) {
	m := NewMemory(1000, time.Hour)
	now := time.Now()
	for i := range mostJobs / 2 {
		must.Do(t, m.AddFile(t.Context(), File{ID: fmt.Sprint(i), Owner: "o", Half: true, Created: now, Expires: now.Add(time.Hour)}, nil))
	}
	m.own["o"] = share{files: mostJobs / 2, jobs: mostJobs / 2} // each AddJob looks through all
	if err := m.AddFile(t.Context(), File{ID: "more", Owner: "o", Half: true, Created: now}, nil); !errors.Is(err, ErrHalf) {
		t.Errorf("one file more than half: %v", err)
	}
	if err := m.AddJob(t.Context(), Job{ID: "more", Owner: "o", Half: true, Created: now}); !errors.Is(err, ErrHalf) {
		t.Errorf("one job more than half: %v", err)
	}
	must.Do(t, m.AddFile(t.Context(), File{ID: "other", Owner: "p", Half: true, Created: now}, nil))
	must.Do(t, m.AddJob(t.Context(), Job{ID: "other", Owner: "p", Half: true, Created: now}))
	must.Do(t, m.AddFile(t.Context(), File{ID: "alone", Owner: "o", Created: now}, nil))
	must.Do(t, m.AddJob(t.Context(), Job{ID: "alone", Owner: "o", Created: now}))
}
