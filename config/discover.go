package config

import (
	"hash/fnv"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-dev/pacer/internal/hostname"
)

// Discover says where the addresses of a backend come from that stands for
// several engines. The zero value is a backend of its own.
type Discover struct {
	// DNS is every address that the host of the backend's url has.
	DNS bool
	// a file of target groups, as Prometheus reads them (file_sd)
	File string `yaml:"file" is:"file" unset:"none"`
	// a Service or an InferencePool of a cluster: see [kubernetes](#kubernetes)
	Kubernetes Kubernetes `yaml:"kubernetes" unset:"none"`
}

// On reports whether addresses are discovered.
func (d Discover) On() bool { return d.DNS || d.File != "" || d.Kubernetes.On() }

func (d *Discover) check(r *reader, o object) {
	switch {
	case o.has("file") && o.has("kubernetes"):
		r.problem(o.keys["kubernetes"], "file and kubernetes are given; keep one")
	case !o.has("file", "kubernetes"):
		r.problem(o.start, "%s says neither file nor kubernetes; write { file: fleet.json }, or dns alone", o.name)
	}
}

// Kubernetes says which engines of a cluster a backend stands for. It is
// comparable: equal ones have the same engines.
type Kubernetes struct {
	// the Service whose endpoints are the engines
	Service string `yaml:"service" is:"kube_name" unset:"none"`
	// the InferencePool whose pods are the engines, in place of `service`
	Pool string `yaml:"pool" is:"kube_name" unset:"none"`
	// where they are
	Namespace string `yaml:"namespace" is:"kube_name" unset:"that of the gateway's own pod"`
	// of an engine: its name in the Service, or its number
	Port string `yaml:"port" is:"kube_port" unset:"the only one there is, else that of the url"`
	// URL of the API server, as `https://10.0.0.1:6443`
	API string `yaml:"api" is:"kube_api" unset:"that of the cluster in which the gateway runs"`
	// file with a token, read again for each request
	TokenFile string `yaml:"token_file" is:"file" unset:"that of the pod's service account"`
	// PEM file with the authority of the API server, read again when it has changed
	CAFile string `yaml:"ca_file" is:"file" unset:"that of the pod's service account"`
}

// On reports whether engines are looked for in a cluster.
func (k Kubernetes) On() bool { return k.Service != "" || k.Pool != "" }

func (k *Kubernetes) check(r *reader, o object) {
	switch {
	case o.has("service") && o.has("pool"):
		r.problem(o.keys["pool"], "service and pool are given; keep one")
	case !o.has("service", "pool"):
		r.problem(o.start, "%s names no engines; write service: NAME, or pool: NAME", o.name)
	case o.has("pool") && o.has("port"):
		r.problem(o.keys["port"], "an InferencePool says its ports itself; leave port out")
	}
	if o.has("api") && !o.has("namespace") {
		r.problem(o.start, "%s has an api and no namespace; write namespace: NAME", o.name)
	}
}

func (d *Discover) decode(r *reader, v value) {
	if isMapping(v) {
		r.object(v, d)
		return
	}
	var word string
	r.oneOf(v, &word, []string{"dns"}, map[string]string{"file": "needs its name; write { file: fleet.json }", "kubernetes": "needs what to look for; write { kubernetes: { service: NAME } }"})
	d.DNS = word == "dns"
}

// MaxDiscovered bounds how many engines one backend stands for.
const MaxDiscovered = 1024

// Standing is where one engine is, and whether it takes requests.
type Standing struct {
	// Address is the host:port that is dialed in place of the url's host; "" =
	// that.
	Address string
	// UID is which process it is: another one at the same address is another
	// engine. "" = nobody says.
	UID string
	// Draining is that it is about to end: it keeps its streams and gets no more.
	Draining bool
}

// Found is one engine that was discovered.
type Found struct {
	Standing
	Name string            // "" = it is called by its address
	Says map[string]string // fields of a backend that it has otherwise, in their YAML
}

// Expand returns c with a backend for each address that was found for those
// that discover theirs, by their names, and with targets that name them all.
// Those beyond MaxDiscovered are left out, and so is one
// whose name another backend has. What is not in found has no engine.
func (c *Config) Expand(found map[string][]Found) *Config {
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
		for _, f := range found[b.Name][:min(len(found[b.Name]), MaxDiscovered)] {
			one, _ := b.With(f.Says) // what is wrong in it was said where it was found
			one.Name, one.Standing = engineName(b.Name, f), f.Standing
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

// maxName bounds the name of a backend, in bytes.
const maxName = 64

// engineName is the name of one engine of a backend: a label, a header and a
// part of the admin port's URLs, like every other. A longer one ends in what
// tells it from others that begin alike.
func engineName(backend string, f Found) string {
	called := f.Name
	if called == "" {
		host, port, err := net.SplitHostPort(f.Address)
		if err != nil {
			host = f.Address
		}
		called = host + "-" + port
	}
	name := backend + "-" + strings.Map(func(c rune) rune {
		if hostname.NameRune(c) {
			return c
		}
		return '_' // of IPv6
	}, called)
	if f.Name == "" || len(name) <= maxName {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	end := "-" + strconv.FormatUint(uint64(h.Sum32()), 36)
	return name[:maxName-len(end)] + end
}

// Engine names what stands behind b: another engine under its name has other
// users, and another speed.
func (b *Backend) Engine() string {
	switch {
	case b.Address == "":
		return b.URL
	case b.UID == "":
		return b.URL + " at " + b.Address
	}
	return b.URL + " at " + b.Address + " as " + b.UID
}
