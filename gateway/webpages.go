package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/hostname"
	"github.com/pacer-dev/pacer/internal/httpfield"
)

// pageError reports a request of a web page that may not use the gateway.
type pageError struct {
	header, value string // what it was judged by
	add           string // what the configuration would have to say
}

func (e *pageError) Error() string {
	return fmt.Sprintf("gateway: a browser's %s %.200q", e.header, e.value)
}

// webPages judges what browsers send while there are no keys: anybody may send
// then, and a browser does so for any page that somebody on this network looks
// at. What comes without the headers that only browsers send passes, under
// whatever name.
func (g *Gateway) webPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.setup.Load().judgePage(r); err != nil {
			g.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// judgePage returns why r may not be sent by a browser, nil if it may, or is not.
// No page can set the headers that it goes by, or leave them out of what it
// POSTs. Of a name that points here, without TLS, browsers GET with neither: such
// a page can read what models there are.
func (p *setup) judgePage(r *http.Request) error {
	origins := r.Header["Origin"]
	if len(p.tenants) > 0 || len(origins) == 0 && !fetched(r.Header) {
		return nil
	}
	// Of a page that was loaded under a stranger's name Origin and Host say the
	// same, so the name comes first.
	host := hostname.Of(r.Host)
	if !hostname.Loopback(host) && !hostname.IsIP(host) && (host == "" || host != hostname.Own(p.conf.Listen)) && !slices.Contains(p.conf.Hosts, host) {
		return &pageError{header: "Host", value: r.Host, add: fmt.Sprintf("hosts: [ %.253q ]", host)}
	}
	every := slices.Contains(p.conf.CORS.Origins, "*")
	for _, origin := range origins {
		if _, at, _ := strings.Cut(origin, "://"); !every && !strings.EqualFold(at, r.Host) && !slices.Contains(p.conf.CORS.Origins, origin) {
			add := fmt.Sprintf("cors: { origins: [ %.300q ] }", origin)
			if origin == "null" { // a file, or a frame in a sandbox
				add = `cors: { origins: [ "*" ] }, which lets every page in`
			}
			return &pageError{header: "Origin", value: origin, add: add}
		}
	}
	// A page sends an Origin with all that changes something.
	if site := r.Header.Get("Sec-Fetch-Site"); len(origins) == 0 && !every && (site == "cross-site" || site == "same-site") && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return &pageError{header: "Sec-Fetch-Site", value: site, add: "cors: { origins: [ … ] } with the page's scheme://host"}
	}
	return nil
}

// fetched reports whether h has a header of those by which browsers tell what a
// request is for. A mode of cors alone is what fetch of Node sends, and so an SDK.
func fetched(h http.Header) bool {
	mode := httpfield.First(h, "Sec-Fetch-Mode")
	return h["Sec-Fetch-Site"] != nil || h["Sec-Fetch-Dest"] != nil || h["Sec-Fetch-User"] != nil || mode != "" && mode != "cors"
}
