package config

import (
	"crypto/x509"
	"net/http"
	"strings"

	"github.com/pacer-dev/pacer/internal/hostname"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// Backend is one upstream engine.
type Backend struct {
	Name           string
	URL            string // with /v1 or whatever the engine's prefix is; no trailing slash; kind azure: with ?api-version
	Discover       Discover
	Address        string // host:port that is dialed in place of the url's host; "" = that. Set by Expand
	Kind           string // a word of package upstream
	APIKey         Secret // sent in the header of the kind, mostly Authorization: Bearer; "" = none
	Headers        map[string]Secret
	Models         string // shared: their users slow each other down | separate: they do not
	MaxConcurrency int    // hard cap on requests at once, of all models; 0 = none
	Usage          string // inject | continuous | never
	MetricsURL     string // page with the engine's own load; "" = none
	HealthURL      string // page that tells whether it is well; "" = that of the kind, "off" = none
	CAFile         string // PEM; "" = the system's authorities alone
	Price          Price
	USDPerHour     float64 // what the machine costs, whether it works or not; 0 = not said
	Labels         map[string]string
	Prior          Prior
}

// Separate reports whether each model of b is counted by itself.
func (b Backend) Separate() bool { return b.Models == modelsSeparate }

// kind is the row of b's kind.
func (b Backend) kind() *upstream.Kind { return upstream.Of(b.Kind) }

// Price is in USD per million tokens.
type Price struct{ Input, Output float64 }

// backendMarks are the places of a backend's fields.
type backendMarks struct{ name, url, usage, metricsURL place }

const (
	modelsShared   = "shared"
	modelsSeparate = "separate"

	usageInject     = "inject"
	usageContinuous = "continuous"
	usageNever      = "never"
)

func (r *reader) backends(v value) {
	list, ok := r.list(v, "a list of backends")
	if ok && len(list) == 0 {
		r.problem(v.place(), "backends is empty; write at least one { name: gpu, url: http://10.0.0.11:8000/v1 }")
	}
	for _, v := range list {
		b, marks := r.backend(v)
		r.cfg.Backends = append(r.cfg.Backends, b)
		r.marks.backends = append(r.marks.backends, marks)
	}
}

func (r *reader) backend(v value) (Backend, backendMarks) {
	b := defaultBackend()
	var address value         // read last: what it may be depends on the kind
	var metrics, health value // and these after it, to which they may be relative
	o, ok := r.object(v, fields{
		"name":            func(v value) { r.name(v, &b.Name) },
		"url":             func(v value) { address = v },
		"discover":        func(v value) { r.discover(v, &b.Discover) },
		"kind":            r.oneOfInto(&b.Kind, upstream.Words()...),
		"api_key":         r.headerSecretInto(&b.APIKey),
		"headers":         func(v value) { b.Headers = r.headers(v) },
		"models":          r.oneOfInto(&b.Models, modelsShared, modelsSeparate),
		"max_concurrency": r.wholeInto(&b.MaxConcurrency, 1),
		"usage":           r.oneOfInto(&b.Usage, usageInject, usageContinuous, usageNever),
		"metrics_url":     func(v value) { metrics = v },
		"health_url":      func(v value) { health = v },
		"ca_file":         func(v value) { r.caFile(v, &b.CAFile) },
		"price":           func(v value) { r.price(v, &b.Price) },
		"usd_per_hour":    r.numberInto(&b.USDPerHour, "2.50"),
		"labels":          func(v value) { b.Labels = r.labels(v) },
		"prior":           func(v value) { r.prior(v, &b.Prior) },
	})
	if ok {
		o.require("name", "gpu-1")
		o.require("url", "http://10.0.0.11:8000/v1")
	}
	if address.node != nil {
		r.backendURL(address, b.kind(), &b.URL)
	}
	if o.has("metrics_url") {
		r.metricsURL(metrics, b.URL, &b.MetricsURL)
	}
	if o.has("health_url") {
		r.healthURL(health, b.URL, &b.HealthURL)
	}
	header, _ := b.kind().Key("")
	if _, set := b.Headers[header]; set && b.APIKey != "" {
		r.problem(o.at("headers"), "headers has an %s beside api_key; keep one", header)
	}
	return b, backendMarks{name: o.at("name"), url: o.at("url"), usage: o.at("usage"), metricsURL: o.at("metrics_url")}
}

// name reads the name of a backend, which is a label, a header, and a part of
// the admin port's URLs.
func (r *reader) name(v value, to *string) {
	s, ok := r.text(v)
	if !ok {
		return
	}
	*to = s.text
	if s.text == "" || len(s.text) > 64 || strings.ContainsFunc(s.text, func(c rune) bool { return !hostname.NameRune(c) }) || strings.Trim(s.text, ".") == "" {
		r.problem(v.place(), "the name %s is not allowed; write 1 to 64 letters, digits or . _ -, such as gpu-1", quote(s.raw))
	}
}

// backendURL reads a base URL. It is shown in no message: a key may have been
// put into it.
func (r *reader) backendURL(v value, kind *upstream.Kind, to *string) {
	s, ok := r.text(v)
	if !ok {
		return
	}
	base, wrong := kind.BaseURL(s.text)
	if wrong != "" {
		r.problem(v.place(), "%s", wrong)
		return
	}
	*to = base
	if kind.Doubtful(base) {
		r.warn(v.place(), "the url does not end in a version; most engines serve under /v1, as in http://10.0.0.11:8000/v1")
	}
}

func (r *reader) headers(v value) map[string]Secret {
	headers := map[string]Secret{}
	r.pairs(v, "a mapping of header names to values", func(name string, at place, v value) {
		var s Secret
		r.headerSecretInto(&s)(v)
		canonical := http.CanonicalHeaderKey(name)
		_, twice := headers[canonical]
		switch {
		case !upstream.HeaderName(name):
			r.problem(at, "%s is no name of an HTTP header; write one such as x-team", quote(name))
		case upstream.OwnHeader(canonical):
			r.problem(at, "the header %s is Pacer's own; leave it out", quote(name))
		case twice:
			r.problem(at, "the header %s is given twice; keep one", quote(name))
		default:
			headers[canonical] = s
		}
	})
	return headers
}

func (r *reader) caFile(v value, to *string) {
	s, ok := r.text(v)
	if !ok || s.text == "" {
		return
	}
	*to = r.path(s.text)
	if r.readFile == nil {
		return
	}
	pem, err := r.readFile(*to)
	switch {
	case err != nil:
		r.problem(v.place(), "the ca_file %s cannot be read (%s); name a PEM file", quote(s.raw), reason(err))
	case !x509.NewCertPool().AppendCertsFromPEM(pem):
		r.problem(v.place(), "the ca_file %s holds no certificate; name a PEM file", quote(s.raw))
	}
}

func (r *reader) price(v value, to *Price) {
	r.object(v, fields{"input": r.numberInto(&to.Input, "0.20"), "output": r.numberInto(&to.Output, "0.60")})
}

func (r *reader) labels(v value) map[string]string {
	labels := map[string]string{}
	r.pairs(v, "a mapping of names to text", func(name string, at place, v value) {
		s, ok := r.text(v)
		if name == "" || len(name) > 64 || len(s.text) > 256 {
			r.problem(at, "the label %s is too long or has no name; write a name of at most 64 bytes and a value of at most 256", quote(name))
		} else if ok {
			labels[name] = s.text
		}
	})
	return labels
}
