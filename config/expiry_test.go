package config

import (
	"strings"
	"testing"
	"time"
)

// Who checks a configuration hears of keys that have ended, or will soon.
func TestExpiringKeys(t *testing.T) {
	now := time.Date(2027, 1, 10, 0, 0, 0, 0, time.UTC)
	c := &Config{Keys: []Key{
		{Name: "old", Expires: now},
		{Name: "ending", Expires: now.Add(13 * 24 * time.Hour)},
		{Name: "far", Expires: now.Add(15 * 24 * time.Hour)},
		{Name: "forever"},
	}}
	got := c.Expiring(now)
	if len(got) != 2 || !strings.HasPrefix(got[0], "key old has expired (2027-01-10)") || !strings.HasPrefix(got[1], "key ending expires on 2027-01-23;") {
		t.Errorf("%q, want one of old and one of ending", got)
	}
}
