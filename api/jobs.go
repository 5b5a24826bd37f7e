package api

import "time"

// MaxJobs is how many jobs Jobs has at most.
const MaxJobs = 20

// Jobs are the batch jobs that run, of all keys and, with a shared store, of all
// gateways; the oldest first.
type Jobs struct {
	Jobs []Job `json:"jobs"`
}

// Job is one batch job that runs.
type Job struct {
	ID string `json:"id"`

	// Key is the name of whose it is; "" = the data port is open.
	Key string `json:"key"`

	Endpoint string `json:"endpoint"`

	// Cancelling = no line is begun any more.
	Cancelling bool `json:"cancelling"`

	// Total is how many requests the job has. Completed were answered, Failed were
	// answered with an error.
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`

	Created time.Time `json:"created"`

	// Expires is when what is left is given up.
	Expires time.Time `json:"expires"`
}
