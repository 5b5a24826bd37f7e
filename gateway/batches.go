package gateway

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/internal/openai"
)

// mostUploads is how many files may come in at once, and mostFiles how many may be
// held to be read: each may be as large as a body.
const mostUploads, mostFiles = 4, 16

// hold takes a place among those who hold a whole file; the place is given back by
// calling give.
func (g *Gateway) hold() (give func(), err error) {
	select {
	case g.files <- struct{}{}:
		return func() { <-g.files }, nil
	default:
		return nil, errOverloaded
	}
}

// batchRoutes adds the files and the jobs of OpenAI's batch API.
func (g *Gateway) batchRoutes(add func(path string, e methods)) {
	for _, base := range []string{"/v1", "", "/openai/v1"} {
		for path, e := range map[string]methods{
			"/files":               {http.MethodGet: g.owned(g.listFiles), http.MethodPost: g.owned(g.createFile)},
			"/files/{id}":          {http.MethodGet: g.owned(g.showFile), http.MethodDelete: g.owned(g.deleteFile)},
			"/files/{id}/content":  {http.MethodGet: g.owned(g.sendFile)},
			"/batches":             {http.MethodGet: g.owned(g.listBatches), http.MethodPost: g.owned(g.createBatch)},
			"/batches/{id}":        {http.MethodGet: g.owned(g.showBatch)},
			"/batches/{id}/cancel": {http.MethodPost: g.owned(g.cancelBatch)},
		} {
			add(base+path, e)
			add(base+path+"/", e)
		}
	}
}

// owned returns a handler that answers the owner of a key with what serve returns.
func (g *Gateway) owned(serve func(w http.ResponseWriter, r *http.Request, t *tenant) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		t, err := g.plan.Load().authenticate(r)
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		v, err := serve(w, r, t)
		switch {
		case errors.Is(err, batch.ErrNotFound):
			g.refuse(w, r, &openai.BadRequest{Message: "There is no file or batch of this id.", Param: "id", Code: notThere})
		case errors.Is(err, batch.ErrFull):
			g.refuse(w, r, &openai.BadRequest{Message: "There is no room for another file or batch. Delete files that are done with, or ask whoever runs this gateway for more (batches.bytes).", Param: "file", Code: "files_full"})
		case err != nil && answerFor(err).code == "internal_error": // of the store
			g.log.Warn("the store of batch jobs cannot be asked", "error", err)
			g.refuse(w, r, errNoStore)
		case err != nil:
			g.refuse(w, r, err)
		case v != nil:
			g.sendJSON(w, r, v)
		}
	}
}

// notThere is the code of a file or a batch that is not there, which is answered 404.
const notThere = "not_found"

// errNoStore reports that files and batches cannot be reached now.
var errNoStore = errors.New("gateway: the store of batch jobs cannot be asked")

// file is a file as the API has it.
type file struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Bytes     int64  `json:"bytes"`
	CreatedAt int64  `json:"created_at"` // unix seconds
	ExpiresAt int64  `json:"expires_at,omitempty"`
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"`
	Status    string `json:"status"`
}

func fileOf(f batch.File) file {
	return file{f.ID, "file", f.Bytes, f.Created.Unix(), f.Expires.Unix(), f.Name, f.Purpose, "processed"}
}

// page is a list of the API.
type page[T any] struct {
	Object  string  `json:"object"`
	Data    []T     `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// paged is the part of all that the query asks for.
func paged[T any](r *http.Request, all []T, usual int, id func(T) string) page[T] {
	q := r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 {
		limit = usual
	}
	if after := q.Get("after"); after != "" {
		for i := range all {
			if id(all[i]) == after {
				all = all[i+1:]
				break
			}
		}
	}
	p := page[T]{Object: "list", Data: all[:min(limit, len(all))]}
	p.HasMore = len(all) > len(p.Data)
	if p.Data == nil {
		p.Data = []T{}
	}
	if n := len(p.Data); n > 0 {
		first, last := id(p.Data[0]), id(p.Data[n-1])
		p.FirstID, p.LastID = &first, &last
	}
	return p
}

func (g *Gateway) listFiles(_ http.ResponseWriter, r *http.Request, t *tenant) (any, error) {
	stored, err := g.batches.Files(r.Context(), t.name)
	if err != nil {
		return nil, err
	}
	files := []file{}
	for _, f := range stored {
		if purpose := r.URL.Query().Get("purpose"); purpose == "" || purpose == f.Purpose {
			files = append(files, fileOf(f))
		}
	}
	return paged(r, files, 10_000, func(f file) string { return f.ID }), nil
}

func (g *Gateway) createFile(w http.ResponseWriter, r *http.Request, t *tenant) (any, error) {
	select {
	case g.uploads <- struct{}{}:
		defer func() { <-g.uploads }()
	default:
		return nil, errOverloaded
	}
	conf := g.plan.Load().conf
	r.Body = http.MaxBytesReader(w, &patient{ReadCloser: r.Body, control: http.NewResponseController(w), idle: conf.Timeouts.Write}, conf.Limits.Body)
	name, purpose, content, err := readUpload(r)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &bodyTooLargeError{limit: conf.Limits.Body}
	case err != nil:
		return nil, err
	}
	now := time.Now()
	f := batch.File{ID: "file-" + rand.Text(), Owner: t.name, Name: name, Purpose: purpose, Bytes: int64(len(content)), Created: now, Expires: now.Add(conf.Batches.Keep)}
	if err := g.batches.AddFile(r.Context(), f, content); err != nil {
		return nil, err
	}
	return fileOf(f), nil
}

// patient gives a client time for each read, not for all of them.
type patient struct {
	io.ReadCloser
	control *http.ResponseController
	idle    time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(p.idle)) // one that knows none ends with its connection
	return p.ReadCloser.Read(b)
}

// readUpload reads the form of a file.
func readUpload(r *http.Request) (name, purpose string, content []byte, err error) {
	form, err := r.MultipartReader()
	if err != nil {
		return "", "", nil, &openai.BadRequest{Message: "A file is sent as multipart/form-data, with the fields purpose and file.", Param: "file"}
	}
	for parts := 0; ; parts++ {
		part, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF) && content == nil:
			return "", "", nil, &openai.BadRequest{Message: "The form has no file.", Param: "file"}
		case errors.Is(err, io.EOF) && purpose != "batch":
			return "", "", nil, &openai.BadRequest{Message: fmt.Sprintf("The purpose has to be batch; %.40q is not served here.", purpose), Param: "purpose"}
		case errors.Is(err, io.EOF):
			return name, purpose, content, nil
		case err != nil:
			return "", "", nil, uploadError(err)
		case parts == 16:
			return "", "", nil, &openai.BadRequest{Message: "The form has more than 16 parts.", Param: "file"}
		}
		switch part.FormName() {
		case "purpose":
			text, err := io.ReadAll(io.LimitReader(part, 64))
			if err != nil {
				return "", "", nil, uploadError(err)
			}
			purpose = string(text)
		case "file":
			if name, content, err = readPart(part); err != nil {
				return "", "", nil, uploadError(err)
			}
		}
	}
}

func readPart(part *multipart.Part) (name string, content []byte, err error) {
	content, err = io.ReadAll(part)
	if content == nil {
		content = []byte{}
	}
	name = strings.ToValidUTF8(part.FileName(), "")
	return name[:min(len(name), 200)], content, err
}

func uploadError(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return err
	}
	return &bodyError{err: err}
}

// output is what came of a job, as a file: it is made when it is asked for.
type output struct {
	job  batch.Job
	good bool
}

// The ids of the files of a job are made of its own.
const outputEnd, errorsEnd = "-output", "-errors"

// output returns the file that id names of what came of a job; ok is false where it
// names none.
func (g *Gateway) output(r *http.Request, t *tenant, id string) (o output, ok bool, err error) {
	job, isJob := strings.CutPrefix(id, "file-batch_")
	if !isJob {
		return o, false, nil
	}
	name, good := strings.CutSuffix(job, outputEnd)
	if !good {
		if name, ok = strings.CutSuffix(job, errorsEnd); !ok {
			return o, false, batch.ErrNotFound
		}
	}
	o.good = good
	if o.job, err = g.jobOf(r, t, "batch_"+name); err == nil && !o.job.Status.Over() {
		err = batch.ErrNotFound
	}
	return o, true, err
}

func (g *Gateway) showFile(_ http.ResponseWriter, r *http.Request, t *tenant) (any, error) {
	id := chi.URLParam(r, "id")
	if o, ok, err := g.output(r, t, id); ok || err != nil {
		if err != nil {
			return nil, err
		}
		var size counter
		if err := batch.WriteOutput(r.Context(), g.batches, o.job, o.good, &size); err != nil {
			return nil, err
		}
		return file{id, "file", int64(size), o.job.Ended.Unix(), o.job.Ended.Add(g.plan.Load().conf.Batches.Keep).Unix(), id + ".jsonl", "batch_output", "processed"}, nil
	}
	f, err := g.fileOf(r, t, id)
	if err != nil {
		return nil, err
	}
	return fileOf(f), nil
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// fileOf returns a file if it is t's. That it is another's looks as if it were not there.
func (g *Gateway) fileOf(r *http.Request, t *tenant, id string) (batch.File, error) {
	f, err := g.batches.File(r.Context(), id)
	if err == nil && f.Owner != t.name {
		err = batch.ErrNotFound
	}
	return f, err
}

func (g *Gateway) jobOf(r *http.Request, t *tenant, id string) (batch.Job, error) {
	j, err := g.batches.Job(r.Context(), id)
	if err == nil && j.Owner != t.name {
		err = batch.ErrNotFound
	}
	return j, err
}

func (g *Gateway) deleteFile(_ http.ResponseWriter, r *http.Request, t *tenant) (any, error) {
	id := chi.URLParam(r, "id")
	if _, err := g.fileOf(r, t, id); err != nil {
		return nil, err
	}
	if err := g.batches.DeleteFile(r.Context(), id); err != nil {
		return nil, err
	}
	return map[string]any{"id": id, "object": "file", "deleted": true}, nil
}

func (g *Gateway) sendFile(w http.ResponseWriter, r *http.Request, t *tenant) (any, error) {
	id := chi.URLParam(r, "id")
	o, ok, err := g.output(r, t, id)
	if err != nil {
		return nil, err
	}
	if ok {
		w.Header().Set("Content-Type", "application/jsonl")
		to := &timely{w: w, control: http.NewResponseController(w), idle: g.plan.Load().conf.Timeouts.Write}
		if err := batch.WriteOutput(r.Context(), g.batches, o.job, o.good, to); err != nil {
			if !to.begun {
				return nil, err
			}
			panic(http.ErrAbortHandler) // it must not look whole
		}
		g.logSimple(r, http.StatusOK, nil)
		return nil, nil
	}
	if _, err := g.fileOf(r, t, id); err != nil {
		return nil, err
	}
	give, err := g.hold()
	if err != nil {
		return nil, err
	}
	defer give()
	content, err := g.batches.Content(r.Context(), id)
	if err != nil {
		return nil, err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = (&timely{w: w, control: http.NewResponseController(w), idle: g.plan.Load().conf.Timeouts.Write}).Write(content) // the client's loss if it is gone
	g.logSimple(r, http.StatusOK, nil)
	return nil, nil
}

// timely gives a client time for each write of up to 64 KiB, not for all of them.
type timely struct {
	w       io.Writer
	control *http.ResponseController
	idle    time.Duration
	begun   bool
}

func (t *timely) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		t.begun = true
		_ = t.control.SetWriteDeadline(time.Now().Add(t.idle))
		part := p[:min(len(p), 64<<10)]
		m, err := t.w.Write(part)
		n += m
		if err != nil {
			return n, err
		}
		p = p[m:]
	}
	return n, nil
}

// job is a batch as the API has it. Times are unix seconds.
type job struct {
	ID               string          `json:"id"`
	Object           string          `json:"object"`
	Endpoint         string          `json:"endpoint"`
	Errors           *page[problem]  `json:"errors"`
	InputFileID      string          `json:"input_file_id"`
	CompletionWindow string          `json:"completion_window"`
	Status           string          `json:"status"`
	OutputFileID     *string         `json:"output_file_id"`
	ErrorFileID      *string         `json:"error_file_id"`
	CreatedAt        int64           `json:"created_at"`
	InProgressAt     *int64          `json:"in_progress_at"`
	ExpiresAt        int64           `json:"expires_at"`
	FinalizingAt     *int64          `json:"finalizing_at"`
	CompletedAt      *int64          `json:"completed_at"`
	FailedAt         *int64          `json:"failed_at"`
	ExpiredAt        *int64          `json:"expired_at"`
	CancellingAt     *int64          `json:"cancelling_at"`
	CancelledAt      *int64          `json:"cancelled_at"`
	RequestCounts    jobCounts       `json:"request_counts"`
	Metadata         json.RawMessage `json:"metadata"`
}

type jobCounts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

type problem struct {
	Code    string  `json:"code"`
	Line    *int    `json:"line"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
}

func epoch(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	s := t.Unix()
	return &s
}

func jobAs(j batch.Job) job {
	out := job{
		ID: j.ID, Object: "batch", Endpoint: j.Endpoint, InputFileID: j.Input, CompletionWindow: j.Window, Status: string(j.Status),
		CreatedAt: j.Created.Unix(), ExpiresAt: j.Expires.Unix(), CancellingAt: epoch(j.Asked),
		RequestCounts: jobCounts{j.Total, j.Completed, j.Failed}, Metadata: j.Metadata,
	}
	if len(j.Metadata) == 0 {
		out.Metadata = json.RawMessage("null")
	}
	if j.Status != batch.Failed {
		out.InProgressAt = epoch(j.Created)
	}
	ended := epoch(j.Ended)
	switch j.Status {
	case batch.Completed:
		out.CompletedAt, out.FinalizingAt = ended, ended
	case batch.Failed:
		out.FailedAt = ended
	case batch.Expired:
		out.ExpiredAt = ended
	case batch.Cancelled:
		out.CancelledAt = ended
	}
	if j.Status.Over() && j.Status != batch.Failed {
		if id := "file-" + j.ID + outputEnd; j.Completed > 0 {
			out.OutputFileID = &id
		}
		if id := "file-" + j.ID + errorsEnd; j.Completed < j.Total {
			out.ErrorFileID = &id
		}
	}
	if len(j.Problems) > 0 {
		out.Errors = &page[problem]{Object: "list"}
		for _, p := range j.Problems {
			shown := problem{Code: p.Code, Message: p.Message}
			if p.Line > 0 {
				shown.Line = &p.Line
			}
			if p.Param != "" {
				shown.Param = &p.Param
			}
			out.Errors.Data = append(out.Errors.Data, shown)
		}
	}
	return out
}

func (g *Gateway) listBatches(_ http.ResponseWriter, r *http.Request, t *tenant) (any, error) {
	stored, err := g.batches.Jobs(r.Context(), t.name)
	if err != nil {
		return nil, err
	}
	jobs := []job{}
	for _, j := range stored {
		jobs = append(jobs, jobAs(j))
	}
	return paged(r, jobs, 20, func(j job) string { return j.ID }), nil
}

func (g *Gateway) showBatch(_ http.ResponseWriter, r *http.Request, t *tenant) (any, error) {
	j, err := g.jobOf(r, t, chi.URLParam(r, "id"))
	if err != nil {
		return nil, err
	}
	return jobAs(j), nil
}

func (g *Gateway) cancelBatch(_ http.ResponseWriter, r *http.Request, t *tenant) (any, error) {
	id := chi.URLParam(r, "id")
	if _, err := g.jobOf(r, t, id); err != nil {
		return nil, err
	}
	j, err := g.batches.Cancel(r.Context(), id, time.Now())
	if err != nil {
		return nil, err
	}
	return jobAs(j), nil
}

const (
	// mostWindow is the longest time that a job may have.
	mostWindow = 24 * time.Hour

	// mostMetadata bounds what a client notes on a job, in bytes: sixteen pairs of 64
	// and 512 bytes, as OpenAI's, and their quotes.
	mostMetadata = 16 << 10
)

func (g *Gateway) createBatch(w http.ResponseWriter, r *http.Request, t *tenant) (any, error) {
	var ask struct {
		Input    string          `json:"input_file_id"`
		Endpoint string          `json:"endpoint"`
		Window   string          `json:"completion_window"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&ask); err != nil {
		return nil, &openai.BadRequest{Message: "The body has to be a JSON object with input_file_id, endpoint and completion_window."}
	}
	window, err := time.ParseDuration(ask.Window)
	switch _, ok := batchEndpoint(ask.Endpoint); {
	case !ok:
		return nil, &openai.BadRequest{Message: fmt.Sprintf("The endpoint %.80q cannot be asked in a batch.", ask.Endpoint), Param: "endpoint"}
	case err != nil || window <= 0 || window > mostWindow:
		return nil, &openai.BadRequest{Message: "The completion_window has to be a time of 24h at most, such as 24h.", Param: "completion_window"}
	case len(ask.Metadata) > mostMetadata:
		return nil, &openai.BadRequest{Message: "The metadata is too long.", Param: "metadata"}
	}
	if _, err := g.fileOf(r, t, ask.Input); err != nil {
		if errors.Is(err, batch.ErrNotFound) {
			return nil, &openai.BadRequest{Message: fmt.Sprintf("There is no file %.80q.", ask.Input), Param: "input_file_id"}
		}
		return nil, err
	}
	give, err := g.hold()
	if err != nil {
		return nil, err
	}
	defer give()
	content, err := g.batches.Content(r.Context(), ask.Input)
	if err != nil {
		return nil, err
	}
	in, problems := batch.ReadInput(content, ask.Endpoint)
	now := time.Now()
	j := batch.Job{
		ID: "batch_" + rand.Text(), Owner: t.name, Endpoint: ask.Endpoint, Input: ask.Input, Window: ask.Window, Metadata: ask.Metadata,
		Problems: problems, Total: in.Len(), Created: now, Expires: now.Add(window), Status: batch.InProgress,
	}
	if len(problems) > 0 {
		j.Status, j.Total = batch.Failed, 0
	}
	if err := g.batches.AddJob(r.Context(), j); err != nil {
		return nil, err
	}
	if j.Status == batch.Failed {
		j.Ended = now
	}
	return jobAs(j), nil
}
