package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/report"
)

// Manager changes a running gateway: it shows an admin token.
type Manager struct {
	Admin string // address or URL of the admin port
	Token string
	Dial  Dial // nil = TCP
}

// port opens the admin port.
func (m *Manager) port() (*adminPort, error) {
	if m.Token == "" {
		return nil, report.Usage(errors.New("no admin token; set PACER_ADMIN_TOKEN, or name a file that holds it with --token-file"))
	}
	g, err := newAdminPort(m.Admin, m.Dial)
	if err != nil {
		return nil, report.Usage(err)
	}
	g.token = m.Token
	return g, nil
}

// ask asks the admin port, and returns its answer.
func ask[T any](ctx context.Context, m *Manager, method, path string, question any) (*T, error) {
	g, err := m.port()
	if err != nil {
		return nil, err
	}
	var answer T
	return &answer, g.exchange(ctx, method, path, question, &answer)
}

// Keys lists all keys.
func (m *Manager) Keys(ctx context.Context) (*api.Keys, error) {
	return ask[api.Keys](ctx, m, http.MethodGet, "/api/v1/keys", nil)
}

// Create hands out a key.
func (m *Manager) Create(ctx context.Context, spec api.KeySpec) (*api.NewKey, error) {
	return ask[api.NewKey](ctx, m, http.MethodPost, "/api/v1/keys", spec)
}

// Rotate gives a key another secret.
func (m *Manager) Rotate(ctx context.Context, name string, grace time.Duration) (*api.NewKey, error) {
	return ask[api.NewKey](ctx, m, http.MethodPost, "/api/v1/keys/"+url.PathEscape(name)+"/rotate", api.Rotation{GraceS: grace.Seconds()})
}

// Revoke takes a key back.
func (m *Manager) Revoke(ctx context.Context, name string) (*api.Key, error) {
	return ask[api.Key](ctx, m, http.MethodDelete, "/api/v1/keys/"+url.PathEscape(name), nil)
}

// Audit lists who changed what.
func (m *Manager) Audit(ctx context.Context) (*api.Audit, error) {
	return ask[api.Audit](ctx, m, http.MethodGet, "/api/v1/audit", nil)
}

// PrintKeys writes a table of keys.
func PrintKeys(out io.Writer, keys []api.Key) error {
	w := report.NewWriter(out)
	fmt.Fprintf(w, "%-24s %-8s %-6s %-14s %-20s %-12s %s\n", "NAME", "STATE", "FROM", "SECRET", "EXPIRES", "BUDGET", "ROUTES")
	for _, k := range keys {
		expires, budget, routes := "never", "none", "all"
		if k.Expires != nil {
			expires = k.Expires.UTC().Format(time.RFC3339)
		}
		if k.Budget != nil {
			budget = fmt.Sprintf("%g/%s", k.Budget.USD, k.Budget.Per)
		}
		if len(k.Routes) > 0 {
			routes = strings.Join(k.Routes, ",")
		}
		fmt.Fprintf(w, "%-24s %-8s %-6s %-14s %-20s %-12s %s\n", k.Name, k.State, k.Source, report.Harmless(k.Hint), expires, budget, report.Harmless(routes))
	}
	return w.Err()
}

// PrintAudit writes the entries, the latest first.
func PrintAudit(out io.Writer, entries []api.AuditEntry) error {
	w := report.NewWriter(out)
	for _, e := range entries {
		fmt.Fprintf(w, "%s  %-16s %-16s %s\n", e.Time.UTC().Format(time.RFC3339), report.Harmless(e.Who), e.Did, report.Harmless(e.To))
	}
	return w.Err()
}
