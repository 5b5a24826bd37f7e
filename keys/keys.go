// Package keys is the keys that are handed out while the gateway runs: what each
// may do, and the SHA-256 of its secret. A secret itself is told once, to who asked
// for it, and kept nowhere.
//
// A Ring holds them as the store last told, and changes them through the store, so
// that all gateways agree. Each change writes an entry of the audit log together
// with it. A Ring that cannot reach its store goes on with what it knows, and
// changes nothing.
package keys

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/api"
)

// Most is how many keys there may be, those that were revoked of late included.
const Most = 4096

// forgetAfter is how long a revoked key is listed.
const forgetAfter = 30 * 24 * time.Hour

// Errors of changes.
var (
	ErrExists   = errors.New("keys: there is a key of that name")
	ErrNotFound = errors.New("keys: there is no key of that name")
	ErrRevoked  = errors.New("keys: the key is revoked")
	ErrTooMany  = errors.New("keys: there are as many keys as there may be")
	ErrConflict = errors.New("keys: somebody else has changed the key")
)

// Hash is the SHA-256 of a secret.
type Hash = [sha256.Size]byte

// Key is one key.
type Key struct {
	Spec     api.KeySpec `json:"spec"`
	Hash     Hash        `json:"hash"`
	Hint     string      `json:"hint"`
	Old      Hash        `json:"old"` // of the secret before, until OldUntil
	OldUntil time.Time   `json:"old_until"`
	Created  time.Time   `json:"created"`
	By       string      `json:"by"`
	Revoked  time.Time   `json:"revoked"` // zero = it is not

	// Version grows by one with each change.
	Version uint64 `json:"version"`
}

// Store keeps keys and the audit log. Implementations are in rediskeys and
// filekeys. Its methods may wait, and are safe for concurrent use.
type Store interface {
	// Load returns all keys if they may have changed since the Load that returned
	// mark, which is "" at first; nil = they have not. known is what a store that
	// has lost everything gets back.
	Load(ctx context.Context, mark string, known []Key) (keys []Key, next string, err error)

	// Restore writes those of known that are newer than what is there.
	Restore(ctx context.Context, known []Key) error

	// Put writes k, whose version is one above that which is there (1 = none is),
	// and e, together; else the error is ErrConflict.
	Put(ctx context.Context, k Key, e api.AuditEntry) error

	// Drop forgets a revoked key.
	Drop(ctx context.Context, k Key) error

	// Note writes an entry of the audit log.
	Note(ctx context.Context, e api.AuditEntry) error

	// Entries returns the latest entries, at most so many, the latest first.
	Entries(ctx context.Context, most int) ([]api.AuditEntry, error)
}

// Ring is the keys as they are known here. It is safe for concurrent use.
type Ring struct {
	store Store

	mu   sync.Mutex // guards what follows; a leaf
	keys map[string]Key
	mark string
	done uint64            // changes that were made here
	at   map[string]uint64 // by name, which of them was the last one
	last time.Time         // of the last entry, so that ids grow
}

// New returns a ring that knows nothing yet.
func New(s Store) *Ring { return &Ring{store: s, keys: map[string]Key{}, at: map[string]uint64{}} }

// Refresh looks at the store, and reports whether anything changed.
func (r *Ring) Refresh(ctx context.Context) (changed bool, err error) {
	r.mu.Lock()
	mark, began := r.mark, r.done
	r.mu.Unlock()
	list, next, err := r.store.Load(ctx, mark, r.List())
	if err != nil || list == nil {
		return false, err
	}
	keys := make(map[string]Key, len(list))
	for _, k := range list {
		keys[k.Spec.Name] = k
	}
	r.mu.Lock()
	for name, at := range r.at {
		// What was handed out since the store was asked is not in its answer.
		if k, ok := r.keys[name]; ok && at > began && keys[name].Version == 0 {
			keys[name] = k
		}
	}
	changed = len(keys) != len(r.keys)
	var newer []Key // than in a store that lost them and got old ones back
	for name, k := range keys {
		old, ok := r.keys[name]
		if ok && old.Version > k.Version {
			keys[name] = old
			newer = append(newer, old)
		}
		changed = changed || !ok || old.Version != keys[name].Version
	}
	r.keys, r.mark = keys, next
	r.mu.Unlock()
	if len(newer) > 0 {
		err = r.store.Restore(ctx, newer)
	}
	return changed, err
}

// List returns all keys by name.
func (r *Ring) List() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Sorted(r.keys)
}

// Sorted returns those of a map by name.
func Sorted(of map[string]Key) []Key {
	out := slices.AppendSeq(make([]Key, 0, len(of)), maps.Values(of))
	slices.SortFunc(out, func(a, b Key) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	return out
}

// get returns the key of that name.
func (r *Ring) get(name string) (Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.keys[name]
	return k, ok
}

// put writes k and remembers it.
func (r *Ring) put(ctx context.Context, k Key, e api.AuditEntry) error {
	if err := r.store.Put(ctx, k, e); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys[k.Spec.Name] = k
	r.done++
	r.at[k.Spec.Name] = r.done
	return nil
}

// Create hands out a key, and returns its secret.
func (r *Ring) Create(ctx context.Context, now time.Time, who string, spec api.KeySpec) (Key, string, error) {
	old, there := r.get(spec.Name)
	switch {
	case there && old.Revoked.IsZero():
		return Key{}, "", ErrExists
	case !there && len(r.List()) >= Most:
		return Key{}, "", ErrTooMany
	}
	secret := newSecret()
	k := Key{Spec: spec, Hash: sha256.Sum256([]byte(secret)), Hint: hint(secret), Created: now.UTC(), By: who, Version: old.Version + 1}
	return k, secret, r.put(ctx, k, r.entry(now, who, "key.create", spec.Name))
}

// Rotate gives a key another secret; the old one is taken for grace as well.
func (r *Ring) Rotate(ctx context.Context, now time.Time, who, name string, grace time.Duration) (Key, string, error) {
	k, there := r.get(name)
	switch {
	case !there:
		return Key{}, "", ErrNotFound
	case !k.Revoked.IsZero():
		return Key{}, "", ErrRevoked
	}
	secret := newSecret()
	k.Old, k.OldUntil = Hash{}, time.Time{}
	if grace > 0 {
		k.Old, k.OldUntil = k.Hash, now.Add(grace).UTC()
	}
	k.Hash, k.Hint = sha256.Sum256([]byte(secret)), hint(secret)
	k.Version++
	return k, secret, r.put(ctx, k, r.entry(now, who, "key.rotate", name))
}

// Revoke takes a key back.
func (r *Ring) Revoke(ctx context.Context, now time.Time, who, name string) (Key, error) {
	k, there := r.get(name)
	switch {
	case !there:
		return Key{}, ErrNotFound
	case !k.Revoked.IsZero():
		return Key{}, ErrRevoked
	}
	k.Revoked, k.Old, k.OldUntil = now.UTC(), Hash{}, time.Time{}
	k.Version++
	return k, r.put(ctx, k, r.entry(now, who, "key.revoke", name))
}

// Sweep forgets keys that were revoked long ago.
func (r *Ring) Sweep(ctx context.Context, now time.Time) error {
	for _, k := range r.List() {
		if k.Revoked.IsZero() || now.Sub(k.Revoked) < forgetAfter {
			continue
		}
		if err := r.store.Drop(ctx, k); err != nil {
			return err
		}
		r.mu.Lock()
		delete(r.keys, k.Spec.Name)
		delete(r.at, k.Spec.Name)
		r.mu.Unlock()
	}
	return nil
}

// Note writes an entry of the audit log about something else than a key.
func (r *Ring) Note(ctx context.Context, now time.Time, who, did, to string) error {
	return r.store.Note(ctx, r.entry(now, who, did, to))
}

// Entries returns the latest entries of the audit log.
func (r *Ring) Entries(ctx context.Context, most int) ([]api.AuditEntry, error) {
	return r.store.Entries(ctx, most)
}

// entry makes an entry whose id is later than those before.
func (r *Ring) entry(now time.Time, who, did, to string) api.AuditEntry {
	r.mu.Lock()
	if !now.After(r.last) {
		now = r.last.Add(time.Microsecond)
	}
	r.last = now
	r.mu.Unlock()
	var random [4]byte
	rand.Read(random[:]) // never fails
	return api.AuditEntry{ID: fmt.Sprintf("%016x-%x", now.UnixMicro(), random), Time: now.UTC(), Who: who, Did: did, To: to}
}

// newSecret is 256 bits of chance, in letters that a header and a shell take.
func newSecret() string {
	var random [32]byte
	rand.Read(random[:]) // never fails
	return "sk-pacer-" + base64.RawURLEncoding.EncodeToString(random[:])
}

func hint(secret string) string { return secret[:13] + "…" }
