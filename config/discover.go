package config

import (
	"net"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/hostname"
)

// Discover says where the addresses of a backend come from that stands for
// several engines. The zero value is a backend of its own.
type Discover struct {
	// DNS is every address that the host of the backend's url has.
	DNS bool
	// a file of target groups, as Prometheus reads them (file_sd)
	File string `yaml:"file" is:"file" required:"fleet.json"`
}

// On reports whether addresses are discovered.
func (d Discover) On() bool { return d.DNS || d.File != "" }

func (d *Discover) decode(r *reader, v value) {
	if isMapping(v) {
		r.object(v, d)
		return
	}
	var word string
	r.oneOf(v, &word, []string{"dns"}, map[string]string{"file": "needs its name; write { file: fleet.json }"})
	d.DNS = word == "dns"
}

// MaxDiscovered bounds how many engines one backend stands for.
const MaxDiscovered = 256

// Expand returns c with a backend for each address that was found for those
// that discover theirs, by their names, and with targets that name them all.
// Addresses are host:port, sorted; beyond 256 they are left out, and so is one
// whose name another backend has. What is not in found has no engine.
func (c *Config) Expand(found map[string][]string) *Config {
	next := *c
	next.Backends, next.Routes = nil, slices.Clone(c.Routes)
	names := map[string][]string{} // of a backend that discovers → of its engines
	taken := map[string]bool{}
	for _, b := range c.Backends {
		taken[b.Name] = true
	}
	for _, b := range c.Backends {
		if !b.Discover.On() {
			next.Backends = append(next.Backends, b)
			continue
		}
		names[b.Name] = nil
		for _, address := range found[b.Name][:min(len(found[b.Name]), MaxDiscovered)] {
			one := b
			one.Name, one.Address = engineName(b.Name, address), address
			if taken[one.Name] {
				continue
			}
			taken[one.Name] = true
			next.Backends = append(next.Backends, one)
			names[b.Name] = append(names[b.Name], one.Name)
		}
	}
	for i := range next.Routes {
		var targets []Target
		for _, t := range next.Routes[i].Targets {
			engines, many := names[t.Backend]
			if !many {
				targets = append(targets, t)
			}
			for _, name := range engines {
				t.Backend = name
				targets = append(targets, t)
			}
		}
		next.Routes[i].Targets = targets
	}
	return &next
}

// engineName is the name of one engine of a backend: a label, a header and a
// part of the admin port's URLs, like every other.
func engineName(backend, address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	clean := strings.Map(func(c rune) rune {
		if hostname.NameRune(c) {
			return c
		}
		return '_' // of IPv6
	}, host)
	return backend + "-" + clean + "-" + port
}

// Engine names what stands behind b: another engine under its name has other
// users, and another speed.
func (b *Backend) Engine() string {
	if b.Address == "" {
		return b.URL
	}
	return b.URL + " at " + b.Address
}
