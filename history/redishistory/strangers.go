package redishistory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/share"
)

// oftenStrange is in how many exchanges in a row a backend has to be at another address
// on another replica until that is said: two minutes. While a changed file goes
// round it is there for a while, and a replica that has gone is heard of for half a minute.
const oftenStrange = 24

// mostHashed bounds the backends that a replica tells of.
const mostHashed = 1024

// strangers finds replicas that have other engines under the same names. In a store
// one name is one engine, and all have its load and its curve in common. Two fleets may
// share a prefix by mistake: then each takes the other's users for its own.
type strangers struct {
	own     map[string]string // hashes of addresses by backend
	backend string            // of this exchange: one that is elsewhere on replica; "" = none
	replica string
	times   int // exchanges in a row that had one
	marked  bool
	said    share.Seldom
}

// hashed are the addresses as hashes: in Redis they would tell who reads there where
// engines are.
func hashed(engines map[string]string) map[string]string {
	out := make(map[string]string, min(len(engines), mostHashed))
	for name, url := range engines {
		if len(out) == mostHashed {
			break
		}
		sum := sha256.Sum256([]byte(url))
		out[name] = hex.EncodeToString(sum[:6])
	}
	return out
}

// hear notes what one replica has. One that tells nothing is of a version before.
func (s *strangers) hear(replica string, engines map[string]string) {
	for name, at := range engines {
		if own, have := s.own[name]; have && own != at && (s.backend == "" || name < s.backend) {
			s.backend, s.replica = name, replica
		}
	}
}

// tell ends an exchange.
func (s *strangers) tell(log *slog.Logger, watch *history.Watch, now time.Time) {
	if s.backend == "" {
		s.times, s.marked = 0, false
		return
	}
	if s.times++; s.times >= oftenStrange {
		if !s.marked {
			s.marked = true
			watch.Note(now, "store", fmt.Sprintf("backend %s is at another address on %s, and counts as one engine: two fleets need two prefixes", s.backend, s.replica))
		}
		s.said.Warn(log, now, "another gateway with this store and prefix has a backend of the same name at another address; load and curves of both count as those of one engine. If these are two engines, give one fleet another store.prefix, or one backend another name", "backend", s.backend, "replica", s.replica)
	}
	s.backend, s.replica = "", ""
}
