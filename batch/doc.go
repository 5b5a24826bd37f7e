// Package batch runs jobs of many requests that nobody waits for, as OpenAI's
// batch API has them: a file with a request in each line, and a file with the
// answers.
//
// A job is a row in a Store. A Runner, one in each replica, claims lines for a
// while, has them served, and writes down what came of them. Whoever wrote first
// wins, so each line has one answer. A claim that is not renewed ends: what a
// replica that died had under way is done by another one.
//
// The package knows neither HTTP nor backends: Options.Serve does the work, and
// the gateway is what that is in the program.
package batch

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ErrNotFound reports a file or a job that is not there, or no longer.
var ErrNotFound = errors.New("batch: there is none of this id")

// ErrFull reports that files, jobs and results have taken all the room that there is.
var ErrFull = errors.New("batch: there is no room for more")

// ErrHalf reports that an owner who has half of the room at most has taken that. It is
// an ErrFull as well.
var ErrHalf = fmt.Errorf("batch: the owner has its half of the room: %w", ErrFull)

// ErrMany reports that as many jobs of one owner run as may.
var ErrMany = errors.New("batch: the owner has as many jobs as may run")

const (
	// MostRunning is how many jobs of one owner may run at once.
	MostRunning = 1000

	// CancelWait is how long the end of a job that is cancelled waits for the lines that
	// run: those of a replica that died would hold it for as long as their claims.
	CancelWait = time.Second
)

// File is what was uploaded. It belongs to one owner, the name of a key.
type File struct {
	ID      string    `json:"id"`
	Owner   string    `json:"owner"`
	Name    string    `json:"name"`
	Purpose string    `json:"purpose"`
	Bytes   int64     `json:"bytes"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	Half    bool      `json:"-"` // for AddFile: its owner has half of the room at most, as there are others
}

// Status is how far a job has come. It only goes on.
type Status string

// The words are those of the API.
const (
	InProgress Status = "in_progress"
	Cancelling Status = "cancelling" // no line is begun any more, what runs is broken off
	Completed  Status = "completed"
	Failed     Status = "failed" // its file is no list of requests: nothing was begun
	Cancelled  Status = "cancelled"
	Expired    Status = "expired" // its time was over before all lines were done
)

// Over reports whether nothing of the job runs any more.
func (s Status) Over() bool { return s != InProgress && s != Cancelling }

// Job is a file of requests being done.
type Job struct {
	ID       string          `json:"id"`
	Owner    string          `json:"owner"`
	Endpoint string          `json:"endpoint"` // such as /v1/chat/completions
	Input    string          `json:"input"`    // id of the file
	Window   string          `json:"window"`   // as it was asked for
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Problems []Problem       `json:"problems,omitempty"` // of a job that failed
	Total    int             `json:"total"`              // lines
	Created  time.Time       `json:"created"`
	Expires  time.Time       `json:"expires"`
	Half     bool            `json:"-"` // for AddJob: its owner has half of the room at most, as there are others

	// What the store counts.
	Status    Status    `json:"-"`
	Completed int       `json:"-"` // lines with an answer of status 200
	Failed    int       `json:"-"` // lines with another one
	Asked     time.Time `json:"-"` // when it was to be cancelled; zero = it was not
	Ended     time.Time `json:"-"` // when it was over; zero = it is not
}

// Problem is what is wrong with a line of a job's file.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`
	Line    int    `json:"line"` // from 1; 0 = the file as a whole
}

// Claim is one line that a replica does.
type Claim struct {
	Job  string
	Line int // from 0
}
