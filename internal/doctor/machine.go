package doctor

import (
	"crypto/tls"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/profiles"
)

// machine looks whether there is room for the configured limits.
func machine(o Options, f *findings) {
	for _, text := range o.Room {
		f.said(Warn, text)
	}
	if len(o.Room) == 0 {
		f.ok("open files and memory are enough for limits.streams %d and limits.buffered %d MiB", o.Config.Limits.Streams, o.Config.Limits.Buffered>>20)
	}
}

// certificate looks at the files of the data port.
func certificate(files config.TLS, f *findings) {
	if files.Cert == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		f.fail("name a PEM file each that belong together", "tls: certificate and key cannot be read: %s", describe(err))
		return
	}
	until(pair.Leaf.NotAfter, "tls: the certificate of the data port", "renew it; new files are read by themselves", f)
}

// until looks when a certificate ends.
func until(end time.Time, what, mend string, f *findings) {
	left := time.Until(end)
	switch day := end.UTC().Format(time.DateOnly); {
	case left <= 0:
		f.fail(mend, "%s expired on %s", what, day)
	case left < soon:
		f.warn(mend, "%s expires on %s, in %d days", what, day, int(left.Hours()/24))
	default:
		f.ok("%s is valid until %s", what, day)
	}
}

// floors looks whether what is believed of the targets can give each floor to one
// user alone.
func floors(cfg *config.Config, f *findings) {
	book := profiles.NewBook(profiles.Options{})
	if err := fleet.Believe(book, cfg); err != nil {
		f.fail("write the name of a published curve", "%s", err)
		return
	}
	book.Apply(time.Now(), nil, nil) // draws the curves of the priors
	for _, r := range fleet.Topology(cfg).Routes {
		if r.SLO.MinTPS <= 0 {
			continue
		}
		best, unknown := 0.0, false
		for _, t := range r.Targets {
			c := book.Curve(t.Target)
			tps := 0.0
			if c.Known() && !c.Borrowed() {
				tps = c.TPS(1)
			} else {
				unknown = true
			}
			best = max(best, tps)
			if tps > 0 && tps < r.SLO.MinTPS && len(r.Targets) > 1 {
				f.warn("take the target out, or lower min_tps", "route %s: min_tps %g is out of reach of %s, which gives a single user %.1f", r.Name, r.SLO.MinTPS, t.Backend, tps)
			}
		}
		switch {
		case best == 0:
			f.ok("route %s: min_tps %g; no target has a prior, so whether it can be kept shows in the first minutes", r.Name, r.SLO.MinTPS)
		case best >= r.SLO.MinTPS:
			f.ok("route %s: min_tps %g is within reach: a single user gets %.1f", r.Name, r.SLO.MinTPS, best)
		case unknown:
			f.warn("lower min_tps, or add a faster target", "route %s: min_tps %g is out of reach of every target with a prior: a single user gets %.1f", r.Name, r.SLO.MinTPS, best)
		default:
			f.fail("lower min_tps, or add a faster target", "route %s: min_tps %g is out of reach: a single user gets %.1f at most", r.Name, r.SLO.MinTPS, best)
		}
	}
}
