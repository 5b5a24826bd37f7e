package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/providers"
)

// checkedEngines says what a backend stands for that discovers its engines. A
// file is read; names are looked up only while serve runs.
type checkedEngines struct {
	Source  string   `json:"source"`  // the file, or the host in DNS
	Found   []string `json:"found"`   // those in the file now; of DNS none
	Problem string   `json:"problem"` // why the file cannot be read; "" = it can
}

// enginesOf returns nil for a backend that is one engine.
func enginesOf(b config.Backend) *checkedEngines {
	switch {
	case b.Discover.File != "":
		e := &checkedEngines{Source: b.Discover.File, Found: []string{}}
		found, err := providers.Source{URL: b.URL, File: b.Discover.File}.Look(context.Background())
		if err != nil {
			e.Problem = err.Error()
		}
		e.Found = append(e.Found, found...)
		return e
	case b.Discover.DNS:
		e := &checkedEngines{Source: b.URL, Found: []string{}}
		if u, err := url.Parse(b.URL); err == nil {
			e.Source = u.Hostname()
		}
		return e
	}
	return nil
}

// engineWarnings are about what serve starts with all the same: a pool that has
// no engine now may have one later.
func engineWarnings(cfg *config.Config) (out []string) {
	for _, b := range cfg.Backends {
		if e := enginesOf(b); e != nil && e.Problem != "" {
			out = append(out, fmt.Sprintf("backend %s has no engine until its file can be read: %s", b.Name, e.Problem))
		}
	}
	return out
}

// engineLines tell people the same, a line for each such backend.
func engineLines(cfg *config.Config) string {
	var out strings.Builder
	for _, b := range cfg.Backends {
		switch e := enginesOf(b); {
		case e == nil || e.Problem != "":
		case b.Discover.DNS:
			fmt.Fprintf(&out, "\n%s stands for every address of %s, looked up while Pacer runs\n", b.Name, e.Source)
		default:
			fmt.Fprintf(&out, "\n%s stands for the %d engines of %s: %s\n", b.Name, len(e.Found), e.Source, strings.Join(e.Found, ", "))
		}
	}
	return out.String()
}
