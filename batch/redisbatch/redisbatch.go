// Package redisbatch keeps batch jobs in Redis, for all replicas: what one of them
// had under way when it died is done by another.
//
// Everything lies under one tag, so that scripts may change a job as a whole: a
// job is a hash, with a sorted set of the lines that are claimed, by the time when
// their claims end, and a hash of results by line.
package redisbatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/internal/redisconn"
)

var (
	//go:embed room.lua
	roomSource string // begins those that ask for the room
	//go:embed look.lua
	lookSource string
	//go:embed claim.lua
	claimSource string
	//go:embed done.lua
	doneSource string
	//go:embed renew.lua
	renewSource string
	//go:embed cancel.lua
	cancelSource string
	//go:embed addfile.lua
	addFileSource string
	//go:embed deletefile.lua
	deleteFileSource string
	//go:embed addjob.lua
	addJobSource string
	//go:embed results.lua
	resultsSource string
)

const (
	tag = "batch"

	// mostActive is how many of all jobs that run are looked at for lines at once: others
	// the next time, so that jobs that are stuck keep nobody off. mostRandom more are looked
	// at whoever's turn it is, to find those that a build added which knows no turns.
	mostActive, mostRandom = 32, 4

	// nobody is the mark of an owner who is not known: of a job of a build that marked none.
	nobody = "0000000000000000"
	marks  = "local nobody = '" + nobody + "'\n" // begins scripts that need it

	// mostListed is how many files or jobs of one owner are listed, the newest ones, and
	// mostKept how many of all owners there are: each takes room, whatever is in it.
	mostListed, mostKept = 1000, 20_000
)

// Store is a batch.Store. It is safe for concurrent use.
type Store struct {
	conn *redisconn.Client
	most int64
	keep time.Duration

	looks, claim, done, renew, cancel, addFile, deleteFile, addJob, results *redis.Script
}

// Open returns a store for files, and what comes of jobs, of at most most bytes in all,
// which keeps a job for keep after its end. conn should be one of its own: files take longer than
// what else is shared.
func Open(conn *redisconn.Client, most int64, keep time.Duration) *Store {
	return &Store{
		conn: conn, most: most, keep: keep,
		looks: redis.NewScript(marks + lookSource), renew: redis.NewScript(renewSource), cancel: redis.NewScript(marks + cancelSource),
		claim: redis.NewScript(marks + roomSource + claimSource), done: redis.NewScript(marks + roomSource + doneSource),
		results: redis.NewScript(resultsSource),
		addFile: redis.NewScript(roomSource + addFileSource), deleteFile: redis.NewScript(roomSource + deleteFileSource), addJob: redis.NewScript(roomSource + addJobSource),
	}
}

func (s *Store) key(parts ...string) string {
	return s.conn.Key(tag, append([]string{"1"}, parts...)...)
}

func ms(t time.Time) int64 { return t.UnixMilli() }

func at(text string) time.Time {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v == 0 {
		return time.Time{}
	}
	return time.UnixMilli(v)
}

// count returns the keys of what is counted (see room.lua), and others behind them.
func (s *Store) count(more ...string) (keys []string) {
	for _, name := range append([]string{"sizes", "ends", "owners", "sums"}, more...) {
		keys = append(keys, s.key(name))
	}
	return keys
}

// run runs a script once.
func (s *Store) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	replies, err := s.conn.Run(ctx, script, redisconn.Call{Keys: keys, Args: args})
	if err != nil {
		return nil, err
	}
	return replies[0].Result()
}

// AddFile implements batch.Store.
func (s *Store) AddFile(ctx context.Context, f batch.File, content []byte) error {
	head, err := json.Marshal(f)
	if err != nil {
		return err
	}
	added, err := s.run(ctx, s.addFile,
		append(s.count(), s.key("file", f.ID), s.key("content", f.ID), s.key("files", f.Owner)),
		f.ID, ms(f.Created), ms(f.Expires), len(content), s.most, mostKept, head, content, mark(f.Owner), half(f.Half))
	return cmp.Or(err, full(added))
}

// mark stands for an owner in what is counted, and in turns: 16 bytes.
func mark(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:8])
}

// half is how scripts are told whether an owner has half of the room at most.
func half(is bool) string {
	if is {
		return "1"
	}
	return ""
}

// full is the error that a script means which adds something.
func full(added any) error {
	switch added {
	case int64(0):
		return batch.ErrFull
	case int64(-1):
		return batch.ErrHalf
	}
	return nil
}

// ask returns the answer to one command.
func ask[T any](ctx context.Context, s *Store, command func(context.Context, redis.UniversalClient) (T, error)) (answer T, err error) {
	err = s.conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) (err error) {
		answer, err = command(ctx, rdb)
		return err
	})
	return answer, err
}

func (s *Store) get(ctx context.Context, key string) ([]byte, error) {
	value, err := ask(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) ([]byte, error) { return rdb.Get(ctx, key).Bytes() })
	if errors.Is(err, redis.Nil) {
		return nil, batch.ErrNotFound
	}
	return value, err
}

// File implements batch.Store.
func (s *Store) File(ctx context.Context, id string) (f batch.File, err error) {
	head, err := s.get(ctx, s.key("file", id))
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(head, &f)
}

// Content implements batch.Store.
func (s *Store) Content(ctx context.Context, id string) ([]byte, error) {
	return s.get(ctx, s.key("content", id))
}

// listed returns ids of a sorted set, the latest first.
func (s *Store) listed(ctx context.Context, key string) ([]string, error) {
	return ask(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) ([]string, error) {
		return rdb.ZRevRange(ctx, key, 0, mostListed-1).Result()
	})
}

// present returns what a sorted set names and is still there, the latest first.
func present[T any](ctx context.Context, s *Store, key string, get func(context.Context, string) (T, error)) (all []T, err error) {
	ids, err := s.listed(ctx, key)
	for _, id := range ids {
		one, err := get(ctx, id)
		switch {
		case errors.Is(err, batch.ErrNotFound): // it has expired
		case err != nil:
			return nil, err
		default:
			all = append(all, one)
		}
	}
	return all, err
}

// Files implements batch.Store.
func (s *Store) Files(ctx context.Context, owner string) ([]batch.File, error) {
	return present(ctx, s, s.key("files", owner), s.File)
}

// DeleteFile implements batch.Store.
func (s *Store) DeleteFile(ctx context.Context, id string) error {
	f, err := s.File(ctx, id)
	if err != nil {
		return err
	}
	_, err = s.run(ctx, s.deleteFile, append(s.count(), s.key("file", id), s.key("content", id), s.key("files", f.Owner)), id)
	return err
}

// AddJob implements batch.Store.
func (s *Store) AddJob(ctx context.Context, j batch.Job) error {
	head, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if running, err := s.running(ctx, j.Owner); err != nil || running >= batch.MostRunning {
		return cmp.Or(err, batch.ErrMany)
	}
	added, err := s.run(ctx, s.addJob,
		append(s.count(), s.key("job", j.ID), s.key("active"), s.key("turns"), s.key("jobs", j.Owner)),
		j.ID, ms(j.Created), ms(j.Expires), len(j.Metadata), s.most, mostKept, s.keep.Milliseconds(),
		string(cmp.Or(j.Status, batch.InProgress)), j.Total, head, mostListed, mark(j.Owner), half(j.Half))
	return cmp.Or(err, full(added))
}

// running is how many jobs of owner are not over; it is looked up only if they may be
// too many. Who adds some at the same time may have a few more than there may be.
func (s *Store) running(ctx context.Context, owner string) (n int, err error) {
	ids, err := s.listed(ctx, s.key("jobs", owner))
	if err != nil || len(ids) < batch.MostRunning {
		return len(ids), err
	}
	err = s.conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
		n = 0
		replies, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, id := range ids {
				p.HGet(ctx, s.key("job", id), "status")
			}
			return nil
		})
		for _, reply := range replies {
			if status, ok := reply.(*redis.StringCmd); ok && status.Err() == nil && !batch.Status(status.Val()).Over() {
				n++
			}
		}
		if errors.Is(err, redis.Nil) { // one that has expired
			return nil
		}
		return err
	})
	return n, err
}

// Job implements batch.Store.
func (s *Store) Job(ctx context.Context, id string) (j batch.Job, err error) {
	fields, err := ask(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) (map[string]string, error) {
		return rdb.HGetAll(ctx, s.key("job", id)).Result()
	})
	switch {
	case err != nil:
		return j, err
	case fields["job"] == "":
		return j, batch.ErrNotFound
	}
	if err := json.Unmarshal([]byte(fields["job"]), &j); err != nil {
		return j, fmt.Errorf("redisbatch: a job that no gateway can have written: %w", err)
	}
	j.Status = batch.Status(fields["status"])
	j.Completed, _ = strconv.Atoi(fields["completed"])
	j.Failed, _ = strconv.Atoi(fields["failed"])
	j.Asked, j.Ended = at(fields["asked"]), at(fields["ended"])
	return j, nil
}

// Jobs implements batch.Store.
func (s *Store) Jobs(ctx context.Context, owner string) ([]batch.Job, error) {
	return present(ctx, s, s.key("jobs", owner), s.Job)
}

// Running implements batch.Store.
func (s *Store) Running(ctx context.Context, most int) (all []batch.Job, err error) {
	if most < 1 {
		return nil, nil
	}
	ids, err := ask(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) ([]string, error) {
		return rdb.ZRange(ctx, s.key("active"), 0, int64(most)-1).Result()
	})
	for _, id := range ids {
		j, err := s.Job(ctx, id)
		switch {
		case errors.Is(err, batch.ErrNotFound): // it has expired
		case err != nil:
			return nil, err
		case !j.Status.Over():
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b batch.Job) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// Cancel implements batch.Store.
func (s *Store) Cancel(ctx context.Context, id string, now time.Time) (batch.Job, error) {
	found, err := s.run(ctx, s.cancel, []string{s.key("job", id), s.key("active"), s.key("turns")}, ms(now), id)
	switch {
	case err != nil:
		return batch.Job{}, err
	case found == int64(0):
		return batch.Job{}, batch.ErrNotFound
	}
	if _, err := s.Claim(ctx, now, now, 0, false); err != nil && !errors.Is(err, batch.ErrFull) { // it may be over already
		return batch.Job{}, err
	}
	return s.Job(ctx, id)
}

// Claim implements batch.Store.
func (s *Store) Claim(ctx context.Context, now, until time.Time, most int, halves bool) (all []batch.Claim, err error) {
	jobs, err := s.look(ctx)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	keys := s.count("active", "turns")
	args := []any{ms(now), ms(until), most, s.keep.Milliseconds(), s.most, batch.CancelWait.Milliseconds(), half(halves)}
	for _, job := range jobs {
		id := job[len(nobody):]
		keys = append(keys, s.key("job", id), s.key("claims", id), s.key("results", id))
		args = append(args, job)
	}
	reply, err := s.run(ctx, s.claim, keys, args...)
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	if len(list)%2 == 1 {
		err = batch.ErrFull
	}
	for i := 0; i+1 < len(list); i += 2 {
		id, _ := list[i].(string)
		text, _ := list[i+1].(string)
		if line, err := strconv.Atoi(text); err == nil {
			all = append(all, batch.Claim{Job: id, Line: line})
		}
	}
	return all, err
}

// look returns jobs to look at, each behind the mark of its owner.
func (s *Store) look(ctx context.Context) (jobs []string, err error) {
	reply, err := s.run(ctx, s.looks, []string{s.key("active"), s.key("turns")}, mostActive, mostRandom, rand.Int32())
	list, _ := reply.([]any)
	for _, v := range list {
		if job, ok := v.(string); ok && len(job) >= len(nobody) {
			jobs = append(jobs, job)
		}
	}
	return jobs, err
}

// Renew implements batch.Store.
func (s *Store) Renew(ctx context.Context, claims []batch.Claim, now, until time.Time) (ended []batch.Claim, err error) {
	byJob := map[string][]batch.Claim{}
	for _, c := range claims {
		byJob[c.Job] = append(byJob[c.Job], c)
	}
	for id, of := range byJob {
		args := []any{ms(now), ms(until)}
		for _, c := range of {
			args = append(args, c.Line)
		}
		runs, err := s.run(ctx, s.renew, []string{s.key("job", id), s.key("claims", id)}, args...)
		if err != nil {
			return ended, err
		}
		if runs == int64(0) {
			ended = append(ended, of...)
		}
	}
	return ended, nil
}

// Done implements batch.Store.
func (s *Store) Done(ctx context.Context, c batch.Claim, now time.Time, ok bool, result []byte) error {
	counts := 0
	if ok {
		counts = 1
	}
	keys := append(s.count("active", "turns"), s.key("job", c.Job), s.key("claims", c.Job), s.key("results", c.Job))
	found, err := s.run(ctx, s.done, keys,
		c.Job, c.Line, ms(now), counts, result, s.keep.Milliseconds())
	if err == nil && found == int64(0) {
		return batch.ErrNotFound
	}
	return err
}

// Release implements batch.Store.
func (s *Store) Release(ctx context.Context, c batch.Claim) error {
	return s.conn.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
		return rdb.ZAddXX(ctx, s.key("claims", c.Job), redis.Z{Score: 0, Member: strconv.Itoa(c.Line)}).Err()
	})
}

// Results implements batch.Store.
func (s *Store) Results(ctx context.Context, job string, from, n int) (all [][]byte, err error) {
	j, err := s.Job(ctx, job)
	if err != nil {
		return nil, err
	}
	if n = max(0, min(n, j.Total-from)); n == 0 {
		return nil, nil
	}
	reply, err := s.run(ctx, s.results, []string{s.key("results", job)}, from, n, batch.MostRead)
	if err != nil {
		return nil, err
	}
	values, _ := reply.([]any)
	for _, v := range values {
		if text, ok := v.(string); ok {
			all = append(all, []byte(text))
		} else {
			all = append(all, nil)
		}
	}
	return all, nil
}
