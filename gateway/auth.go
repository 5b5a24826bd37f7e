package gateway

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/httpfield"
)

// authenticate finds the tenant whose key the client has shown.
func (o *order) authenticate() error {
	t, err := o.setup.authenticate(o.request.http)
	if err != nil {
		return err
	}
	o.tenant = t
	o.memory.budgets.tenant = t.held
	return nil
}

// authenticate compares the SHA-256 of the key that r carries with those of
// all keys, and always with all, so that the time taken tells nothing.
func (p *setup) authenticate(r *http.Request) (*tenant, error) {
	if len(p.tenants) == 0 {
		return anyone, nil
	}
	key := cmp.Or(clientKey(r.Header), googleKey(r), socketKeyOf(r))
	sum := sha256.Sum256([]byte(key))
	var found *tenant
	for _, t := range p.tenants {
		if subtle.ConstantTimeCompare(sum[:], t.conf.SHA256[:]) == 1 {
			found = t
		}
	}
	if found == nil || key == "" {
		return nil, &keyError{missing: key == ""}
	}
	if until := found.conf.Expires; !until.IsZero() && !time.Now().Before(until) {
		return nil, &keyError{expired: true}
	}
	clientconn.Known(r.Context())
	return found, nil
}

// clientKey returns the key in Authorization, x-api-key, api-key or x-goog-api-key, or
// that of a WebSocket of a browser, whichever comes first; "" when there is none.
func clientKey(h http.Header) string {
	if scheme, key, ok := strings.Cut(httpfield.First(h, "Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(key)
	}
	if key := httpfield.First(h, "X-Api-Key"); key != "" {
		return key
	}
	if key := httpfield.First(h, "Api-Key"); key != "" {
		return key
	}
	if key := httpfield.First(h, "X-Goog-Api-Key"); key != "" {
		return key
	}
	return keyOffered(h)
}
