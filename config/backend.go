package config

import (
	"crypto/x509"
	"net/http"

	"github.com/pacer-dev/pacer/internal/upstream"
)

// Backend is one upstream engine.
type Backend struct {
	// label, header and part of admin URLs: 1 to 64 letters, digits, `. _ -`
	Name string `yaml:"name" is:"name" required:"gpu-1"`
	// base URL up to the version, such as `http://10.0.0.11:8000/v1`; no credentials, and no query but Azure's
	URL string `yaml:"url" unset:"that of the [kind](#kinds), where its maker hosts it; else required"`
	// what the backend is: see [kinds](#kinds)
	Kind string `yaml:"kind" enum:"@kind" default:"openai"`
	// of a cloud, which is a part of the URL of `vertex` and `bedrock`, as `us-east-1`
	Region string `yaml:"region" is:"place" unset:"none"`
	// in Google's cloud, which is a part of the URL of `vertex`
	Project string `yaml:"project" is:"place" unset:"none"`
	// sent as `Authorization: Bearer`; `api-key` for Azure, `x-api-key` for Anthropic
	APIKey Secret `yaml:"api_key" is:"header_secret" unset:"none"`
	// file that holds the key, read again when it has changed
	APIKeyFile string `yaml:"api_key_file" is:"file" unset:"none"`
	// command that prints the key, or a token and when it expires: see [credentials](#credentials)
	APIKeyCommand Command `yaml:"api_key_command" unset:"none"`
	// several credentials, which take turns: see [credentials](#credentials)
	APIKeys []BackendKey `yaml:"api_keys" want:"a list such as [ { key: \"sk-…\" }, { file: key.txt } ]" empty:"name a key, or leave it out" unset:"none"`
	// whose library makes tokens, or signs, where there is no key: `google`, `azure` or `aws`
	Auth string `yaml:"auth" enum:"google,azure,aws" unset:"google for vertex, aws for bedrock, none for others"`
	// sent in addition; names to values
	Headers map[string]Secret `yaml:"headers" is:"headers" unset:"none"`
	// `shared`: all users of the backend slow each other down, whatever their model; `separate`: only those of one model do, as on most
	// hosted APIs (see below)
	Models string `yaml:"models" enum:"shared,separate" default:"shared"`
	// hard cap on requests at once that Pacer sends, of all models together, at least 1
	MaxConcurrency int `yaml:"max_concurrency" min:"1" unset:"none"`
	// what the engine is asked to count: `auto`, `inject`, `continuous` or `never`; see [usage](#usage)
	Usage string `yaml:"usage" enum:"auto,inject,continuous,never" default:"inject"`
	// of what a translated request asks for and the backend's dialect lacks: `true` drops it and names it in `x-pacer-dropped`; `false` answers 400
	DropParams bool `yaml:"drop_params" default:"false"`
	// what speaks HTTP/1.1 to it: `own`, or `net/http`, which is Go's, costs more, and is there should the former ever fail
	Client string `yaml:"client" enum:"own,net/http" default:"own"`
	// proxy through which requests go up: `http://`, `https://` or `socks5://` with a host and a port; or `off`: none, whatever the
	// environment says
	EgressProxy Secret `yaml:"egress_proxy" is:"proxy" unset:"HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment"`
	// PEM file with authorities to trust in addition
	CAFile string `yaml:"ca_file" is:"ca_file" unset:"none"`
	// USD per million tokens, as in `{ input: 0.20, output: 0.60 }`: see [price](#price)
	Price Price `yaml:"price" unset:"of prices, else usd_per_hour, else 0"`
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
	// what the machine costs in USD per hour, busy or not: what [`pacer plan`](PLAN.md) counts, and requests share: see [price](#price)
	USDPerHour float64 `yaml:"usd_per_hour" eg:"2.50" unset:"0: not said"`

	// Standing is of an engine that was discovered: Expand sets it.
	Standing
}

// Separate reports whether each model of b is counted by itself.
func (b Backend) Separate() bool { return b.Models == modelsSeparate }

// kind is the row of b's kind.
func (b Backend) kind() *upstream.Kind { return upstream.Of(b.Kind).At(b.URL) }

// Price is in USD per million tokens.
type Price struct {
	// of prompts
	Input float64 `yaml:"input" eg:"0.20" default:"0"`
	// of answers
	Output float64 `yaml:"output" eg:"0.60" default:"0"`
	// of the part of a prompt that a cache served
	Cached float64 `yaml:"cached" eg:"0.02" unset:"that of input"`
	// of the part of an answer that is reasoning
	Reasoning float64 `yaml:"reasoning" eg:"0.60" unset:"that of output"`
	// of the part of a prompt that is sound
	AudioInput float64 `yaml:"audio_input" eg:"40" unset:"that of input"`
	// of the part of an answer that is sound
	AudioOutput float64 `yaml:"audio_output" eg:"80" unset:"that of output"`
}

const (
	modelsShared   = "shared"
	modelsSeparate = "separate"

	usageAuto       = "auto"
	usageInject     = "inject"
	usageContinuous = "continuous"
	usageNever      = "never"
)

// check reads the URLs, which depend on the kind and on each other. They are
// shown in no message: a key may have been put into them.
func (b *Backend) check(r *reader, o object) {
	if !o.has("url") {
		b.home(r, o)
	}
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
	b.checkKeys(r, o)
	if b.Usage == usageAuto {
		if b.Usage = usageInject; b.kind().Usage.Continuous {
			b.Usage = usageContinuous
		}
	}
}

// home fills in the URL of what the maker of the kind hosts.
func (b *Backend) home(r *reader, o object) {
	if o.has("kind") && !o.fine["kind"] || o.has("region") && !o.fine["region"] || o.has("project") && !o.fine["project"] {
		return // whether it has one cannot be said
	}
	k := upstream.Of(b.Kind)
	if k.Home == "" {
		r.problem(o.start, "%s has no url; write url: http://10.0.0.11:8000/v1", o.name)
		return
	}
	var wrong string
	if b.URL, wrong = k.HomeURL(b.Region, b.Project); wrong != "" {
		r.problem(o.start, "%s", wrong)
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

func (r *reader) headers(v value, to *map[string]Secret) {
	headers := map[string]Secret{}
	r.pairs(v, "a mapping of header names to values", func(name string, at place, v value) {
		var s Secret
		r.ruled(v, &s, textRules["header_secret"])
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

func (r *reader) caFile(v value, to *string) {
	s, ok := r.text(v)
	if !ok || s.text == "" {
		return
	}
	*to = r.path(s.text)
	if r.readFile == nil {
		return
	}
	pem, ok := r.content(v.place(), *to, "ca_file "+quote(s.raw), "a PEM file")
	if ok && !x509.NewCertPool().AppendCertsFromPEM(pem) {
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
