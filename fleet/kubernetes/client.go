package kubernetes

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/readfile"
)

const (
	// accountDir is where a pod has what its service account is known by.
	accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

	dialTimeout = 5 * time.Second

	// A connection on which nothing comes is asked whether it lives, and closed
	// when nothing answers: an API server may end without a word.
	pingAfter   = 15 * time.Second
	pingTimeout = 10 * time.Second

	maxSmallFile = 1 << 20  // bytes of a token or an authority
	maxAnswer    = 64 << 20 // bytes of one page of a list
	maxError     = 64 << 10 // bytes of an error
)

// client talks to one API server.
type client struct {
	base      string // URL without a path
	tokenFile string // "" = no token
	caFile    string // "" = the system's authorities
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)

	mu   sync.Mutex // guards what follows
	pem  []byte     // what http trusts
	http *http.Client
}

// account is what a process in a pod knows of its cluster.
type account struct {
	getenv func(string) string
	dir    string
}

// client returns a client of the cluster that k names, and the namespace.
func (a account) client(k config.Kubernetes, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (*client, string, error) {
	c := &client{base: k.API, tokenFile: k.TokenFile, caFile: k.CAFile, dial: dial}
	namespace := k.Namespace
	if c.base == "" {
		host, port := a.getenv("KUBERNETES_SERVICE_HOST"), a.getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, "", errors.New("kubernetes: this process runs in no cluster (KUBERNETES_SERVICE_HOST is not set); write api, token_file and ca_file")
		}
		c.base = "https://" + net.JoinHostPort(host, port)
		c.tokenFile = cmp.Or(c.tokenFile, filepath.Join(a.dir, "token"))
		c.caFile = cmp.Or(c.caFile, filepath.Join(a.dir, "ca.crt"))
	}
	if namespace == "" {
		data, err := readfile.Regular(filepath.Join(a.dir, "namespace"), maxSmallFile)
		if err != nil {
			return nil, "", fmt.Errorf("kubernetes: which namespace this pod is in: %w", err)
		}
		namespace = strings.TrimSpace(string(data))
	}
	return c, namespace, nil
}

// client returns one that trusts what the file with the authority says now.
func (c *client) client() (*http.Client, error) {
	var pem []byte
	if c.caFile != "" {
		var err error
		if pem, err = readfile.Regular(c.caFile, maxSmallFile); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil && bytes.Equal(pem, c.pem) {
		return c.http, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if pem != nil {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no PEM certificate", c.caFile)
		}
	}
	dial := c.dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: pingAfter}).DialContext
	}
	c.close()
	c.pem = pem
	c.http = &http.Client{
		// A redirect would take the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: conf, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true,
			IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4,
			HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		},
	}
	return c.http, nil
}

// close closes idle connections. mu is held, or nobody uses c.
func (c *client) close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// statusError is an answer other than 200.
type statusError struct {
	code    int
	message string
	after   time.Duration // what Retry-After says; 0 = nothing
}

func (e *statusError) Error() string {
	if e.message == "" {
		return fmt.Sprintf("%d %s", e.code, http.StatusText(e.code))
	}
	return fmt.Sprintf("%d: %s", e.code, e.message)
}

// isStatus reports whether err is an answer with this status.
func isStatus(err error, code int) bool {
	var s *statusError
	return errors.As(err, &s) && s.code == code
}

// get asks for a path. The caller closes the body.
func (c *client) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	h, err := c.client()
	if err != nil {
		return nil, err
	}
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "pacer")
	if c.tokenFile != "" {
		token, err := readfile.Regular(c.tokenFile, maxSmallFile)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := h.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	e := &statusError{code: resp.StatusCode}
	var status struct{ Message string }
	if data, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)); json.Unmarshal(data, &status) == nil {
		e.message = oneLine(status.Message)
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.after = time.Duration(min(s, 60)) * time.Second
	}
	return nil, e
}

// read asks for one object, or one page of a list.
func (c *client) read(ctx context.Context, path string, query url.Values, into any) error {
	body, err := c.get(ctx, path, query)
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(into)
}

// maxText bounds what is said of an error, in bytes.
const maxText = 300

// oneLine is text without what would break a line of the log.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxText {
		text = text[:maxText]
	}
	return strings.ToValidUTF8(text, "")
}
