package gateway

import (
	"context"
	"sync"

	"github.com/pacer-dev/pacer/batch"
)

// mostVerdicts is how many are remembered, of some 5 KB at most each.
const mostVerdicts = 1000

// verdicts remember what files of requests are worth: a file never changes, and to
// check a large one costs a good part of a second, which a request of 200 bytes asks for.
// One client has one file checked at a time. The zero value knows none; it is safe for
// concurrent use.
type verdicts struct {
	mu    sync.Mutex // guards what follows
	known map[checkedFile]fileVerdict
	order []checkedFile    // the keys of known, the oldest first
	turns map[string]*turn // by client, of those who check or wait
}

// checkedFile is a file, and the endpoint that its requests have to be for.
type checkedFile struct{ id, endpoint string }

// fileVerdict is what was found.
type fileVerdict struct {
	lines    int
	problems []batch.Problem // none = it may be done
}

// turn is whose turn it is among the requests of one client.
type turn struct {
	free  chan struct{} // holds a token for who checks
	users int           // who check or wait; guarded by verdicts.mu
}

// of returns the verdict on f, which check finds unless it is known. A request of who
// waits while another one has a file checked.
func (v *verdicts) of(ctx context.Context, who string, f checkedFile, check func() (fileVerdict, error)) (fileVerdict, error) {
	v.mu.Lock()
	if found, ok := v.known[f]; ok {
		v.mu.Unlock()
		return found, nil
	}
	t := v.turns[who]
	if t == nil {
		if v.known == nil {
			v.known, v.turns = map[checkedFile]fileVerdict{}, map[string]*turn{}
		}
		t = &turn{free: make(chan struct{}, 1)}
		v.turns[who] = t
	}
	t.users++
	v.mu.Unlock()
	defer v.leave(who, t)
	select {
	case t.free <- struct{}{}:
		defer func() { <-t.free }()
	case <-ctx.Done():
		return fileVerdict{}, &goneError{err: ctx.Err()}
	}
	v.mu.Lock()
	found, ok := v.known[f]
	v.mu.Unlock()
	if ok {
		return found, nil
	}
	found, err := check()
	if err == nil {
		v.remember(f, found)
	}
	return found, err
}

func (v *verdicts) leave(who string, t *turn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(v.turns, who)
	}
}

func (v *verdicts) remember(f checkedFile, found fileVerdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.known[f]; ok {
		return
	}
	if len(v.order) == mostVerdicts {
		delete(v.known, v.order[0])
		v.order = v.order[1:]
	}
	v.known[f], v.order = found, append(v.order, f)
}

// checkFile reads a file of requests to endpoint.
func checkFile(ctx context.Context, store batch.Store, id, endpoint string) (fileVerdict, error) {
	content, err := store.Content(ctx, id)
	if err != nil {
		return fileVerdict{}, err
	}
	in, problems := batch.ReadInput(content, endpoint)
	return fileVerdict{in.Len(), problems}, nil
}
