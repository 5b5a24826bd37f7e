package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"strings"
)

// secured sets the headers that every answer carries: nothing is kept, framed,
// sniffed, or loaded from elsewhere, and no script or style stands in the page.
func secured(next http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// typeOf does not ask the system's table of types, which differs by machine.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/plain; charset=utf-8"
}

// hostGuard decides which Host headers are answered. A web page can make a
// browser call this port under a name of its own that resolves to this machine
// (DNS rebinding), so only names that a stranger cannot own are let in:
// loopback always, and the configured host. A port that listens on every
// address is reached by many names; there, any address and any name that the
// public DNS does not give out will do.
type hostGuard struct {
	listen   string // configured host, lower case; "" when every address
	hostname string // of this machine, when every address
}

func newHostGuard(listen string) hostGuard {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		host = listen
	}
	host = strings.ToLower(host)
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		name, _ := os.Hostname() // "" then matches nothing
		return hostGuard{hostname: strings.ToLower(name)}
	}
	return hostGuard{listen: host}
}

// privateSuffixes end names that no registrar hands out.
var privateSuffixes = []string{".local", ".localhost", ".internal", ".home.arpa", ".lan", ".svc"}

func (g hostGuard) allows(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	isIP := err == nil
	if isIP && ip.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if g.listen != "" {
		return host == g.listen
	}
	if isIP || host == g.hostname || !strings.Contains(host, ".") {
		return true
	}
	for _, s := range privateSuffixes {
		if strings.HasSuffix(host, s) {
			return true
		}
	}
	return false
}

func (g hostGuard) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.allows(r.Host) {
			fail(w, http.StatusForbidden, "host_not_allowed",
				fmt.Sprintf("the admin port does not answer to Host %.200q; call it by 127.0.0.1, localhost or the host in admin.listen", r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}
