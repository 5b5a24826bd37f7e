package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Answer is what came of one request.
type Answer struct {
	Status    int    // of HTTP
	RequestID string // of this try
	Body      []byte // JSON

	// Again is when the same request is to be sent again; 0 = what came stands.
	// Fault: it is for a failure, not for want of room, and so only a few times.
	Again time.Duration
	Fault bool
}

// mostFaults is how often a request is sent that fails.
const mostFaults = 5

// Options of a Runner. Store, Serve and Slots have to be there.
type Options struct {
	Store  Store
	Serve  func(ctx context.Context, j Job, l Line) Answer // one request, as the owner of j
	Slots  int                                             // requests at once
	Halves func() bool                                     // whether one owner has half of the room at most; nil = no
	Asked  func(err error)                                 // hears of each time that the store was asked; nil = nobody does

	Log   *slog.Logger  // that there is no room for results; nil = nobody is told
	Every time.Duration // between looks into the store; 0 = 500 ms
	Lease time.Duration // how long a claim holds without being renewed; 0 = 30 s
}

// Runner does the jobs of a Store. Several may run, in one process or many.
type Runner struct {
	o     Options
	freed chan struct{}

	mu      sync.Mutex // guards what follows
	running map[Claim]context.CancelFunc
	inputs  map[string]*input // of jobs with running lines
	full    bool              // the store had no room for results the last time
}

// input is what the lines of one job need.
type input struct {
	job   Job
	lines Input
	users int
}

// NewRunner returns a Runner that was not started.
func NewRunner(o Options) *Runner {
	if o.Every <= 0 {
		o.Every = 500 * time.Millisecond
	}
	if o.Lease <= 0 {
		o.Lease = 30 * time.Second
	}
	return &Runner{o: o, freed: make(chan struct{}, 1), running: map[Claim]context.CancelFunc{}, inputs: map[string]*input{}}
}

// Run does jobs until ctx ends; what runs then is released, for others to do.
func (r *Runner) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	tick := time.NewTicker(r.o.Every)
	defer tick.Stop()
	for {
		r.renew(ctx)
		for _, c := range r.claim(ctx) {
			lineCtx, cancel := context.WithCancel(ctx)
			r.mu.Lock()
			r.running[c] = cancel
			r.mu.Unlock()
			all.Go(func() {
				r.do(lineCtx, c)
				cancel()
				r.mu.Lock()
				delete(r.running, c)
				r.mu.Unlock()
				select {
				case r.freed <- struct{}{}:
				default:
				}
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-r.freed:
		}
	}
}

// renew holds what runs, and breaks off what is to run no more.
func (r *Runner) renew(ctx context.Context) {
	r.mu.Lock()
	claims := make([]Claim, 0, len(r.running))
	for c := range r.running {
		claims = append(claims, c)
	}
	r.mu.Unlock()
	if len(claims) == 0 {
		return
	}
	now := time.Now()
	ended, err := r.o.Store.Renew(ctx, claims, now, now.Add(r.o.Lease))
	if ctx.Err() == nil && r.o.Asked != nil {
		r.o.Asked(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range ended {
		if cancel := r.running[c]; cancel != nil {
			cancel()
		}
	}
}

func (r *Runner) claim(ctx context.Context) []Claim {
	r.mu.Lock()
	free := r.o.Slots - len(r.running)
	r.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	free = max(free, 0) // also then jobs end that are cancelled
	now := time.Now()
	claims, err := r.o.Store.Claim(ctx, now, now.Add(r.o.Lease), free, r.o.Halves != nil && r.o.Halves())
	full := errors.Is(err, ErrFull)
	if full && !r.full && r.o.Log != nil {
		r.o.Log.Warn("batch jobs rest: there is no room for what comes of them, or one key has its half; raise batches.bytes, lower batches.keep, or delete files")
	}
	if r.full = full; full {
		err = nil
	}
	if ctx.Err() == nil && r.o.Asked != nil {
		r.o.Asked(err)
	}
	fresh := claims[:0]
	for _, c := range claims { // one whose claim ran out while the store was away runs here still
		r.mu.Lock()
		_, here := r.running[c]
		r.mu.Unlock()
		if !here {
			fresh = append(fresh, c)
		}
	}
	return fresh
}

// do serves one line and writes down what came of it.
func (r *Runner) do(ctx context.Context, c Claim) {
	in, err := r.input(ctx, c.Job)
	if err != nil {
		r.release(c)
		if ctx.Err() == nil && errors.Is(err, ErrNotFound) {
			// The file was deleted: the line has this for an answer.
			r.done(ctx, c, false, resultLine(c, "", Answer{}, "input_file_deleted", "The input file is gone."))
		}
		return
	}
	defer r.leave(c.Job, in)
	line, err := in.lines.Line(c.Line)
	if err != nil {
		r.done(ctx, c, false, resultLine(c, "", Answer{}, "invalid_json_line", "The line cannot be read."))
		return
	}
	for faults := 0; ; {
		a := r.o.Serve(ctx, in.job, line)
		if a.Fault {
			if faults++; faults == mostFaults {
				a.Again = 0
			}
		}
		switch {
		case ctx.Err() != nil && a.Status != 200:
			r.release(c)
			return
		case a.Again <= 0:
			r.done(ctx, c, a.Status == 200, resultLine(c, line.CustomID, a, "", ""))
			return
		}
		// A fifth more at random: what was refused together would come back together.
		wait := time.NewTimer(a.Again + time.Duration(rand.Float64()*float64(a.Again)/5))
		select {
		case <-ctx.Done():
			wait.Stop()
			r.release(c)
			return
		case <-wait.C:
		}
	}
}

// input returns what the lines of a job need. The first that asks reads the file.
func (r *Runner) input(ctx context.Context, id string) (*input, error) {
	r.mu.Lock()
	in := r.inputs[id]
	if in != nil {
		in.users++
		r.mu.Unlock()
		return in, nil
	}
	r.mu.Unlock()
	job, err := r.o.Store.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	content, err := r.o.Store.Content(ctx, job.Input)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if in = r.inputs[id]; in == nil {
		in = &input{job: job, lines: Split(content)}
		r.inputs[id] = in
	}
	in.users++
	return in, nil
}

func (r *Runner) leave(id string, in *input) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.users--; in.users == 0 {
		delete(r.inputs, id)
	}
}

// done writes down a result, for as long as it takes: it was paid for. At the end of
// the program, or of the job, it has a moment.
func (r *Runner) done(ctx context.Context, c Claim, ok bool, result []byte) {
	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		ctx = last
	}
	for {
		err := r.o.Store.Done(ctx, c, time.Now(), ok, result)
		if err == nil || errors.Is(err, ErrNotFound) || ctx.Err() != nil {
			return
		}
		wait := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// release gives a line back, also at the end of the program.
func (r *Runner) release(c Claim) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.o.Store.Release(ctx, c) // else the claim runs out
}

// resultLine is a line of the output, as the API has it.
func resultLine(c Claim, custom string, a Answer, code, message string) []byte {
	type response struct {
		Status    int             `json:"status_code"`
		RequestID string          `json:"request_id"`
		Body      json.RawMessage `json:"body"`
	}
	type failure struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	line := struct {
		ID       string    `json:"id"`
		CustomID string    `json:"custom_id"`
		Response *response `json:"response"`
		Error    *failure  `json:"error"`
	}{ID: requestName(c), CustomID: custom}
	if code != "" {
		line.Error = &failure{code, message}
	} else {
		body := json.RawMessage(bytes.TrimSpace(a.Body))
		if !json.Valid(body) {
			body, _ = json.Marshal(string(a.Body))
		}
		line.Response = &response{a.Status, a.RequestID, body}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(line)
	return bytes.TrimSpace(b.Bytes())
}
