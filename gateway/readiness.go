package gateway

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// readyz says whether requests are welcome here: a backend is in service, and the
// gateway is not stopping. With ?free=N it also asks for room, for balancers that can
// send people elsewhere: 503 while no route with a floor has that many places free.
// A probe that takes all gateways out at once is not to ask so.
func (g *Gateway) readyz(w http.ResponseWriter, r *http.Request) {
	wanted, asks := r.URL.Query()["free"]
	switch {
	case g.endings.draining.Load():
		answerFor(errDraining).write(w, r)
	case !g.router.InService():
		answerFor(errNoBackend).write(w, r)
	case !asks:
		g.healthz(w, r)
	default:
		n, err := strconv.Atoi(wanted[0])
		if err != nil || n < 1 || len(wanted) > 1 {
			answerFor(errFree).write(w, r)
			return
		}
		if g.load.places.most(g, time.Now()) < n {
			answerFor(errFewPlaces).write(w, r)
			return
		}
		g.healthz(w, r)
	}
}

// roomAge is how old the answer of freePlaces may be: strangers may ask for it, and to find
// it takes the router's lock.
const roomAge = time.Second

// freePlaces is what the route with the most free places has. The zero value knows nothing.
// It is safe for concurrent use.
type freePlaces struct {
	mu   sync.Mutex
	at   time.Time // when it was found; zero = never
	free int
}

// most is how many users the route with the most room would take now. Where no route
// has a floor, or one has no bound that is known, there is room for all.
func (m *freePlaces) most(g *Gateway, now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.at.IsZero() && now.Sub(m.at) < roomAge {
		return m.free
	}
	const endless = int(^uint(0) >> 1)
	free, floors := 0, false
	for _, s := range g.router.Routes(now) {
		if s.Route.SLO.MinTPS <= 0 {
			continue
		}
		floors = true
		if free = max(free, s.Free); s.Unlimited {
			free = endless
		}
	}
	if !floors {
		free = endless
	}
	m.at, m.free = now, free
	return free
}
