package batch

import (
	"context"
	"time"
)

// MostRead is how many bytes of results are read at once, and one result more.
const MostRead = 1 << 20

// Store keeps files, jobs, and what came of their lines. It is safe for concurrent
// use, and by several processes where it is shared. What was added is there until
// it expires. Errors but ErrNotFound, ErrFull and ErrMany mean that the store cannot be
// reached, and that the same may be asked again.
type Store interface {
	// AddFile adds a file. ErrFull = there is no room, ErrHalf = its owner has its half.
	AddFile(ctx context.Context, f File, content []byte) error
	File(ctx context.Context, id string) (File, error)
	Content(ctx context.Context, id string) ([]byte, error)
	Files(ctx context.Context, owner string) ([]File, error) // the newest first
	DeleteFile(ctx context.Context, id string) error

	// AddJob adds a job, with the errors of AddFile. ErrMany = its owner has MostRunning
	// that run.
	AddJob(ctx context.Context, j Job) error
	Job(ctx context.Context, id string) (Job, error)
	Jobs(ctx context.Context, owner string) ([]Job, error) // the newest first

	// Running returns jobs that are not over, of whichever owner: at most most, those
	// that were asked for first before the others.
	Running(ctx context.Context, most int) ([]Job, error)

	// Cancel has a job that runs end. One that is over stays as it is.
	Cancel(ctx context.Context, id string, now time.Time) (Job, error)

	// Claim takes up to most lines of the jobs that run, of whichever comes first this
	// time, for the caller alone until until. It also ends jobs that are to be cancelled or
	// whose time is over, and of which nothing runs any more, or, cancelled CancelWait
	// ago, whatever runs. ErrFull = there are
	// lines, and no room for what would come of them, or, if halves, their owner has half
	// of it.
	Claim(ctx context.Context, now, until time.Time, most int, halves bool) ([]Claim, error)

	// Renew holds claims until until, and returns those whose job runs no more, or
	// has no time left.
	Renew(ctx context.Context, claims []Claim, now, until time.Time) (ended []Claim, err error)

	// Done writes down what came of a line, unless that was written already, and
	// ends the claim. ok = it counts as completed.
	Done(ctx context.Context, c Claim, now time.Time, ok bool, result []byte) error

	// Release ends a claim without a result: the line is to be done again.
	Release(ctx context.Context, c Claim) error

	// Results returns what came of the lines from on, n at most; nil for a line of which
	// nothing came. It ends with the result that makes it MostRead bytes or more.
	Results(ctx context.Context, job string, from, n int) ([][]byte, error)
}
