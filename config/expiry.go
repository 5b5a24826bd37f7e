package config

import (
	"fmt"
	"time"
)

// expiresSoon is how long before a key ends its end is worth a warning.
const expiresSoon = 14 * 24 * time.Hour

// Expiring are warnings of keys that have ended at now, or end within two weeks, each
// as "what; the mend".
func (c *Config) Expiring(now time.Time) (out []string) {
	for _, k := range c.Keys {
		day := k.Expires.UTC().Format(time.DateOnly)
		switch {
		case k.Expires.IsZero():
		case !now.Before(k.Expires):
			out = append(out, fmt.Sprintf("key %s has expired (%s), and is answered 401; give its holder another one and remove it, or write a later expires", k.Name, day))
		case k.Expires.Sub(now) < expiresSoon:
			out = append(out, fmt.Sprintf("key %s expires on %s; give its holder another one, or write a later expires", k.Name, day))
		}
	}
	return out
}
