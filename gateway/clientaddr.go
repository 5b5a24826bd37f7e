package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// maxForwards is how many entries of X-Forwarded-For are looked at, from its
// end: nobody has as many proxies.
const maxForwards = 32

// client is the address that a request comes from, as log lines show it: of
// whoever is connected, or, where that is a trusted proxy, the last one in
// X-Forwarded-For that is none. Whoever speaks to a proxy may write there what
// it likes, but only before what the proxy adds.
func (p *setup) client(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr // of a network without ports
	}
	list := r.Header["X-Forwarded-For"]
	if len(p.conf.TrustedProxies) == 0 || len(list) == 0 {
		return host
	}
	at, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	rest := strings.Join(list, ",")
	for range maxForwards {
		if rest == "" || !p.trusts(at) {
			break
		}
		cut := strings.LastIndexByte(rest, ',')
		before, ok := forwarded(rest[cut+1:])
		if !ok {
			break // nothing that stands before it can be believed
		}
		at, rest = before, rest[:max(cut, 0)]
	}
	return at.String()
}

// trusts reports whether at is a trusted proxy.
func (p *setup) trusts(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	return slices.ContainsFunc(p.conf.TrustedProxies, func(n netip.Prefix) bool { return n.Contains(at) })
}

// forwarded reads one entry of X-Forwarded-For: an address, to which some
// proxies add the port. A zone could hold any text, and says nothing here.
func forwarded(entry string) (netip.Addr, bool) {
	entry = strings.TrimSpace(entry)
	at, err := netip.ParseAddr(strings.Trim(entry, "[]"))
	if err != nil {
		var port netip.AddrPort
		port, err = netip.ParseAddrPort(entry)
		at = port.Addr()
	}
	return at.Unmap().WithZone(""), err == nil
}
