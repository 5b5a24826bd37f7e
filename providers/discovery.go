package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"github.com/pacer-dev/pacer/internal/hostname"
	"github.com/pacer-dev/pacer/internal/readfile"
)

// Source says where the engines behind one backend are. Exactly one of DNS and
// File is used: File if it is set.
type Source struct {
	URL  string // the backend's: DNS looks up its host, and its port is the usual one
	File string // JSON of target groups: [ { "targets": [ "10.0.0.7:8000" ] } ]

	// Lookup replaces the system's resolver; nil = that.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// maxTargetFile bounds a file of target groups, in bytes.
const maxTargetFile = 1 << 20

// Look returns the addresses that there are now, as host:port, sorted, each
// once. An error says nothing about them.
func (s Source) Look(ctx context.Context) ([]string, error) {
	host, port, err := hostAndPort(s.URL)
	if err != nil {
		return nil, err
	}
	var found []string
	if s.File != "" {
		found, err = readTargets(s.File, port)
	} else {
		found, err = s.lookUp(ctx, host, port)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func (s Source) lookUp(ctx context.Context, host, port string) ([]string, error) {
	lookup := s.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	addrs, err := lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, a := range addrs {
		found = append(found, net.JoinHostPort(a.Unmap().String(), port))
	}
	return found, nil
}

// hostAndPort are those of a URL, with the usual port of its scheme.
func hostAndPort(raw string) (host, port string, err error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return "", "", errors.New("providers: a source needs a URL with a host")
	}
	return u.Hostname(), portOf(u), nil
}

// readTargets reads target groups; one without a port has the usual one.
func readTargets(name, usual string) ([]string, error) {
	data, err := readfile.Regular(name, maxTargetFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, readfile.Reason(err))
	}
	if len(data) > maxTargetFile {
		return nil, fmt.Errorf("%s is larger than 1 MiB", name)
	}
	var groups []struct {
		Targets []string `json:"targets"`
	}
	if err := json.Unmarshal(data, &groups); err != nil {
		return nil, fmt.Errorf("%s is no JSON list of target groups, such as [ { \"targets\": [ \"10.0.0.7:8000\" ] } ]: %w", name, err)
	}
	var found []string
	for _, g := range groups {
		for _, t := range g.Targets {
			address, err := targetAddress(t, usual)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			found = append(found, address)
		}
	}
	return found, nil
}

func targetAddress(t, usual string) (string, error) {
	host, port, err := net.SplitHostPort(t)
	if err != nil {
		host, port = t, usual
		if a, err := netip.ParseAddr(t); err == nil {
			host = a.String()
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || !hostname.Valid(host) {
		return "", fmt.Errorf("the target %.100q is no host:port", t)
	}
	return net.JoinHostPort(host, port), nil
}

// At returns dial with every connection to the host of base made to address
// instead; nil stands for the network. The URL stays as it is, and so do the
// Host header and the name that a certificate has to show.
func At(address, base string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (func(ctx context.Context, network, addr string) (net.Conn, error), error) {
	host, port, err := hostAndPort(base)
	if err != nil {
		return nil, err
	}
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: keepAlive}).DialContext
	}
	own := net.JoinHostPort(host, port)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == own {
			addr = address
		}
		return dial(ctx, network, addr)
	}, nil
}
