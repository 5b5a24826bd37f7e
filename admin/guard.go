package admin

import (
	"fmt"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/hostname"
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

// hostGuard decides which Host headers are answered: loopback always, and the
// configured host. A port that listens on every address is reached by many
// names; there, any address and any name that the public DNS does not give out
// will do.
type hostGuard struct {
	listen  string // configured host; "" when every address
	machine string // name of this machine, when every address
}

func newHostGuard(listen string) hostGuard {
	if own := hostname.Own(listen); own != "" {
		return hostGuard{listen: own}
	}
	name, _ := os.Hostname() // "" then matches nothing
	return hostGuard{machine: strings.ToLower(name)}
}

// privateSuffixes end names that no registrar hands out.
var privateSuffixes = []string{".local", ".localhost", ".internal", ".home.arpa", ".lan", ".svc"}

func (g hostGuard) allows(hostport string) bool {
	host := hostname.Of(hostport)
	switch {
	case host == "":
		return false
	case hostname.Loopback(host):
		return true
	case g.listen != "":
		return host == g.listen
	case hostname.IsIP(host) || host == g.machine || !strings.Contains(host, "."):
		return true
	}
	return slices.ContainsFunc(privateSuffixes, func(s string) bool { return strings.HasSuffix(host, s) })
}

// host refuses hosts other than those of g and the public one.
func (p *port) host(g hostGuard) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if host := hostname.Of(r.Host); !g.allows(r.Host) && (host == "" || host != p.publicHost()) {
				fail(w, http.StatusForbidden, "host_not_allowed",
					fmt.Sprintf("the admin port does not answer to Host %.200q; call it by 127.0.0.1, localhost or the host in admin.listen", r.Host))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
