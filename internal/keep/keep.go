// Package keep carries over a reload what stays: what was learned or counted
// under a key goes on under the same key, and what is new begins.
//
// What something depends on belongs into its key. What was measured on a
// connection has the connection for its key, and a key's limiter the limits
// beside the name: where they change there is no old one, and nobody has to ask
// whether it still fits.
package keep

import "iter"

// Map returns an entry for each of keys: that of old, or else a fresh one. Keys may
// come more than once. gone is what of old is no longer asked for. old, which may be nil, is not
// changed: readers may have it.
func Map[K comparable, V any](old map[K]V, keys iter.Seq[K], fresh func(K) V) (now, gone map[K]V) {
	now, gone = make(map[K]V, len(old)), map[K]V{}
	for k := range keys {
		if _, twice := now[k]; twice {
			continue
		}
		v, stays := old[k]
		if !stays {
			v = fresh(k)
		}
		now[k] = v
	}
	for k, v := range old {
		if _, stays := now[k]; !stays {
			gone[k] = v
		}
	}
	return now, gone
}
