package config

import (
	"crypto/tls"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/pacer-dev/pacer/internal/hostname"
)

// config reads the whole file.
func (r *reader) config(v value) {
	c := r.cfg
	o, ok := r.object(v, fields{
		"listen":          r.addressInto(&c.Listen, &r.marks.listen),
		"admin":           r.admin,
		"store":           r.store,
		"replicas":        func(v value) { r.marks.replicas = v.place(); r.wholeInto(&c.Replicas, 1)(v) },
		"log":             r.log,
		"tls":             r.tls,
		"cors":            r.cors,
		"timeouts":        r.timeouts,
		"limits":          r.limits,
		"backends":        r.backends,
		"routes":          r.routes,
		"keys":            r.keys,
		"expose_decision": r.exposeDecision,
		"hosts":           r.hosts,
		"trusted_proxies": r.trustedProxies,
	})
	if ok {
		o.require("backends", "[ { name: gpu, url: http://10.0.0.11:8000/v1 } ]")
		o.require("routes", "[ { model: chat, targets: [ { backend: gpu } ] } ]")
	}
}

func (r *reader) exposeDecision(v value) {
	if b, ok := r.truth(v); ok {
		r.cfg.ExposeDecision = b
	}
}

func (r *reader) hosts(v value) {
	r.marks.hosts = v.place()
	list, _ := r.list(v, "a list of names")
	for _, v := range list {
		s, ok := r.text(v)
		if !ok {
			continue
		}
		if !hostname.Valid(s.text) || strings.Trim(s.text, ".") == "" {
			r.problem(v.place(), "%s is no name; write it without scheme and port, such as pacer.example.com", quote(s.raw))
			continue
		}
		r.cfg.Hosts = append(r.cfg.Hosts, strings.TrimSuffix(strings.ToLower(s.text), "."))
	}
}

func (r *reader) trustedProxies(v value) {
	list, _ := r.list(v, "a list of addresses and networks")
	for _, v := range list {
		if s, ok := r.text(v); ok {
			r.trustedProxy(v.place(), s)
		}
	}
}

// trustedProxy reads an address or a network. One with bits beyond its length,
// or of IPv4 in the clothes of IPv6, would match other addresses than it seems.
func (r *reader) trustedProxy(at place, s scalar) {
	p, err := netip.ParsePrefix(s.text)
	if a, aErr := netip.ParseAddr(s.text); aErr == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case err != nil:
		r.problem(at, "%s is no address and no network; write one such as 10.0.0.7, 10.0.0.0/8 or \"fd00::/8\"", quote(s.raw))
	case p.Addr().Is4In6():
		r.problem(at, "%s is IPv4 written as IPv6; write the IPv4 address or network itself, such as 10.0.0.0/8", quote(s.raw))
	case p != p.Masked():
		r.problem(at, "%s has bits beyond its length; write the first address of the network, as in 10.0.0.0/8, or an address alone", quote(s.raw))
	default:
		r.cfg.TrustedProxies = append(r.cfg.TrustedProxies, p)
	}
}

func (r *reader) admin(v value) {
	r.object(v, fields{
		"listen": r.addressInto(&r.cfg.Admin.Listen, &r.marks.adminListen),
		"token":  r.headerSecretInto(&r.cfg.Admin.Token),
	})
}

func (r *reader) log(v value) {
	r.object(v, fields{
		"level":  r.oneOfInto(&r.cfg.Log.Level, "debug", "info", "warn", "error"),
		"format": r.oneOfInto(&r.cfg.Log.Format, "json", "text"),
	})
}

func (r *reader) timeouts(v value) {
	t := &r.cfg.Timeouts
	r.object(v, fields{
		"connect":    r.durationInto(&t.Connect, positive),
		"first_byte": r.durationInto(&t.FirstByte, positive),
		"silence":    r.durationInto(&t.Silence, positive),
		"total":      r.durationInto(&t.Total, positive),
		"write":      r.durationInto(&t.Write, positive),
		"drain":      r.durationInto(&t.Drain, positive),
		"linger":     r.durationInto(&t.Linger, 0),
	})
}

func (r *reader) limits(v value) {
	l := &r.cfg.Limits
	o, ok := r.object(v, fields{
		"body":     r.sizeInto(&l.Body),
		"header":   r.sizeInto(&l.Header),
		"streams":  r.wholeInto(&l.Streams, 1),
		"queue":    r.wholeInto(&l.Queue, 1),
		"buffered": r.sizeInto(&l.Buffered),
	})
	if ok && l.Body > l.Buffered {
		field := "buffered"
		if !o.has(field) {
			field = "body"
		}
		r.problem(o.at(field), "one body may be larger than all buffered ones; write a buffered of at least body, better a multiple")
	}
}

// tls reads the certificate of the data port. Both fields empty is the same
// as no tls: at all.
func (r *reader) tls(v value) {
	t := TLS{}
	o, ok := r.object(v, fields{"cert": r.textInto(&t.Cert), "key": r.textInto(&t.Key)})
	if !ok {
		return
	}
	if (t.Cert == "") != (t.Key == "") {
		r.problem(o.start, "tls needs both cert and key; write the files of both, or leave tls out for a plain port")
		return
	}
	r.cfg.TLS = TLS{Cert: r.path(t.Cert), Key: r.path(t.Key)}
	if r.readFile == nil || t.Cert == "" {
		return
	}
	cert, certErr := r.readFile(r.cfg.TLS.Cert)
	if certErr != nil {
		r.problem(o.at("cert"), "the certificate %s cannot be read (%s); name a PEM file", quote(t.Cert), reason(certErr))
	}
	key, keyErr := r.readFile(r.cfg.TLS.Key)
	if keyErr != nil {
		r.problem(o.at("key"), "the key %s cannot be read (%s); name a PEM file", quote(t.Key), reason(keyErr))
	}
	if certErr == nil && keyErr == nil {
		if _, err := tls.X509KeyPair(cert, key); err != nil {
			r.problem(o.at("cert"), "cert and key do not go together (%s); name a PEM certificate and its own key", strings.TrimPrefix(err.Error(), "tls: "))
		}
	}
}

func (r *reader) cors(v value) {
	c := &r.cfg.CORS
	r.object(v, fields{
		"origins": func(v value) {
			list, _ := r.list(v, "a list of origins")
			for _, v := range list {
				r.origin(v)
			}
		},
		"max_age": r.durationInto(&c.MaxAge, 0),
	})
}

func (r *reader) origin(v value) {
	s, ok := r.text(v)
	if !ok {
		return
	}
	u, err := url.Parse(s.text)
	if s.text != "*" && (err != nil || u.Host == "" || u.Scheme+"://"+u.Host != s.text || strings.Contains(s.text, "*")) {
		r.problem(v.place(), `%s is no origin; write scheme://host[:port], such as https://app.example.com, or "*"`, quote(s.raw))
		return
	}
	r.cfg.CORS.Origins = append(r.cfg.CORS.Origins, s.text)
}

// addressInto reads the address of a port to listen on, and notes its place.
func (r *reader) addressInto(to *string, at *place) func(value) {
	return func(v value) {
		*at = v.place()
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
}

// loopback tells whether only this machine reaches the address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
