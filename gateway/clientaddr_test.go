package gateway

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/config"
)

func TestTheClientsAddress(t *testing.T) {
	trusted := []string{"10.0.0.0/8", "192.0.2.7/32", "fd00::/8"}
	for name, c := range map[string]struct {
		trusted   []string
		from      string
		forwarded []string
		want      string
	}{
		"nobody is trusted":              {nil, "10.0.0.1:1234", []string{"203.0.113.9"}, "10.0.0.1"},
		"no proxy":                       {trusted, "203.0.113.9:1234", nil, "203.0.113.9"},
		"a stranger who forwards":        {trusted, "203.0.113.9:1234", []string{"198.51.100.1"}, "203.0.113.9"},
		"a proxy":                        {trusted, "10.0.0.1:1234", []string{"203.0.113.9"}, "203.0.113.9"},
		"a proxy of IPv6":                {trusted, "[fd00::1]:1234", []string{"2001:db8::9"}, "2001:db8::9"},
		"a proxy that says nothing":      {trusted, "10.0.0.1:1234", nil, "10.0.0.1"},
		"an empty header":                {trusted, "10.0.0.1:1234", []string{""}, "10.0.0.1"},
		"what the client wrote before":   {trusted, "10.0.0.1:1234", []string{"198.51.100.1, 203.0.113.9"}, "203.0.113.9"},
		"the same in two headers":        {trusted, "10.0.0.1:1234", []string{"198.51.100.1", "203.0.113.9"}, "203.0.113.9"},
		"a trusted address before it":    {trusted, "10.0.0.1:1234", []string{"10.9.9.9, 203.0.113.9"}, "203.0.113.9"},
		"two proxies":                    {trusted, "10.0.0.1:1234", []string{"198.51.100.1, 203.0.113.9, 192.0.2.7"}, "203.0.113.9"},
		"proxies alone":                  {trusted, "10.0.0.1:1234", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"with a port":                    {trusted, "10.0.0.1:1234", []string{"203.0.113.9:55"}, "203.0.113.9"},
		"with a port of IPv6":            {trusted, "10.0.0.1:1234", []string{"[2001:db8::9]:55"}, "2001:db8::9"},
		"IPv4 in IPv6":                   {trusted, "[::ffff:10.0.0.1]:1234", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		"no address":                     {trusted, "10.0.0.1:1234", []string{"203.0.113.9, unknown"}, "10.0.0.1"},
		"no address behind a proxy":      {trusted, "10.0.0.1:1234", []string{"<script>, 10.0.0.2"}, "10.0.0.2"},
		"a zone with text of the client": {trusted, "10.0.0.1:1234", []string{"fe80::1%a=b\tx"}, "fe80::1"},
		"more than anybody has":          {trusted, "10.0.0.1:1234", []string{"203.0.113.9" + strings.Repeat(",10.0.0.2", 1000)}, "10.0.0.2"},
		"a network without ports":        {trusted, "pipe", []string{"203.0.113.9"}, "pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &setup{conf: &config.Config{}}
			for _, n := range c.trusted {
				p.conf.TrustedProxies = append(p.conf.TrustedProxies, netip.MustParsePrefix(n))
			}
			r := &http.Request{RemoteAddr: c.from, Header: http.Header{"X-Forwarded-For": c.forwarded}}
			if got := p.client(r); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
