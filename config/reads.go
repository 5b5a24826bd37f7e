package config

import "net/netip"

// reads returns what reads a field with the tag is, given the field and the
// struct that holds it; nil = the field's type says enough.
func reads(is string) func(r *reader, v value, to, in any) {
	if rule, ok := textRules[is]; ok {
		return func(r *reader, v value, to, _ any) { r.ruled(v, to, rule) }
	}
	switch is {
	case "network":
		return into((*reader).network)
	case "time":
		return into((*reader).moment)
	case "key":
		return into((*reader).key)
	case "split":
		return into((*reader).split)
	case "slo_preset":
		return into((*reader).sloPreset)
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
	case "issuer":
		return into((*reader).issuer)
	case "site":
		return into((*reader).site)
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

// named reads the path of a file.
func (r *reader) named(v value, to *string) {
	if s, ok := r.text(v); ok {
		*to = r.path(s.text)
	}
}
