package batch

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// mostJobs is how many files, and how many jobs, Memory keeps: each takes room,
// whatever is in it.
const mostJobs = 10_000

// Memory is a Store that ends with the process.
type Memory struct {
	most int64         // bytes of all files, notes and results
	keep time.Duration // how long what is over stays

	mu    sync.Mutex // guards what follows
	files map[string]*memoryFile
	jobs  map[string]*memoryJob
	order []string // jobs, the oldest first
	used  int64
	own   map[string]share // by owner; none is empty
	swept time.Time
}

// share is what one owner has.
type share struct {
	bytes       int64
	files, jobs int
}

type memoryFile struct {
	File
	content []byte
}

type memoryJob struct {
	Job
	next    int // the first line that was never claimed
	claims  map[int]time.Time
	results map[int][]byte
	bytes   int64
}

// NewMemory returns an empty store for at most most bytes, which keeps a job for
// keep after its end.
func NewMemory(most int64, keep time.Duration) *Memory {
	return &Memory{most: most, keep: keep, files: map[string]*memoryFile{}, jobs: map[string]*memoryJob{}, own: map[string]share{}}
}

// AddFile implements Store.
func (m *Memory) AddFile(_ context.Context, f File, content []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := int64(len(content))
	room := func() error { return m.room(f.Owner, f.Half, n, m.own[f.Owner].files, len(m.files)) }
	if room() != nil {
		m.sweep(f.Created)
	}
	if err := room(); err != nil {
		return err
	}
	m.count(f.Owner, share{n, 1, 0})
	m.files[f.ID] = &memoryFile{f, bytes.Clone(content)}
	return nil
}

// room says why there is none for n bytes more of owner, who has own of all entries of that
// kind; nil = there is. half: it has half of everything at most. mu is held.
func (m *Memory) room(owner string, half bool, n int64, own, all int) error {
	switch {
	case half && (m.own[owner].bytes+n > m.most/2 || own >= mostJobs/2):
		return ErrHalf
	case m.used+n > m.most || all >= mostJobs:
		return ErrFull
	}
	return nil
}

// count adds d to what is used, and to what owner has of it. mu is held.
func (m *Memory) count(owner string, d share) {
	m.used += d.bytes
	s := m.own[owner]
	s = share{s.bytes + d.bytes, s.files + d.files, s.jobs + d.jobs}
	if m.own[owner] = s; s == (share{}) {
		delete(m.own, owner)
	}
}

// sweep drops what has expired by now. mu is held.
func (m *Memory) sweep(now time.Time) {
	for id, f := range m.files {
		if now.After(f.Expires) {
			m.count(f.Owner, share{-int64(len(f.content)), -1, 0})
			delete(m.files, id)
		}
	}
	for id, j := range m.jobs {
		if !j.Ended.IsZero() && now.Sub(j.Ended) > m.keep {
			m.count(j.Owner, share{-j.bytes, 0, -1})
			delete(m.jobs, id)
		}
	}
	m.order = slices.DeleteFunc(m.order, func(id string) bool { return m.jobs[id] == nil })
}

// File implements Store.
func (m *Memory) File(_ context.Context, id string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.files[id]; f != nil {
		return f.File, nil
	}
	return File{}, ErrNotFound
}

// Content implements Store.
func (m *Memory) Content(_ context.Context, id string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.files[id]; f != nil {
		return f.content, nil
	}
	return nil, ErrNotFound
}

// Files implements Store.
func (m *Memory) Files(_ context.Context, owner string) (all []File, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.files {
		if f.Owner == owner {
			all = append(all, f.File)
		}
	}
	slices.SortFunc(all, func(a, b File) int { return newer(a.Created, b.Created, a.ID, b.ID) })
	return all, nil
}

// newer orders by time, the latest first.
func newer(a, b time.Time, idA, idB string) int {
	if c := b.Compare(a); c != 0 {
		return c
	}
	return bytes.Compare([]byte(idB), []byte(idA))
}

// DeleteFile implements Store.
func (m *Memory) DeleteFile(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[id]
	if f == nil {
		return ErrNotFound
	}
	m.count(f.Owner, share{-int64(len(f.content)), -1, 0})
	delete(m.files, id)
	return nil
}

// AddJob implements Store.
func (m *Memory) AddJob(_ context.Context, j Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	notes := int64(len(j.Metadata))
	room := func() error { return m.room(j.Owner, j.Half, notes, m.own[j.Owner].jobs, len(m.jobs)) }
	if room() != nil {
		m.sweep(j.Created)
	}
	running := 0
	for _, have := range m.jobs {
		if have.Owner == j.Owner && !have.Status.Over() {
			running++
		}
	}
	if running >= MostRunning {
		return ErrMany
	}
	if err := room(); err != nil {
		return err
	}
	m.count(j.Owner, share{notes, 0, 1})
	if j.Status == "" {
		j.Status = InProgress
	}
	if j.Status.Over() {
		j.Ended = j.Created
	}
	m.jobs[j.ID] = &memoryJob{Job: j, claims: map[int]time.Time{}, results: map[int][]byte{}, bytes: notes}
	m.order = append(m.order, j.ID)
	return nil
}

// Job implements Store.
func (m *Memory) Job(_ context.Context, id string) (Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j := m.jobs[id]; j != nil {
		return j.Job, nil
	}
	return Job{}, ErrNotFound
}

// Jobs implements Store.
func (m *Memory) Jobs(_ context.Context, owner string) (all []Job, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		if j.Owner == owner {
			all = append(all, j.Job)
		}
	}
	slices.SortFunc(all, func(a, b Job) int { return newer(a.Created, b.Created, a.ID, b.ID) })
	return all, nil
}

// Running implements Store.
func (m *Memory) Running(_ context.Context, most int) (all []Job, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.order {
		if j := m.jobs[id]; j != nil && !j.Status.Over() && len(all) < most {
			all = append(all, j.Job)
		}
	}
	return all, nil
}

// Cancel implements Store.
func (m *Memory) Cancel(_ context.Context, id string, now time.Time) (Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[id]
	if j == nil {
		return Job{}, ErrNotFound
	}
	if j.Status == InProgress {
		j.Status, j.Asked = Cancelling, now
		j.settle(now)
	}
	return j.Job, nil
}

// settle ends a job of which nothing runs any more, and that is to go no further.
func (j *memoryJob) settle(now time.Time) {
	if j.Status.Over() {
		return
	}
	running := 0
	for _, until := range j.claims {
		if until.After(now) {
			running++
		}
	}
	switch {
	case j.Completed+j.Failed == j.Total:
		j.Status, j.Ended = Completed, now
	case running > 0 && (j.Status != Cancelling || now.Sub(j.Asked) < CancelWait):
	case j.Status == Cancelling:
		j.Status, j.Ended = Cancelled, now
	case !now.Before(j.Expires):
		j.Status, j.Ended = Expired, now
	}
}

// Claim implements Store.
func (m *Memory) Claim(_ context.Context, now, until time.Time, most int, halves bool) (all []Claim, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used >= m.most || now.Sub(m.swept) > time.Minute {
		m.swept = now
		m.sweep(now)
	}
	full := m.used >= m.most // what runs may pass it; no more is begun
	type runs struct {
		job  *memoryJob
		turn int // of the job among those of its owner
	}
	var open []runs
	before := map[string]int{} // how many of an owner there were
	for _, i := range rand.Perm(len(m.order)) {
		j := m.jobs[m.order[i]]
		j.settle(now)
		if j.Status == InProgress && now.Before(j.Expires) {
			open = append(open, runs{j, before[j.Owner]})
			before[j.Owner]++
		}
	}
	rand.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] }) // else who has many is mostly first
	slices.SortStableFunc(open, func(a, b runs) int { return cmp.Compare(a.turn, b.turn) })
	for _, p := range open {
		j := p.job
		if full || halves && m.own[j.Owner].bytes >= m.most/2 {
			err = ErrFull
			continue
		}
		for line, held := range j.claims {
			if len(all) < most && !held.After(now) {
				j.claims[line] = until
				all = append(all, Claim{j.ID, line})
			}
		}
		for ; len(all) < most && j.next < j.Total; j.next++ {
			j.claims[j.next] = until
			all = append(all, Claim{j.ID, j.next})
		}
	}
	return all, err
}

// Renew implements Store.
func (m *Memory) Renew(_ context.Context, claims []Claim, now, until time.Time) (ended []Claim, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range claims {
		j := m.jobs[c.Job]
		switch {
		case j == nil || j.Status != InProgress || !now.Before(j.Expires):
			ended = append(ended, c)
		default:
			if _, held := j.claims[c.Line]; held {
				j.claims[c.Line] = until
			}
		}
	}
	return ended, nil
}

// Done implements Store.
func (m *Memory) Done(_ context.Context, c Claim, now time.Time, ok bool, result []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[c.Job]
	if j == nil {
		return ErrNotFound
	}
	if _, is := j.results[c.Line]; !is && !j.Status.Over() {
		j.results[c.Line] = bytes.Clone(result)
		j.bytes += int64(len(result))
		m.count(j.Owner, share{int64(len(result)), 0, 0})
		if ok {
			j.Completed++
		} else {
			j.Failed++
		}
	}
	delete(j.claims, c.Line)
	j.settle(now)
	return nil
}

// Release implements Store.
func (m *Memory) Release(_ context.Context, c Claim) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j := m.jobs[c.Job]; j != nil {
		if _, held := j.claims[c.Line]; held {
			j.claims[c.Line] = time.Time{}
		}
	}
	return nil
}

// Results implements Store.
func (m *Memory) Results(_ context.Context, job string, from, n int) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[job]
	if j == nil {
		return nil, ErrNotFound
	}
	var all [][]byte
	for line, size := from, 0; line < min(from+n, j.Total) && size < MostRead; line++ {
		all = append(all, j.results[line])
		size += len(j.results[line])
	}
	return all, nil
}
