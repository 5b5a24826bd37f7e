package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	pageSize    = "500" // objects of one page of a list
	listTimeout = 30 * time.Second

	// What no cluster has in one list, and no API server keeps as one object (etcd
	// takes 1.5 MiB): more is not read into memory.
	mostObjects = 20_000
	maxEvent    = 8 << 20 // bytes

	// A watch is ended by the API server after watchLeast to twice that, so that
	// those of many replicas do not come back together. One that is silent for
	// watchGrace longer is broken off.
	watchLeast = 4 * time.Minute
	watchGrace = 15 * time.Second

	// After a failure it is tried again after leastPause, then twice that, up to
	// mostPause, each time up to half less. A watch that held for steady has not
	// failed.
	leastPause = 500 * time.Millisecond
	mostPause  = 30 * time.Second
	steady     = 5 * time.Second
)

// object is what objects have in common.
type object interface{ meta() *metadata }

// metadata is that of an object.
type metadata struct {
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	DeletionTimestamp *string           `json:"deletionTimestamp"`
	Annotations       map[string]string `json:"annotations"`
}

// mirror keeps a copy of one list of objects of the API server. It is used by the
// goroutine that runs it.
type mirror[T any, P interface {
	*T
	object
}] struct {
	client *client
	path   string
	query  url.Values // selectors

	// changed is told of all objects by name, after each list and each change; it
	// must not keep them. heard is told how it goes: nil = well.
	changed func(map[string]T)
	heard   func(error)
	pause   time.Duration // the shortest after a failure

	objects map[string]T
	version string // of the list that objects are; "" = it has to be listed anew
	began   time.Time
}

var (
	errGone     = errors.New("the version is gone")
	errTooMany  = fmt.Errorf("more than %d objects", mostObjects)
	errTooLarge = fmt.Errorf("an event of more than %d bytes", maxEvent)
)

// ration reads on while something is left of it.
type ration struct {
	from io.Reader
	left int // bytes
}

func (r *ration) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errTooLarge
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// run keeps the copy until ctx ends.
func (m *mirror[T, P]) run(ctx context.Context) {
	pause := m.pause
	for ctx.Err() == nil {
		err := m.round(ctx)
		if ctx.Err() != nil {
			return
		}
		held := !m.began.IsZero() && time.Since(m.began) >= steady
		switch {
		case errors.Is(err, errGone):
			m.version = "" // listed anew
		case err == nil && held:
			pause = m.pause
			continue // watched on where it ended
		case err != nil:
			m.heard(err)
		}
		if held {
			pause = m.pause
		}
		wait := time.Duration(float64(pause) * (0.5 + rand.Float64()/2))
		var status *statusError
		if errors.As(err, &status) {
			wait = max(wait, status.after)
		}
		pause = min(2*pause, mostPause)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// round lists if it has to, and watches until the watch ends.
func (m *mirror[T, P]) round(ctx context.Context) error {
	m.began = time.Time{}
	if m.version == "" {
		if err := m.list(ctx); err != nil {
			return err
		}
	}
	return m.watch(ctx)
}

// list takes a whole copy, page by page.
func (m *mirror[T, P]) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	objects, more, version := map[string]T{}, "", ""
	for {
		query := m.with("limit", pageSize)
		if more != "" {
			query.Set("continue", more)
		}
		var page struct {
			Metadata struct{ ResourceVersion, Continue string }
			Items    []T
		}
		if err := m.client.read(ctx, m.path, query, &page); err != nil {
			return fmt.Errorf("list %s: %w", m.path, err)
		}
		if len(objects)+len(page.Items) > mostObjects {
			return fmt.Errorf("list %s: %w", m.path, errTooMany)
		}
		for i := range page.Items {
			objects[P(&page.Items[i]).meta().Name] = page.Items[i]
		}
		version, more = page.Metadata.ResourceVersion, page.Metadata.Continue
		if more == "" {
			break
		}
	}
	if version == "" {
		return fmt.Errorf("list %s: the answer has no version", m.path)
	}
	m.objects, m.version = objects, version
	m.changed(m.objects)
	m.heard(nil)
	return nil
}

func (m *mirror[T, P]) with(name, value string) url.Values {
	query := url.Values{name: {value}}
	maps.Copy(query, m.query)
	return query
}

// event is one line of a watch.
type event struct {
	Type   string
	Object json.RawMessage
}

// watch follows the list from its version on. nil = it ended as watches do.
func (m *mirror[T, P]) watch(ctx context.Context) error {
	last := watchLeast + rand.N(watchLeast)
	ctx, cancel := context.WithTimeout(ctx, last+watchGrace)
	defer cancel()
	query := m.with("watch", "1")
	query.Set("allowWatchBookmarks", "true")
	query.Set("resourceVersion", m.version)
	query.Set("timeoutSeconds", strconv.Itoa(int(last.Seconds())))
	body, err := m.client.get(ctx, m.path, query)
	if isStatus(err, http.StatusGone) {
		return errGone
	}
	if err != nil {
		if refused(err) {
			m.version = ""
		}
		return fmt.Errorf("watch %s: %w", m.path, err)
	}
	defer body.Close()
	m.began = time.Now()
	m.heard(nil)
	in := &ration{from: body}
	for lines := json.NewDecoder(in); ; {
		var e event
		in.left = maxEvent
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errTooLarge):
			m.version = "" // it would come again
			return fmt.Errorf("watch %s: %w", m.path, err)
		case err != nil:
			return fmt.Errorf("watch %s: %w", m.path, err)
		}
		if err := m.take(e); err != nil {
			return err
		}
	}
}

// refused reports whether a server that was not too busy refused to watch. A version
// that it does not know yet, after its store was put back, is 504.
func refused(err error) bool {
	var status *statusError
	if !errors.As(err, &status) {
		return false
	}
	switch status.code {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable:
		return false
	}
	return true
}

// take takes in one event.
func (m *mirror[T, P]) take(e event) error {
	if e.Type == "ERROR" {
		var status struct {
			Code    int
			Message string
		}
		if json.Unmarshal(e.Object, &status) == nil && status.Code == http.StatusGone {
			return errGone
		}
		m.version = "" // what was missed is not known
		return fmt.Errorf("watch %s: %w", m.path, &statusError{code: status.Code, message: oneLine(status.Message)})
	}
	var o T
	if err := json.Unmarshal(e.Object, &o); err != nil {
		m.version = ""
		return fmt.Errorf("watch %s: %w", m.path, err)
	}
	meta := P(&o).meta()
	if meta.ResourceVersion != "" {
		m.version = meta.ResourceVersion
	}
	switch e.Type {
	case "ADDED", "MODIFIED":
		if _, known := m.objects[meta.Name]; !known && len(m.objects) >= mostObjects {
			m.version = ""
			return fmt.Errorf("watch %s: %w", m.path, errTooMany)
		}
		m.objects[meta.Name] = o
	case "DELETED":
		delete(m.objects, meta.Name)
	default: // BOOKMARK, and what there may be one day
		return nil
	}
	m.changed(m.objects)
	return nil
}
