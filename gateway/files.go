package gateway

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/internal/openai"
)

// forBatch is the purpose of files with requests; that of their answers begins so.
const forBatch = "batch"

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

// errElsewhere reports a file that is none of a batch job: whoever keeps what the key
// has at a hosted API is asked for it.
var errElsewhere = errors.New("gateway: a file that a backend keeps")

// keeps reports whether a backend may keep files of t.
func (g *Gateway) keeps(t *tenant) bool {
	_, _, err := g.setup.Load().keeper(t, overrides{})
	return err == nil
}

// elsewhere is err, or errElsewhere if that is about a file that is not here and a
// backend may have it.
func (g *Gateway) elsewhere(t *tenant, err error) error {
	if errors.Is(err, batch.ErrNotFound) && g.keeps(t) {
		return errElsewhere
	}
	return err
}

func (g *Gateway) listFiles(_ http.ResponseWriter, r *http.Request, t *tenant) (any, error) {
	if purpose := r.URL.Query().Get("purpose"); purpose != "" && !strings.HasPrefix(purpose, forBatch) && g.keeps(t) {
		return nil, errElsewhere
	}
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
	p := g.setup.Load()
	give, err := g.fileRoom.uploads.take(p.sharer(r, t))
	if err != nil {
		return nil, err
	}
	defer give()
	conf := p.conf
	pace := &paced{ReadCloser: r.Body, to: w, deadline: uploadDeadline{control: http.NewResponseController(w), start: time.Now(), idle: conf.Timeouts.Write}}
	r.Body = http.MaxBytesReader(w, pace, conf.Limits.Body)
	var sent bytes.Buffer // the form as it came, if it may have to go up
	whole, passes := r.Body, g.keeps(t)
	if passes {
		r.Body = io.NopCloser(io.TeeReader(whole, &sent))
	}
	name, purpose, content, err := readUpload(r)
	var large *http.MaxBytesError
	switch {
	case err == nil && purpose != forBatch && passes:
		r.Body = io.NopCloser(io.MultiReader(&sent, whole)) // a form may go on behind its last part
		return nil, errElsewhere
	case err == nil && purpose != forBatch:
		return nil, &openai.BadRequest{Message: fmt.Sprintf("The purpose has to be batch; %.40q is not served here.", purpose), Param: "purpose"}
	case errors.As(err, &large):
		return nil, &bodyTooLargeError{limit: conf.Limits.Body}
	case err != nil:
		return nil, err
	}
	pace.deadline.end()
	now := time.Now()
	f := batch.File{ID: "file-" + rand.Text(), Owner: t.name, Name: name, Purpose: purpose, Bytes: int64(len(content)), Created: now, Expires: now.Add(conf.Batches.Keep), Half: p.several()}
	if err := g.batches.AddFile(r.Context(), f, content); err != nil {
		return nil, err
	}
	return fileOf(f), nil
}

// paced is a body that has to come at bodyRate. However long that takes, the answer
// has its time behind it.
type paced struct {
	io.ReadCloser
	to       http.ResponseWriter
	deadline uploadDeadline
	got      int64 // bytes
}

func (p *paced) Read(b []byte) (int, error) {
	p.deadline.next(p.got)
	extendWrite(p.to, 2*p.deadline.idle) // one of them for this wait
	n, err := p.ReadCloser.Read(b)
	p.got += int64(n)
	return n, err
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
	switch {
	case errors.As(err, &large):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlowBody
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
		give, err := g.fileRoom.hold(g.setup.Load(), r, t) // all of it is read for a few bytes of answer
		if err != nil {
			return nil, err
		}
		defer give()
		var size counter
		if err := batch.WriteOutput(r.Context(), g.batches, o.job, o.good, &size); err != nil {
			return nil, err
		}
		return file{id, "file", int64(size), o.job.Ended.Unix(), o.job.Ended.Add(g.setup.Load().conf.Batches.Keep).Unix(), id + ".jsonl", "batch_output", "processed"}, nil
	}
	f, err := g.fileOf(r, t, id)
	if err != nil {
		return nil, g.elsewhere(t, err)
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
		return nil, g.elsewhere(t, err)
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
	if !ok {
		if _, err := g.fileOf(r, t, id); err != nil {
			return nil, g.elsewhere(t, err)
		}
	}
	if !ok || batch.HoldsInput(o.job, o.good) {
		give, err := g.fileRoom.hold(g.setup.Load(), r, t)
		if err != nil {
			return nil, err
		}
		defer give()
	}
	to := &timely{w: w, control: http.NewResponseController(w), start: time.Now(), idle: g.setup.Load().conf.Timeouts.Write}
	if ok {
		w.Header().Set("Content-Type", "application/jsonl")
		if err := batch.WriteOutput(r.Context(), g.batches, o.job, o.good, to); err != nil {
			if !to.begun {
				return nil, err
			}
			panic(http.ErrAbortHandler) // it must not look whole
		}
		g.logSimple(r, http.StatusOK, nil)
		return nil, nil
	}
	content, err := g.batches.Content(r.Context(), id)
	if err != nil {
		return nil, err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = to.Write(content) // the client's loss if it is gone
	g.logSimple(r, http.StatusOK, nil)
	return nil, nil
}

// timely gives a client time for each write of up to 64 KiB, and for all of them as
// bodyRate has it.
type timely struct {
	w       io.Writer
	control *http.ResponseController
	start   time.Time
	idle    time.Duration
	gone    int64 // bytes
	begun   bool
}

func (t *timely) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		t.begun = true
		part := p[:min(len(p), 64<<10)]
		_ = t.control.SetWriteDeadline(slowest(t.start, t.idle, t.gone+int64(len(part))))
		m, err := t.w.Write(part)
		n, t.gone = n+m, t.gone+int64(m)
		if err != nil {
			return n, err
		}
		p = p[m:]
	}
	return n, nil
}
