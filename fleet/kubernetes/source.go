package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
)

// source watches the engines of one Service or one InferencePool.
type source struct {
	client    *client
	namespace string
	pause     time.Duration // the shortest after a failure
	at        place
	tell      func()             // that the engines have changed
	stop      context.CancelFunc // ends run
	first     chan struct{}      // closed when the engines are known for the first time
	notes     *notes             // what pods say of themselves, where only their names are watched

	mu    sync.Mutex // guards what follows
	found map[string]config.Found
	pods  map[string]podRef // of found whose notes are read one by one
	known bool              // found was known once
	ill   map[string]error  // what is watched → why it cannot be
}

// podRef names a pod.
type podRef struct{ name, uid string }

func newSource(api *client, namespace string, at place, tell func()) *source {
	return &source{
		client: api, namespace: namespace, pause: leastPause, at: at, tell: tell, first: make(chan struct{}),
		notes: &notes{client: api, namespace: namespace, known: map[string]note{}, ask: make(chan struct{}, 1)}, ill: map[string]error{},
	}
}

// run watches until ctx ends.
func (s *source) run(ctx context.Context) {
	defer s.client.close()
	if s.at.where.Pool != "" {
		s.runPool(ctx)
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { s.notes.run(ctx, s.wanted, s.tell) })
	m := &mirror[endpointSlice, *endpointSlice]{
		client: s.client, pause: s.pause, path: "/apis/discovery.k8s.io/v1/namespaces/" + s.namespace + "/endpointslices",
		query:   url.Values{"labelSelector": {"kubernetes.io/service-name=" + s.at.where.Service}},
		changed: s.hearSlices, heard: func(err error) { s.hear("endpoints", err) },
	}
	m.run(ctx)
}

// hear takes note of how it goes with one of the watches.
func (s *source) hear(what string, err error) {
	s.mu.Lock()
	was := s.ill[what]
	if s.ill[what] = err; err == nil {
		delete(s.ill, what)
	}
	s.mu.Unlock()
	if (was == nil) != (err == nil) {
		s.tell()
	}
}

// state is why the engines are not known to be right; nil = they are.
func (s *source) state() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(s.ill)) {
		return fmt.Errorf("kubernetes: %w", s.ill[what])
	}
	return nil
}

// put replaces the engines.
func (s *source) put(found map[string]config.Found, pods map[string]podRef) {
	s.mu.Lock()
	s.found, s.pods = found, pods
	if !s.known {
		s.known = true
		close(s.first)
	}
	s.mu.Unlock()
	s.notes.wake()
	s.tell()
}

// wanted are the pods whose notes have to be known.
func (s *source) wanted() []podRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.pods))
}

// engines are those of now. One is left out until it is known what its pod says of
// itself, or that nobody can tell.
func (s *source) engines(now time.Time) ([]config.Found, error) {
	err := s.state()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]config.Found, len(s.found))
	for name, f := range s.found {
		if p, has := s.pods[name]; has {
			says, ok := s.notes.of(now, p)
			if !ok {
				continue
			}
			f.Says = says
		}
		out[name] = f
	}
	return sorted(out), err
}

// hearSlices works out the engines behind a Service. An endpoint may stand in
// several slices for a while, and a pod in one for each family of addresses.
func (s *source) hearSlices(slicesByName map[string]endpointSlice) {
	var noPort error
	found, pods := map[string]config.Found{}, map[string]podRef{}
	for _, name := range slices.Sorted(maps.Keys(slicesByName)) {
		slice := slicesByName[name]
		at := slice.port(s.at.where.Port, s.at.port)
		if at == "" {
			if len(slice.Endpoints) > 0 {
				noPort = fmt.Errorf("the Service %s has no port %q", s.at.where.Service, s.at.where.Port)
			}
			continue
		}
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if len(e.Addresses) == 0 || !e.ready() && !e.terminating() {
				continue
			}
			f := config.Found{Standing: config.Standing{Address: net.JoinHostPort(e.Addresses[0], at), Draining: e.terminating()}}
			key := f.Address
			if t := e.TargetRef; t != nil && t.Kind == "Pod" && t.Name != "" {
				f.Name, f.UID, key = t.Name, t.UID, t.Name
				pods[key] = podRef{t.Name, t.UID}
			}
			if was, twice := found[key]; twice {
				f = same(was, f)
			}
			found[key] = f
		}
	}
	s.hear("port", noPort)
	if noPort != nil && len(found) == 0 {
		return // those known stay
	}
	s.put(found, pods)
}

// same is the one engine that a and b are: at its IPv4 address where it has one, and
// about to end if either says so, for nobody comes back from that.
func same(a, b config.Found) config.Found {
	draining := a.Draining || b.Draining
	if cmp.Or(cmp.Compare(family(a.Address), family(b.Address)), cmp.Compare(a.Address, b.Address)) > 0 {
		a = b
	}
	a.Draining = draining
	return a
}

func family(address string) int {
	if a, err := netip.ParseAddrPort(address); err == nil && a.Addr().Unmap().Is4() {
		return 4
	}
	return 6
}

// watchPods watches the pods of p until ctx ends.
func (s *source) watchPods(ctx context.Context, p inferencePool) {
	ports := p.ports()
	m := &mirror[pod, *pod]{
		client: s.client, pause: s.pause, path: "/api/v1/namespaces/" + s.namespace + "/pods",
		query: url.Values{"labelSelector": {p.Spec.Selector.String()}},
		heard: func(err error) {
			if !errors.Is(err, context.Canceled) {
				s.hear("pods", err)
			}
		},
		changed: func(pods map[string]pod) {
			found := map[string]config.Found{}
			for _, pod := range pods {
				ending := pod.Metadata.DeletionTimestamp != nil
				if pod.Status.PodIP == "" || pod.over() || !pod.ready() && !ending {
					continue
				}
				for _, port := range ports {
					f := config.Found{
						Standing: config.Standing{Address: net.JoinHostPort(pod.Status.PodIP, port), UID: pod.Metadata.UID, Draining: ending},
						Name:     pod.Metadata.Name, Says: says(pod.Metadata.Annotations),
					}
					if len(ports) > 1 {
						f.Name += "-" + port
					}
					found[f.Name] = f
				}
			}
			s.put(found, nil)
		},
	}
	m.run(ctx)
}
