package doctor

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// wayOut is the proxy that leads to the backend, nil where none does.
func (b *backend) wayOut() *url.URL {
	if b.reach.Proxy == nil {
		return nil
	}
	proxy, err := b.reach.Proxy(&http.Request{URL: b.url})
	if err != nil {
		return nil
	}
	return proxy
}

// named says where the proxy is configured: of the backend, or for the whole process.
func (b *backend) named() string {
	if b.conf.EgressProxy.Reveal() != "" {
		return "egress_proxy"
	}
	return "HTTPS_PROXY or HTTP_PROXY of the environment (NO_PROXY and egress_proxy: off leave it out)"
}

// reachesProxy opens a connection to the proxy. Its credentials are in no finding.
func (b *backend) reachesProxy(ctx context.Context) bool {
	ctx, cancel := b.step(ctx)
	defer cancel()
	at := b.proxy.Host
	if b.proxy.Port() == "" {
		at = net.JoinHostPort(b.proxy.Hostname(), map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[b.proxy.Scheme])
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err != nil {
		b.f.fail("start it, or correct "+b.named(), "backend %s: no connection to the proxy %s: %s", b.conf.Name, at, describe(err))
		return false
	}
	conn.Close()
	b.f.ok("backend %s: is reached by way of the proxy %s", b.conf.Name, at)
	return true
}

// refusedByProxy reports, and says, that a request has not come through the proxy.
// Towards TLS it refuses the CONNECT, of which net/http keeps the words of the status.
func (b *backend) refusedByProxy(status int, err error) bool {
	name, at, host := b.conf.Name, b.proxy.Host, b.url.Host
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case status == http.StatusProxyAuthRequired, strings.Contains(text, http.StatusText(http.StatusProxyAuthRequired)):
		b.f.fail("write http://USER:PASSWORD@"+at+" into "+b.named(), "backend %s: the proxy %s wants other credentials (status 407)", name, at)
	case err != nil && strings.Contains(text, http.StatusText(http.StatusForbidden)):
		b.f.fail("let "+host+" pass there, or set egress_proxy: off", "backend %s: the proxy %s refuses the way to %s", name, at, host)
	case err != nil:
		b.f.fail("look at the log of the proxy, and whether it reaches "+host, "backend %s: no answer by way of the proxy %s: %s", name, at, describe(err))
	default:
		return false
	}
	return true
}
