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
	// label, header and part of admin URLs: 1 to 64 letters, digits, `. _ -`
	Name string `yaml:"name" is:"name" required:"gpu-1"`
	// base URL up to the version, such as `http://10.0.0.11:8000/v1`; no credentials, and no query but Azure's
	URL string `yaml:"url" required:"http://10.0.0.11:8000/v1"`
	// what the backend is: see [kinds](#kinds)
	Kind string `yaml:"kind" enum:"@kind" default:"openai"`
	// sent as `Authorization: Bearer`; `api-key` for Azure, `x-api-key` for Anthropic
	APIKey Secret `yaml:"api_key" is:"header_secret" unset:"none"`
	// sent in addition; names to values
	Headers map[string]Secret `yaml:"headers" is:"headers" unset:"none"`
	// `shared`: all users of the backend slow each other down, whatever their model; `separate`: only those of one model do, as on most
	// hosted APIs (see below)
	Models string `yaml:"models" enum:"shared,separate" default:"shared"`
	// hard cap on requests at once that Pacer sends, of all models together, at least 1
	MaxConcurrency int `yaml:"max_concurrency" min:"1" unset:"none"`
	// what the engine is asked to count: `inject`, `continuous` or `never`; see [usage](#usage)
	Usage string `yaml:"usage" enum:"inject,continuous,never" default:"inject"`
	// PEM file with authorities to trust in addition
	CAFile string `yaml:"ca_file" is:"ca_file" unset:"none"`
	// USD per million tokens: `input` of prompts and `output` of answers, as in `{ input: 0.20, output: 0.60 }`
	Price Price `yaml:"price" unset:"0"`
	// names to text
	Labels map[string]string `yaml:"labels" is:"labels" unset:"none"`
	// what is believed of the curve before any evidence: the name of a published curve (`pacer sim --list` prints them), tokens per
	// second of ONE stream by users at once, as in `{ 1: 52, 8: 47, 64: 31 }`, or the results of a benchmark: see [prior](#prior)
	Prior Prior `yaml:"prior" unset:"none: slow start"`
	// the backend stands for several engines: `dns` or `{ file: fleet.json }`; see [discover](#discover)
	Discover Discover `yaml:"discover" unset:"none: one engine, at url"`
	// the page that says whether the backend is well: a path on the server of `url`, a whole URL, or `off`; see [health_url](#health_url)
	HealthURL string `yaml:"health_url" unset:"/health of vllm, sglang, llamacpp and tgi, / of ollama; none for the others"`
	// page where the engine tells how many sequences it runs, whoever sent them: see [metrics_url](#metrics_url)
	MetricsURL string `yaml:"metrics_url" unset:"none: what passes through Pacer is all there is"`
	// what the machine costs in USD per hour, busy or not: what [`pacer plan`](PLAN.md) counts
	USDPerHour float64 `yaml:"usd_per_hour" eg:"2.50" unset:"0: not said"`

	// Address is the host:port that is dialed in place of the url's host; "" =
	// that. Expand sets it.
	Address string
}

// Separate reports whether each model of b is counted by itself.
func (b Backend) Separate() bool { return b.Models == modelsSeparate }

// kind is the row of b's kind.
func (b Backend) kind() *upstream.Kind { return upstream.Of(b.Kind) }

// Price is in USD per million tokens.
type Price struct {
	// of prompts
	Input float64 `yaml:"input" eg:"0.20" default:"0"`
	// of answers
	Output float64 `yaml:"output" eg:"0.60" default:"0"`
}

const (
	modelsShared   = "shared"
	modelsSeparate = "separate"

	usageInject     = "inject"
	usageContinuous = "continuous"
	usageNever      = "never"
)

// check reads the URLs, which depend on the kind and on each other. They are
// shown in no message: a key may have been put into them.
func (b *Backend) check(r *reader, o object) {
	if o.fine["url"] {
		base, wrong := b.kind().BaseURL(b.URL)
		switch b.URL = base; {
		case wrong != "":
			r.problem(o.at("url"), "%s", wrong)
		case b.kind().Doubtful(base):
			r.warn(o.at("url"), "the url does not end in a version; most engines serve under /v1, as in http://10.0.0.11:8000/v1")
		}
	}
	b.page(r, o, "metrics_url", "/metrics", &b.MetricsURL)
	if b.HealthURL != noHealth {
		b.page(r, o, "health_url", "/health", &b.HealthURL)
	}
	header, _ := b.kind().Key("")
	if _, set := b.Headers[header]; set && b.APIKey != "" {
		r.problem(o.at("headers"), "headers has an %s beside api_key; keep one", header)
	}
}

// noHealth is the health_url of a backend that is not to be looked at.
const noHealth = "off"

// page reads a field that names a page: a URL, or a path on the server of the
// backend's url.
func (b *Backend) page(r *reader, o object, field, usual string, to *string) {
	if *to == "" {
		return
	}
	page, wrong := upstream.PageURL(*to, b.URL, field, usual)
	if *to = page; wrong != "" {
		r.problem(o.at(field), "%s", wrong)
	}
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

func (r *reader) headers(v value, to *map[string]Secret) {
	headers := map[string]Secret{}
	r.pairs(v, "a mapping of header names to values", func(name string, at place, v value) {
		var s Secret
		r.headerSecret(v, &s)
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
	*to = headers
}

// headerSecret reads a secret that travels in an HTTP header.
func (r *reader) headerSecret(v value, to *Secret) {
	s, ok := r.text(v)
	switch {
	case !ok:
	case !upstream.HeaderValue(s.text):
		r.problem(v.place(), "%s holds a line break, a control character or outer blanks, which no HTTP header can carry; take them out", v.name)
	default:
		*to = Secret(s.text)
	}
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

func (r *reader) labels(v value, to *map[string]string) {
	labels := map[string]string{}
	r.pairs(v, "a mapping of names to text", func(name string, at place, v value) {
		s, ok := r.text(v)
		if name == "" || len(name) > 64 || len(s.text) > 256 {
			r.problem(at, "the label %s is too long or has no name; write a name of at most 64 bytes and a value of at most 256", quote(name))
		} else if ok {
			labels[name] = s.text
		}
	})
	*to = labels
}
