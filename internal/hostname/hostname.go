package hostname

import (
	"net"
	"net/netip"
	"strings"
)

// Of returns the name or the address in a Host header: lower case, without
// port, brackets and final dot.
func Of(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// Own returns the name or the address that a port listens on, in the form of
// Of; "" = every address.
func Own(listen string) string {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		host = listen
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		return ""
	}
	return strings.ToLower(host)
}

// IsIP reports whether host is an address.
func IsIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// Loopback reports whether host, as Of has it, is this machine for whoever asks.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
