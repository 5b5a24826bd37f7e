package config

import (
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/pacer-dev/pacer/internal/hostname"
)

// reads returns what reads a field with the tag is, given the field and the
// struct that holds it; nil = the field's type says enough.
func reads(is string) func(r *reader, v value, to, in any) {
	switch is {
	case "address":
		return into((*reader).address)
	case "host":
		return into((*reader).host)
	case "network":
		return into((*reader).network)
	case "origin":
		return into((*reader).origin)
	case "redis":
		return into((*reader).redisAddress)
	case "prefix":
		return into((*reader).prefix)
	case "name":
		return into((*reader).name)
	case "place":
		return into((*reader).place)
	case "kube_name":
		return into((*reader).kubeName)
	case "kube_port":
		return into((*reader).kubePort)
	case "kube_api":
		return into((*reader).kubeAPI)
	case "key_name":
		return into((*reader).keyName)
	case "time":
		return into((*reader).moment)
	case "key":
		return into((*reader).key)
	case "split":
		return into((*reader).split)
	case "model_or_none":
		return into((*reader).modelOrNone)
	case "model":
		return into((*reader).modelName)
	case "slo_preset":
		return into((*reader).sloPreset)
	case "header_secret":
		return into((*reader).headerSecret)
	case "proxy":
		return into((*reader).proxy)
	case "command":
		return into((*reader).command)
	case "headers":
		return into((*reader).headers)
	case "labels":
		return into((*reader).labels)
	case "file":
		return into((*reader).named)
	case "ca_file":
		return into((*reader).caFile)
	case "points":
		return into((*reader).points)
	case "benchmark":
		return into((*reader).benchmark)
	case "global_store":
		return into(globalStore)
	case "store_tls":
		return func(r *reader, v value, _, in any) { r.storeTLS(v, in.(*Store)) }
	case "tag":
		return into((*reader).tag)
	case "issuer":
		return into((*reader).issuer)
	case "site":
		return into((*reader).site)
	case "scope":
		return into((*reader).scope)
	case "webhook_url":
		return into((*reader).webhookURL)
	case "bare":
		return func(r *reader, v value, _, _ any) {
			r.problem(v.place(), "%s stands alone; write it without a value", v.name)
		}
	}
	return nil
}

func into[T any](read func(*reader, value, *T)) func(r *reader, v value, to, in any) {
	return func(r *reader, v value, to, _ any) { read(r, v, to.(*T)) }
}

// address reads the address of a port to listen on.
func (r *reader) address(v value, to *string) {
	s, ok := r.scalar(v, "host:port, such as 127.0.0.1:8080")
	if !ok {
		return
	}
	if host, port, err := net.SplitHostPort(s.text); err != nil || host != "" && !hostname.Valid(host) || !hostname.ValidPort(port) {
		r.problem(v.place(), "%s %s is no address; write host:port, such as 127.0.0.1:8080 or :8080", v.name, quote(s.raw))
		return
	}
	*to = s.text
}

// host reads the name of a host, in lower case and without a dot at its end.
func (r *reader) host(v value, to *string) {
	s, ok := r.text(v)
	if !ok {
		return
	}
	if !hostname.Valid(s.text) || strings.Trim(s.text, ".") == "" {
		r.problem(v.place(), "%s is no name; write it without scheme and port, such as pacer.example.com", quote(s.raw))
		return
	}
	*to = strings.TrimSuffix(strings.ToLower(s.text), ".")
}

// network reads an address or a network. One with bits beyond its length, or of
// IPv4 in the clothes of IPv6, would match other addresses than it seems.
func (r *reader) network(v value, to *netip.Prefix) {
	s, ok := r.text(v)
	if !ok {
		return
	}
	p, err := netip.ParsePrefix(s.text)
	if a, aErr := netip.ParseAddr(s.text); aErr == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case err != nil:
		r.problem(v.place(), "%s is no address and no network; write one such as 10.0.0.7, 10.0.0.0/8 or \"fd00::/8\"", quote(s.raw))
	case p.Addr().Is4In6():
		r.problem(v.place(), "%s is IPv4 written as IPv6; write the IPv4 address or network itself, such as 10.0.0.0/8", quote(s.raw))
	case p != p.Masked():
		r.problem(v.place(), "%s has bits beyond its length; write the first address of the network, as in 10.0.0.0/8, or an address alone", quote(s.raw))
	default:
		*to = p
	}
}

// origin reads where a web page comes from.
func (r *reader) origin(v value, to *string) {
	s, ok := r.text(v)
	if !ok {
		return
	}
	u, err := url.Parse(s.text)
	if s.text != "*" && (err != nil || u.Host == "" || u.Scheme+"://"+u.Host != s.text || strings.Contains(s.text, "*")) {
		r.problem(v.place(), `%s is no origin; write scheme://host[:port], such as https://app.example.com, or "*"`, quote(s.raw))
		return
	}
	*to = s.text
}

// named reads the path of a file.
func (r *reader) named(v value, to *string) {
	if s, ok := r.text(v); ok {
		*to = r.path(s.text)
	}
}
