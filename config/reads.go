package config

import "net/netip"

// reads returns what reads a field with the tag is, given the field and the
// struct that holds it; nil = the field's type says enough.
func reads(is string) func(r *reader, v value, to, in any) {
	if rule, ok := textRules[is]; ok {
		return func(r *reader, v value, to, _ any) { r.ruled(v, to, rule) }
	}
	return map[string]func(r *reader, v value, to, in any){
		"network":      into((*reader).network),
		"time":         into((*reader).moment),
		"key":          into((*reader).key),
		"split":        into((*reader).split),
		"slo_preset":   into((*reader).sloPreset),
		"headers":      into((*reader).headers),
		"labels":       into((*reader).labels),
		"file":         into((*reader).named),
		"ca_file":      into((*reader).caFile),
		"points":       into((*reader).points),
		"benchmark":    into((*reader).benchmark),
		"global_store": into(globalStore),
		"store_tls":    func(r *reader, v value, _, in any) { r.storeTLS(v, in.(*Store)) },
		"issuer":       into((*reader).issuer),
		"site":         into((*reader).site),
		"bare": func(r *reader, v value, _, _ any) {
			r.problem(v.place(), "%s stands alone; write it without a value", v.name)
		},
	}[is]
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
