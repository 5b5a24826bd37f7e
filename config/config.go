package config

import (
	"crypto/sha256"
	"crypto/tls"
	"net/netip"
	"strings"
	"time"
)

// Config is one pacer.yaml, complete and valid. It is immutable, and so safe
// for concurrent use. The comment of a field that stands in the file is its row
// in docs/CONFIG.md and its description in the JSON Schema.
type Config struct {
	// address of the data port, `host:port`; port 0 is any free one; without host, all addresses. With no `keys` the port is open
	// to whoever reaches it
	Listen string `yaml:"listen" is:"address" default:"127.0.0.1:8080"`
	// the [admin port](#admin)
	Admin Admin `yaml:"admin"`
	// where curves and load are shared: see [store](#store)
	Store Store `yaml:"store" unset:"memory"`
	// how many gateways share the backends, until the store tells
	Replicas int `yaml:"replicas" min:"1" default:"1"`
	// what is logged: see [log](#log)
	Log Log `yaml:"log"`
	// the data port's certificate: see [tls](#tls)
	TLS TLS `yaml:"tls" unset:"plain"`
	// web pages that may call the data port: see [cors](#cors)
	CORS CORS `yaml:"cors" unset:"none"`
	// who passes streams on: `loop` has one loop for each processor do so, at a part of the CPU and the memory, where both sides are
	// HTTP/1.1, on Linux, and the stream is 250 ms old; `goroutines` has one for each stream, which is the way of everything else in
	// any case; `net/http` has goroutines too, and Go's own server for all requests, at more CPU for each
	Relay string `yaml:"relay" enum:"goroutines,loop,net/http" default:"loop"`
	// see [timeouts](#timeouts)
	Timeouts Timeouts `yaml:"timeouts"`
	// see [limits](#limits)
	Limits Limits `yaml:"limits"`
	// jobs of many requests: see [batches](#batches)
	Batches Batches `yaml:"batches"`
	// sessions over WebSocket: see [realtime](#realtime)
	Realtime Realtime `yaml:"realtime"`
	// the engines: see [backends](#backends)
	Backends []Backend `yaml:"backends" required:"[ { name: gpu, url: http://10.0.0.11:8000/v1 } ]" want:"a list of backends" empty:"write at least one { name: gpu, url: http://10.0.0.11:8000/v1 }"`
	// what clients may name: see [routes](#routes)
	Routes []Route `yaml:"routes" required:"[ { model: chat, targets: [ { backend: gpu } ] } ]" want:"a list of routes" empty:"write at least one { model: chat, targets: [ { backend: gpu-1 } ] }"`
	// what `pacer picker` tells an Envoy: see [picker](#picker)
	Picker Picker `yaml:"picker"`
	// who may call: see [keys](#keys)
	Keys []Key `yaml:"keys" want:"a list of keys" unset:"none: open"`
	// several keys together: see [teams](#teams)
	Teams []Team `yaml:"teams" want:"a list of teams" unset:"none"`
	// file with the prices of models: see [price](#price)
	Prices Prices `yaml:"prices" unset:"none"`
	// what is told apart of what was used: see [usage of keys](#usage-of-keys)
	Usage Usage `yaml:"usage"`
	// who is told when a budget ends: see [webhooks](#webhooks)
	Webhooks []Webhook `yaml:"webhooks" want:"a list of webhooks" unset:"none"`
	// send `x-pacer-backend`, `x-pacer-decision` and `x-pacer-predicted-tps` although there are keys; without keys they are always sent
	ExposeDecision bool `yaml:"expose_decision" default:"false"`
	// names under which [web pages](#web-pages) may use a data port without `keys`, without scheme and port, beside loopback,
	// addresses and the name in `listen`
	Hosts []string `yaml:"hosts" is:"host" want:"a list of names" unset:"none"`
	// addresses and networks (`10.0.0.7`, `10.0.0.0/8`) whose `X-Forwarded-For` is believed: `client` in the log is then the last
	// address there that is not trusted. Nothing else goes by it
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies" is:"network" want:"a list of addresses and networks" unset:"none: client is who is connected"`

	// directory of this gateway alone in which it keeps over a restart what it knows of the last hours: see
	// [what is kept](#state). It is made where it is missing
	StateDir string `yaml:"state_dir" unset:"nothing is kept"`

	// source is what Source returns.
	source Source
}

// WarningsSince are those that before did not have: a key that stands in plain text is
// warned of once, wherever it stands by now. The others are said again, as they may be read
// for the first time.
func (c *Config) WarningsSince(before *Config) (news []string) {
	known := map[[sha256.Size]byte]bool{}
	for _, key := range before.source.plain {
		known[key] = true
	}
	for _, w := range c.source.Warnings {
		if key, plain := c.source.plain[w]; !plain || !known[key] {
			news = append(news, w)
		}
	}
	return news
}

// RouteNames are what clients may name.
func (c *Config) RouteNames() (names []string) {
	for _, r := range c.Routes {
		names = append(names, r.Models...)
	}
	return names
}

// Goals are the attainment goals of the routes, by each of their names.
func (c *Config) Goals() map[string]float64 {
	goals := map[string]float64{}
	for _, r := range c.Routes {
		for _, name := range r.Models {
			goals[name] = r.SLO.Attainment
		}
	}
	return goals
}

// Admin is the admin port.
type Admin struct {
	// address of metrics, API and page
	Listen string `yaml:"listen" is:"address" default:"127.0.0.1:9090"`
	// what changing calls have to bring
	Token Secret `yaml:"token" is:"header_secret" unset:"none: changing calls are refused"`
	// tokens with a role each: see [roles](#roles)
	Tokens []AdminToken `yaml:"tokens" want:"a list of tokens" unset:"none"`
	// whether looking needs a token too: see [roles](#roles)
	Private bool `yaml:"private" default:"false"`
	// people sign in by OpenID Connect: see [sign-in](#sign-in)
	OIDC OIDC `yaml:"oidc" unset:"nobody signs in"`
	// profiles of this process under `/debug/pprof/`, as `go tool pprof` reads them, for tokens of the role `admin` alone
	Pprof bool `yaml:"pprof" default:"false"`
}

// AdminToken is one token of the admin port.
type AdminToken struct {
	// how the audit log calls whoever shows it
	Name string `yaml:"name" is:"key_name" required:"alice"`
	// the token itself
	Token Secret `yaml:"token" is:"header_secret" required:"${ALICE_TOKEN}"`
	// `view` may look, `operate` may drain and resume backends too, `admin` may hand out keys and read the audit log too
	Role string `yaml:"role" enum:"view,operate,admin" required:"operate"`
}

// check refuses a token that anybody could show.
func (t *AdminToken) check(r *reader, o object) {
	if o.fine["token"] && t.Token == "" {
		r.problem(o.at("token"), "token is empty; write one such as openssl rand -hex 32 prints")
	}
}

// Log says what is logged, and how.
type Log struct {
	// the least that is said
	Level string `yaml:"level" enum:"debug,info,warn,error" default:"info"`
	// a line of JSON for each event, or text for people
	Format string `yaml:"format" enum:"json,text" unset:"text on a terminal, else json"`
}

// TLS holds the files of the data port's certificate and key; both "" = plain.
type TLS struct {
	// PEM file of the certificate; with `key`. The port then speaks HTTP/2 too
	Cert string `yaml:"cert" unset:"plain"`
	// PEM file of its key. Both files are read again when they change; what cannot be read leaves the old certificate in use
	Key string `yaml:"key" unset:"plain"`
}

// CORS says which web pages may call the data port; no origins = none.
type CORS struct {
	// a list of `scheme://host[:port]`; `[ "*" ]` is every page
	Origins []string `yaml:"origins" is:"origin" want:"a list of origins" unset:"none"`
	// how long a browser may remember the answer
	MaxAge time.Duration `yaml:"max_age" default:"10m"`
}

// Timeouts are those of the data port and its backends; all but Linger above 0.
type Timeouts struct {
	// to open a connection to a backend
	Connect time.Duration `yaml:"connect" above:"0" default:"5s"`
	// from sending a request to the first byte of its answer, and in a stream to its first token. An answer that is generated and not
	// streamed has at least 10 minutes, since it is silent until its last token (embeddings, `rerank` and moderations are not). Who
	// waits at an engine that [hangs](#health_url) goes elsewhere sooner. Comments alone (`: ping`) keep a stream open for as long, or for
	// `silence` if that is longer
	FirstByte time.Duration `yaml:"first_byte" above:"0" default:"120s"`
	// between two reads from a backend; and from the head of an error answer to its words: what is there by then is told
	Silence time.Duration `yaml:"silence" above:"0" default:"60s"`
	// for a whole request
	Total time.Duration `yaml:"total" above:"0" default:"30m"`
	// for one write to a client
	Write time.Duration `yaml:"write" above:"0" default:"30s"`
	// for running requests to finish when the program ends
	Drain time.Duration `yaml:"drain" above:"0" default:"30s"`
	// the part of `drain` in which new requests are still taken after SIGTERM, while `/readyz` says 503, so that a load balancer has
	// time to notice. At most half of `drain` counts; `0s`: none. Ctrl-C does not linger
	Linger time.Duration `yaml:"linger" default:"3s"`
}

// Limits bounds what clients can make grow; sizes in bytes; all above 0.
type Limits struct {
	// size of one request body
	Body int64 `yaml:"body" default:"32MiB"`
	// size of one request's headers
	Header int64 `yaml:"header" default:"64KiB"`
	// requests at once. Where there are several `keys`, one of them may be sending the bodies of half as many, and over half of the
	// connections that there may be
	Streams int `yaml:"streams" min:"1" default:"20000"`
	// waiters in the line of one route. Who waits at a backend that [hangs](#health_url), and stands in line for a place elsewhere, is
	// none of them; of those there may be as many more
	Queue int `yaml:"queue" min:"1" default:"1000"`
	// bodies held at once, in all: of requests until their answers begin, of answers that are one document, and of events that are not
	// whole. At least `body`, better many times that. Where there are several `keys`, one of them holds half of it at most. What is
	// refused for want of it is told 503 `gateway_overloaded`. See [memory](#memory)
	Buffered int64 `yaml:"buffered" default:"1GiB"`
	// what is remembered of prompts, as hashes, to know which target has them in its cache; each target has the same share. 72 bytes for
	// some 64 tokens
	Prefixes int64 `yaml:"prefixes" default:"64MiB"`
}

// Batches bounds the jobs of /v1/batches.
type Batches struct {
	// requests of jobs that one gateway has under way at once
	Slots int `yaml:"slots" min:"1" default:"64"`
	// room for all uploaded files and what came of the jobs. Where there are several `keys`, one of them has half of it at most
	Bytes int64 `yaml:"bytes" default:"256MiB"`
	// how long files stay, and jobs after their end
	Keep time.Duration `yaml:"keep" above:"0" default:"168h"`
}

// Realtime bounds the sessions of /v1/realtime.
type Realtime struct {
	// how long neither side of a session may send anything
	Idle time.Duration `yaml:"idle" above:"0" default:"5m"`
	// how long a session may last
	Total time.Duration `yaml:"total" above:"0" default:"1h"`
	// size of one message, either way
	Message int64 `yaml:"message" default:"16MiB"`
}

func (l *Limits) check(r *reader, o object) {
	if l.Body <= l.Buffered {
		return
	}
	field := "buffered"
	if !o.has(field) {
		field = "body"
	}
	r.problem(o.at(field), "one body may be larger than all buffered ones; write a buffered of at least body, better a multiple")
}

// check reads the certificate of the data port. Both fields empty is the same
// as no tls: at all.
func (t *TLS) check(r *reader, o object) {
	if !o.clean() {
		return
	}
	if (t.Cert == "") != (t.Key == "") {
		r.problem(o.start, "tls needs both cert and key; write the files of both, or leave tls out for a plain port")
		return
	}
	t.Cert, t.Key = r.path(t.Cert), r.path(t.Key)
	if r.readFile == nil || t.Cert == "" {
		return
	}
	cert, hasCert := r.content(o.at("cert"), t.Cert, "certificate "+quote(o.raw("cert")), "a PEM file")
	key, hasKey := r.content(o.at("key"), t.Key, "key "+quote(o.raw("key")), "a PEM file")
	if hasCert && hasKey {
		if _, err := tls.X509KeyPair(cert, key); err != nil {
			r.problem(o.at("cert"), "cert and key do not go together (%s); name a PEM certificate and its own key", strings.TrimPrefix(err.Error(), "tls: "))
		}
	}
}
