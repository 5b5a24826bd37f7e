package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/spelling"
	"github.com/pacer-dev/pacer/internal/upstream"
	"github.com/pacer-dev/pacer/providers"
)

// mostList is how much of a list of models is read.
const mostList = 4 << 20

// backend is one that is looked at.
type backend struct {
	conf     config.Backend
	patience time.Duration
	reach    providers.Options
	url      *url.URL
	proxy    *url.URL // that leads there; nil = none
	f        *findings
}

// examineBackend goes the way of a request, and stops at the first step that
// fails: those after it would only repeat it.
func examineBackend(ctx context.Context, patience time.Duration, cfg *config.Config, conf config.Backend, f *findings) {
	b := &backend{conf: conf, patience: patience, f: f}
	var err error
	if b.reach, err = fleet.Reach(conf, patience); err == nil {
		b.url, err = url.Parse(conf.URL)
	}
	if err != nil {
		f.fail("correct it", "%s", err)
		return
	}
	reached := false
	if b.proxy = b.wayOut(); b.proxy != nil { // which looks names up itself
		reached = b.reachesProxy(ctx)
	} else {
		reached = b.resolves(ctx) && b.connects(ctx)
	}
	if reached {
		b.asks(ctx, cfg)
	}
}

// step bounds one step.
func (b *backend) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, b.patience)
}

// resolves looks the host up.
func (b *backend) resolves(ctx context.Context) bool {
	host := b.url.Hostname()
	if b.conf.Address != "" || net.ParseIP(host) != nil {
		return true
	}
	ctx, cancel := b.step(ctx)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		b.f.fail("correct the url, or the resolver of this machine", "backend %s: the name %s cannot be resolved: %s", b.conf.Name, host, describe(err))
		return false
	}
	return true
}

// address is where connections go.
func (b *backend) address() string {
	if b.conf.Address != "" {
		return b.conf.Address
	}
	port := b.url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[b.url.Scheme]
	}
	return net.JoinHostPort(b.url.Hostname(), port)
}

// connects opens a connection, and a TLS one where the url says so.
func (b *backend) connects(ctx context.Context) bool {
	ctx, cancel := b.step(ctx)
	defer cancel()
	begin := time.Now()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.address())
	if err != nil {
		b.f.fail("start the engine, correct the url, or open the way there", "backend %s: no connection to %s: %s", b.conf.Name, b.address(), describe(err))
		return false
	}
	defer conn.Close()
	took := time.Since(begin).Round(time.Millisecond)
	if b.url.Scheme != "https" {
		b.f.ok("backend %s: %s takes connections, within %v", b.conf.Name, b.address(), took)
		return true
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if b.reach.TLS != nil {
		trust = b.reach.TLS.Clone()
	}
	trust.ServerName = b.url.Hostname()
	secure := tls.Client(conn, trust)
	if err := secure.HandshakeContext(ctx); err != nil {
		b.untrusted(err)
		return false
	}
	until(secure.ConnectionState().PeerCertificates[0].NotAfter, "backend "+b.conf.Name+": its certificate", "renew it there", b.f)
	return true
}

// untrusted says what is wrong with a certificate.
func (b *backend) untrusted(err error) {
	var (
		invalid x509.CertificateInvalidError
		unknown x509.UnknownAuthorityError
		other   x509.HostnameError
	)
	name := b.conf.Name
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		b.f.fail("set the clock of this machine", "backend %s: its certificate is not valid before %s", name, invalid.Cert.NotBefore.UTC().Format(time.DateTime))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		b.f.fail("renew it there", "backend %s: its certificate expired on %s", name, invalid.Cert.NotAfter.UTC().Format(time.DateOnly))
	case errors.As(err, &unknown):
		b.f.fail("name the authority's PEM file with ca_file", "backend %s: its certificate is of an authority that this machine does not trust", name)
	case errors.As(err, &other):
		b.f.fail("write a name of the certificate in the url, or have a certificate made for this one", "backend %s: its certificate is not for %s", name, b.url.Hostname())
	case strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		b.f.fail("write http:// in the url", "backend %s: %s does not speak TLS", name, b.address())
	default:
		b.f.fail("correct the url or the certificate", "backend %s: no TLS with %s: %s", name, b.address(), describe(err))
	}
}

// asks sends what costs nothing: for the list of models, and a request without
// content, which is refused for its key before it is refused for what it lacks.
func (b *backend) asks(ctx context.Context, cfg *config.Config) {
	p, err := providers.New(b.reach)
	if err != nil {
		b.f.fail("correct it", "%s", err)
		return
	}
	defer p.Close()
	status, list, date, err := b.send(ctx, p, http.MethodGet, "/models", nil)
	if b.proxy != nil && b.refusedByProxy(status, err) {
		return
	}
	if err != nil {
		b.f.fail("look at the engine's log", "backend %s: no answer: %s", b.conf.Name, err)
		return
	}
	if skew := time.Until(date); !date.IsZero() && skew.Abs() > time.Minute {
		b.f.warn("run NTP on both machines", "backend %s: its clock is %s of ours", b.conf.Name, aheadOrBehind(skew))
	}
	path, body := "/chat/completions", []byte("{}")
	kind := upstream.Of(b.conf.Kind).At(b.conf.URL)
	if kind.API&endpoint.Anthropic != 0 {
		path = "/messages"
	}
	key := status
	if foreign := kind.API&endpoint.Foreign != 0; !foreign { // else its list needs the key as well
		key, _, _, err = b.send(ctx, p, http.MethodPost, path, body)
	}
	if refused(status) || err == nil && refused(key) {
		if refused(key) {
			status = key
		}
		b.refusesKey(status)
		return
	}
	if b.conf.Keyed() && !(kind.Unlisted && kind.API&endpoint.Foreign != 0) {
		b.f.ok("backend %s: its key is taken", b.conf.Name)
	}
	b.models(cfg, status, list, p.Deploys(path) || kind.Unlisted)
}

func refused(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

func (b *backend) refusesKey(status int) {
	if !b.conf.Keyed() {
		b.f.fail("give the backend an api_key", "backend %s: it wants a key (status %d), and none is configured", b.conf.Name, status)
		return
	}
	b.f.fail("correct its api_key", "backend %s: its key is refused (status %d)", b.conf.Name, status)
}

// send sends one request within patience. What it answers is read as far as a list
// of models may go.
func (b *backend) send(ctx context.Context, p *providers.Backend, method, path string, body []byte) (status int, answer []byte, date time.Time, err error) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	call := providers.Call{Method: method, Path: path, Header: http.Header{"Content-Type": {"application/json"}}}
	if body != nil {
		call.Body = text(body)
	}
	resp, err := p.Send(ctx, call)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("none within %v", b.patience)
		}
		return 0, nil, time.Time{}, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, mostList))
	date, _ = http.ParseTime(resp.Header.Get("Date")) // zero = it tells none
	return resp.StatusCode, answer, date, err
}

// text is a body in memory.
type text []byte

func (t text) Len() int64 { return int64(len(t)) }

func (t text) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(t)), nil }

// models compares what the routes ask for with what the backend lists.
func (b *backend) models(cfg *config.Config, status int, list []byte, deployed bool) {
	name := b.conf.Name
	var answer struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
		Models []struct { // of Gemini and Cohere
			Name string `json:"name"`
		} `json:"models"`
		Next string `json:"nextPageToken"`
		More bool   `json:"has_more"`
	}
	switch {
	case deployed:
		b.f.ok("backend %s: answers; it has no list of what it serves, so names are not compared", name)
		return
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		mend := "end the url in the version, mostly /v1"
		if versioned(b.url) {
			mend = "see whether an engine is there: curl " + b.url.JoinPath("models").Redacted()
		}
		b.f.warn(mend, "backend %s: it answers and has no list of models (status %d), so the url may be wrong", name, status)
		return
	case status >= 300 && status < 400:
		b.f.fail("write the url that it leads to", "backend %s: it leads elsewhere (status %d), which Pacer does not follow", name, status)
		return
	case status >= 400:
		b.f.warn("look at the engine's log", "backend %s: asked for its models it answers with status %d", name, status)
		return
	case json.Unmarshal(list, &answer) != nil:
		b.f.fail("correct the url; mostly it ends in /v1", "backend %s: asked for its models it answers with something that is not JSON", name)
		return
	}
	var known []string
	for _, m := range answer.Data {
		known = append(known, strings.TrimPrefix(m.ID, "models/"))
	}
	for _, m := range answer.Models {
		known = append(known, strings.TrimPrefix(m.Name, "models/"))
	}
	answer.More = answer.More || answer.Next != ""
	wrong := 0
	for route, model := range asked(cfg, name) {
		if slices.Contains(known, model) || slices.Contains(known, model+":latest") || answer.More {
			continue
		}
		wrong++
		b.f.fail(b.instead(model, known), "backend %s: it does not know the model %q of route %s", name, model, route)
	}
	if wrong == 0 {
		b.f.ok("backend %s: it knows the models of its routes", name)
	}
}

// versioned reports whether the path of u has a version, as /v1 or /v1beta/openai.
func versioned(u *url.URL) bool {
	return slices.ContainsFunc(strings.Split(u.Path, "/"), func(step string) bool {
		return len(step) > 1 && step[0] == 'v' && step[1] >= '0' && step[1] <= '9'
	})
}

// instead says what to write for a model that is not there.
func (b *backend) instead(model string, known []string) string {
	if len(known) == 0 {
		return "have it load one: its list is empty"
	}
	lower := map[string]string{}
	for _, k := range known {
		lower[strings.ToLower(k)] = k
	}
	if near := spelling.Nearest(model, slices.Collect(maps.Keys(lower))); near != "" {
		return fmt.Sprintf("write %q", lower[near])
	}
	model = strings.ToLower(model)
	for _, l := range slices.Sorted(maps.Keys(lower)) { // meta-llama/Llama-3.1-8B for llama-3.1-8b
		if strings.Contains(l, model) || strings.Contains(model, l) {
			return fmt.Sprintf("write %q", lower[l])
		}
	}
	if len(known) > 5 {
		return fmt.Sprintf("write one of its %d models, such as %q", len(known), known[0])
	}
	return fmt.Sprintf("write one of %q", known)
}

// asked yields the routes that ask the backend for a model of a name that is known
// beforehand, in the order of the file.
func asked(cfg *config.Config, name string) func(yield func(route, model string) bool) {
	return func(yield func(route, model string) bool) {
		seen := map[string]bool{}
		for _, r := range cfg.Routes {
			for _, t := range r.Targets {
				model := t.Model
				if _, wild := config.Wildcard(r.Models[0]); model == "" && !wild {
					model = r.Models[0]
				}
				if _, wild := config.Wildcard(model); wild {
					continue // what clients name
				}
				if t.Backend != name || model == "" || seen[model] {
					continue
				}
				seen[model] = true
				if !yield(r.Models[0], model) {
					return
				}
			}
		}
	}
}
