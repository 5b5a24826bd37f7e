package admin

import (
	"encoding/json"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/profiles"
)

// frame is everything the page shows at one moment. It is immutable.
type frame struct {
	time    time.Time
	targets []frameTarget
	routes  api.Routes
	encoded [][]byte // each of the routes, to be compared
}

// frameTarget keeps what rarely changes apart and encoded, so that a listener
// that has it is not sent it again.
type frameTarget struct {
	state   targetState
	learned api.Encoded[api.Drawing]
	rest    []byte // encoded, to be compared
}

// frames hands out one frame for all who ask within the same second.
type frames struct {
	take func(now time.Time) (*frame, error)

	mu   sync.Mutex // guards last; held while one is taken, so that one is enough
	last *frame
}

// frameEvery is how long a frame is fresh: a little less than the period of
// the listeners, whose ticks do not fall together.
const frameEvery = 900 * time.Millisecond

func (f *frames) at(now time.Time) (*frame, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil && now.Sub(f.last.time) < frameEvery {
		return f.last, nil
	}
	fr, err := f.take(now)
	if err == nil {
		f.last = fr
	}
	return fr, err
}

func (p *port) frame(now time.Time, w history.Window) (*frame, error) {
	states := p.o.Router.Routes(now)
	f := &frame{time: now, routes: p.routes(now, w, states)}
	for _, s := range p.targets(now, states) {
		learned, err := api.Encode(draw(p.o.Book.Curve(s.target)))
		if err != nil {
			return nil, err
		}
		rest, err := json.Marshal(struct {
			api.Identity
			api.State
		}{s.Identity, s.State})
		if err != nil {
			return nil, err
		}
		f.targets = append(f.targets, frameTarget{state: s, learned: learned, rest: rest})
	}
	for _, r := range f.routes.Routes {
		text, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		f.encoded = append(f.encoded, text)
	}
	return f, nil
}

func draw(c *profiles.Curve) api.Drawing {
	d := api.Drawing{
		Knowledge: api.KnowledgeOf(c),
		Curve:     api.CurveLine{N: []int{}, TPS: api.Line{}, Low: api.Line{}},
		Bins:      []api.Bin{},
	}
	for _, pt := range c.Points() {
		b := api.Bin{
			N: pt.N, TPS: api.Brief(pt.Tokens / pt.StreamSeconds), Prior: api.Brief(math.NaN()), P: api.Brief(pt.P),
			StreamSeconds: api.Brief(pt.StreamSeconds), Tokens: api.Brief(pt.Tokens), Steps: api.Brief(pt.Steps),
		}
		if pt.Source == profiles.Prior {
			b.Prior = api.Brief(pt.TPS)
		}
		d.Bins = append(d.Bins, b)
	}
	if !c.Known() {
		return d
	}
	prior := !math.IsNaN(c.PriorTPS(1))
	_, hi := c.Support()
	for n := 1; n <= 2*hi; n += max(1, n/16) {
		pt := c.At(n)
		d.Curve.N = append(d.Curve.N, n)
		d.Curve.TPS = append(d.Curve.TPS, pt.TPS)
		d.Curve.Low = append(d.Curve.Low, pt.Low)
		if prior {
			d.Curve.Prior = append(d.Curve.Prior, c.PriorTPS(n))
		}
	}
	return d
}

// dataURL is where clients of this machine reach the data port, "" when the
// configuration leaves the port open.
func (p *port) dataURL() string {
	if p.o.DataURL != nil {
		return p.o.DataURL()
	}
	host, service, err := net.SplitHostPort(p.settings().conf.Listen)
	if err != nil || service == "0" {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http://"
	if p.settings().conf.TLS.Cert != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, service)
}
