package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
)

// Options configures a Cluster.
type Options struct {
	// Dial replaces the network; nil means TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Getenv replaces os.Getenv, and AccountDir the folder where a pod has what its
	// service account is known by; nil and "" mean as every pod has them.
	Getenv     func(string) string
	AccountDir string
}

// Cluster watches the engines of backends in Kubernetes. It is safe for
// concurrent use.
type Cluster struct {
	account account
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	pause   time.Duration // the shortest after a failure; tests shorten it
	news    chan struct{}
	stop    context.CancelFunc
	ctx     context.Context

	mu      sync.Mutex // guards what follows; no other lock is taken while it is held
	sources map[place]*source
	running sync.WaitGroup
}

// place is what is watched for one backend.
type place struct {
	where config.Kubernetes
	port  string // the usual one, of the backend's url
}

// New returns a Cluster that watches nothing yet.
func New(o Options) *Cluster {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	o.AccountDir = cmp.Or(o.AccountDir, accountDir)
	ctx, stop := context.WithCancel(context.Background())
	return &Cluster{
		account: account{o.Getenv, o.AccountDir}, dial: o.Dial, pause: leastPause, news: make(chan struct{}, 1),
		ctx: ctx, stop: stop, sources: map[place]*source{},
	}
}

// Close ends every watch.
func (c *Cluster) Close() {
	c.stop()
	c.running.Wait()
}

// News has an entry after engines have changed.
func (c *Cluster) News() <-chan struct{} { return c.news }

func (c *Cluster) tell() {
	select {
	case c.news <- struct{}{}:
	default: // who listens has not looked since
	}
}

// Look returns the engines of b, sorted by name. It begins to watch those that it is
// asked for the first time, and waits for them until ctx ends. With an error the
// engines are not known to be right: nothing may be concluded from one's absence.
func (c *Cluster) Look(ctx context.Context, b config.Backend) ([]config.Found, error) {
	s, err := c.source(placeOf(b))
	if err != nil {
		return nil, err
	}
	select {
	case <-s.first:
	case <-ctx.Done():
		if err := s.state(); err != nil {
			return nil, err
		}
		return nil, errors.New("kubernetes: no answer yet")
	}
	return s.engines(time.Now())
}

func placeOf(b config.Backend) place {
	at := place{where: b.Discover.Kubernetes, port: "80"}
	if u, err := url.Parse(b.URL); err == nil {
		if u.Scheme == "https" {
			at.port = "443"
		}
		if u.Port() != "" {
			at.port = u.Port()
		}
	}
	return at
}

// source returns what watches at, and starts it if need be.
func (c *Cluster) source(at place) (*source, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sources[at]; s != nil {
		return s, nil
	}
	if c.ctx.Err() != nil {
		return nil, c.ctx.Err()
	}
	api, namespace, err := c.account.client(at.where, c.dial)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(c.ctx)
	s := newSource(api, namespace, at, c.tell)
	s.stop, s.pause = stop, c.pause
	c.sources[at] = s
	c.running.Go(func() { s.run(ctx) })
	return s, nil
}

// Keep ends the watches that no backend of list is for.
func (c *Cluster) Keep(list []config.Backend) {
	wanted := map[place]bool{}
	for _, b := range list {
		wanted[placeOf(b)] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, s := range c.sources {
		if !wanted[at] {
			s.stop()
			delete(c.sources, at)
		}
	}
}

// sorted are the engines by name.
func sorted(engines map[string]config.Found) []config.Found {
	list := make([]config.Found, 0, len(engines))
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		list = append(list, engines[name])
	}
	return list
}
