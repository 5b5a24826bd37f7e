package admin

import (
	"encoding/json"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// frame is everything the page shows at one moment. It is immutable.
type frame struct {
	time    time.Time
	targets []frameTarget
	routes  routesAnswer
}

// frameTarget keeps what rarely changes apart and encoded, so that a listener
// that has it is not sent it again.
type frameTarget struct {
	state   targetState
	learned json.RawMessage // a drawing
}

// drawing is a learned curve as the page draws it. Nothing in it changes while
// no evidence comes in.
type drawing struct {
	knowledge
	Curve curveLine `json:"curve"`
	Bins  []bin     `json:"bins"`
}

// curveLine is the curve up to twice the support, at the usual prompt load.
type curveLine struct {
	N   []int `json:"n"`
	TPS line  `json:"tps"`
	Low line  `json:"low"`
}

// bin is the evidence at n as it is, not smoothed; TPS is null without any.
// Prior is the speed of a point of a prior, else null.
type bin struct {
	N             int   `json:"n"`
	TPS           brief `json:"tps"`
	Prior         brief `json:"prior"`
	P             brief `json:"p"`
	StreamSeconds brief `json:"stream_seconds"`
	Tokens        brief `json:"tokens"`
	Steps         brief `json:"steps"`
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

func (p *port) frame(now time.Time) (*frame, error) {
	f := &frame{time: now, routes: p.routes(now)}
	for _, s := range p.targets(now) {
		learned, err := json.Marshal(draw(p.o.Book.Curve(s.target)))
		if err != nil {
			return nil, err
		}
		f.targets = append(f.targets, frameTarget{state: s, learned: learned})
	}
	return f, nil
}

func draw(c *profiles.Curve) drawing {
	d := drawing{knowledge: known(c), Curve: curveLine{N: []int{}, TPS: line{}, Low: line{}}, Bins: []bin{}}
	for _, pt := range c.Points() {
		b := bin{
			N: pt.N, TPS: brief(pt.Tokens / pt.StreamSeconds), Prior: brief(math.NaN()), P: brief(pt.P),
			StreamSeconds: brief(pt.StreamSeconds), Tokens: brief(pt.Tokens), Steps: brief(pt.Steps),
		}
		if pt.Source == profiles.Prior {
			b.Prior = brief(pt.TPS)
		}
		d.Bins = append(d.Bins, b)
	}
	if !c.Known() {
		return d
	}
	_, hi := c.Support()
	for n := 1; n <= 2*hi; n += max(1, n/16) {
		pt := c.At(n)
		d.Curve.N = append(d.Curve.N, n)
		d.Curve.TPS = append(d.Curve.TPS, pt.TPS)
		d.Curve.Low = append(d.Curve.Low, pt.Low)
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
