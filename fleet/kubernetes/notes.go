package kubernetes

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// annotated begins the annotations that are ours.
const annotated = "pacer.dev/"

// says are the fields of a backend that annotations hold: pacer.dev/usd-per-hour is
// usd_per_hour. nil = none.
func says(annotations map[string]string) map[string]string {
	var out map[string]string
	for name, text := range annotations {
		if field, ours := strings.CutPrefix(name, annotated); ours {
			if out == nil {
				out = map[string]string{}
			}
			out[strings.ReplaceAll(field, "-", "_")] = text
		}
	}
	return out
}

const (
	noteTimeout = 3 * time.Second
	noteRetry   = time.Second

	// notePatience is how long an engine waits for what its pod says: after that it
	// is used as the configuration has it.
	notePatience = 10 * time.Second

	readers = 8 // pods that are read at once
)

// notes are what pods say of themselves, each read once: an EndpointSlice has the
// names of pods alone, and to read them takes less of a right than to watch all.
type notes struct {
	client    *client
	namespace string
	ask       chan struct{} // has an entry when there may be pods to read

	mu    sync.Mutex // guards what follows
	known map[string]note
}

// note is of one pod, by its UID.
type note struct {
	says  map[string]string
	read  bool
	since time.Time // when it was first asked for
}

func (n *notes) wake() {
	select {
	case n.ask <- struct{}{}:
	default:
	}
}

// of returns what p says; false = that is not known yet.
func (n *notes) of(now time.Time, p podRef) (map[string]string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.known[p.uid]
	if k.since.IsZero() {
		k.since = now
		n.known[p.uid] = k
	}
	return k.says, k.read || now.Sub(k.since) >= notePatience
}

// run reads what is wanted until ctx ends, and tells of what it has read.
func (n *notes) run(ctx context.Context, wanted func() []podRef, tell func()) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.ask:
		case <-again.C:
		}
		list := wanted()
		n.keep(list)
		read, all := n.read(ctx, list)
		if read {
			tell()
		}
		if !all {
			again.Reset(noteRetry)
		}
	}
}

// keep forgets pods that are gone.
func (n *notes) keep(list []podRef) {
	there := make(map[string]bool, len(list))
	for _, p := range list {
		there[p.uid] = true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.known, func(uid string, _ note) bool { return !there[uid] })
}

// read reads those of list that were not read yet: whether it has read any, and
// whether all are read now.
func (n *notes) read(ctx context.Context, list []podRef) (any, all bool) {
	var young []podRef
	n.mu.Lock()
	for _, p := range list {
		if !n.known[p.uid].read {
			young = append(young, p)
		}
	}
	n.mu.Unlock()
	if len(young) == 0 {
		return false, true
	}
	todo := make(chan podRef)
	var done sync.WaitGroup
	var mu sync.Mutex
	all = true
	for range min(readers, len(young)) {
		done.Go(func() {
			for p := range todo {
				ok := n.readOne(ctx, p)
				mu.Lock()
				any, all = any || ok, all && ok
				mu.Unlock()
			}
		})
	}
	for _, p := range young {
		todo <- p
	}
	close(todo)
	done.Wait()
	return any, all
}

// readOne reads one pod. That nobody may, or that it is gone, is an answer, too.
func (n *notes) readOne(ctx context.Context, p podRef) bool {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	var is pod
	err := n.client.read(ctx, "/api/v1/namespaces/"+n.namespace+"/pods/"+url.PathEscape(p.name), nil, &is)
	if err != nil && !isStatus(err, http.StatusForbidden) && !isStatus(err, http.StatusNotFound) {
		return false
	}
	k := note{read: true}
	if err == nil && is.Metadata.UID == p.uid {
		k.says = says(is.Metadata.Annotations)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	k.since = n.known[p.uid].since
	n.known[p.uid] = k
	return true
}
