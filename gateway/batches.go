package gateway

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
)

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
		t, err := g.setup.Load().authenticate(r)
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		v, err := serve(w, r, t)
		switch {
		case errors.Is(err, errElsewhere):
			g.journey(endpoint.Of("/files"), r.URL.Path[:strings.Index(r.URL.Path, "/files")])(w, r)
		case errors.Is(err, batch.ErrNotFound):
			g.refuse(w, r, &openai.BadRequest{Message: "There is no file or batch of this id.", Param: "id", Code: notThere})
		case errors.Is(err, batch.ErrHalf):
			conf := g.setup.Load().conf.Batches
			g.refuse(w, r, &openai.BadRequest{Message: fmt.Sprintf("One key has half of the room for files and batches at most, %d bytes and half of their number, and this would be more. Delete files that are done with, or wait: files, and batches that are over, go after %v. A file that is larger by itself fits when batches.bytes is raised.", conf.Bytes/2, conf.Keep), Param: "file", Code: "files_full"})
		case errors.Is(err, batch.ErrFull):
			g.refuse(w, r, &openai.BadRequest{Message: "There is no room for another file or batch. Delete files that are done with, or ask whoever runs this gateway for more (batches.bytes).", Param: "file", Code: "files_full"})
		case errors.Is(err, batch.ErrMany):
			g.refuse(w, r, &openai.BadRequest{Message: fmt.Sprintf("This key has %d batches that run, as many as may. Wait until some are over, or cancel some.", batch.MostRunning), Code: "too_many_batches"})
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
	p := g.setup.Load()
	who, _ := p.sharer(r, t)
	found, err := g.fileRoom.verdicts.of(r.Context(), who, checkedFile{ask.Input, ask.Endpoint}, func() (fileVerdict, error) {
		give, err := g.fileRoom.hold(p, r, t)
		if err != nil {
			return fileVerdict{}, err
		}
		defer give()
		return checkFile(r.Context(), g.batches, ask.Input, ask.Endpoint)
	})
	extendWrite(w, p.conf.Timeouts.Write) // it may have waited
	if err != nil {
		return nil, err
	}
	now := time.Now()
	j := batch.Job{
		ID: "batch_" + rand.Text(), Owner: t.name, Endpoint: ask.Endpoint, Input: ask.Input, Window: ask.Window, Metadata: ask.Metadata,
		Problems: found.problems, Total: found.lines, Created: now, Expires: now.Add(window), Status: batch.InProgress, Half: p.several(),
	}
	if len(found.problems) > 0 {
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
