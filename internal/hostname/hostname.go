package hostname

import (
	"net"
	"net/netip"
	"strconv"
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

// Loopback reports whether host, as Of has it, is this machine for whoever asks: names
// below localhost are so to browsers.
func Loopback(host string) bool { return Local(host) || strings.HasSuffix(host, ".localhost") }

// Local reports whether host, as Of has it, is this machine by every resolver: what a name
// below localhost is may be asked of a server.
func Local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || host == "localhost"
}

// maxName bounds a name in the DNS, in bytes.
const maxName = 253

// Valid reports whether host can be the name or the address of a server.
func Valid(host string) bool {
	address, _, _ := strings.Cut(host, "%") // which starts the zone of an IPv6 address
	if net.ParseIP(address) != nil {
		return true
	}
	return host != "" && len(host) <= maxName && !strings.ContainsFunc(host, func(c rune) bool { return !NameRune(c) })
}

// ValidPort reports whether port is the number of one; 0 is any that is free.
func ValidPort(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

// NameRune reports whether c may stand in the name of a host.
func NameRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}
