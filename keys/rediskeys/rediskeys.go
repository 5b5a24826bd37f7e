// Package rediskeys keeps keys and the audit log in Redis, for all gateways that
// share it. Redis holds hashes of secrets, and never a secret. One that has lost
// its data gets the keys back from the first gateway that looks; the audit log
// it had is lost.
package rediskeys

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/keys"
)

var (
	//go:embed lua/put.lua
	putSource string
	//go:embed lua/load.lua
	loadSource string
	//go:embed lua/entries.lua
	entriesSource string
)

const (
	version = "1"

	// life is how long keys outlive the last gateway that looks at them.
	life = 400 * 24 * time.Hour

	mostEntries = 10_000
	longest     = 1 << 20 // of a key or of an entry, in bytes
	timeout     = 3 * time.Second
)

// Store is the keys in one Redis.
type Store struct {
	conn      *redisconn.Client
	put, load *redis.Script
	entries   *redis.Script
}

// New returns the store behind conn.
func New(conn *redisconn.Client) *Store {
	return &Store{conn: conn, put: redis.NewScript(putSource), load: redis.NewScript(loadSource), entries: redis.NewScript(entriesSource)}
}

func (s *Store) keys() []string {
	return []string{s.conn.Key("keys", "issued", version), s.conn.Key("keys", "audit", version)}
}

// Owns says whether key, less its prefix, is of handed out keys or of their audit log.
func Owns(key string) bool {
	return strings.HasPrefix(key, "{keys}:issued:") || strings.HasPrefix(key, "{keys}:audit:")
}

// run runs script once.
func (s *Store) run(ctx context.Context, script *redis.Script, args ...any) (*redis.Cmd, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	replies, err := s.conn.Run(ctx, script, redisconn.Call{Keys: s.keys(), Args: args})
	if err == nil {
		err = replies[0].Err()
	}
	if err != nil {
		return nil, fmt.Errorf("rediskeys: %w", err)
	}
	return replies[0], nil
}

// Load implements keys.Store.
func (s *Store) Load(ctx context.Context, mark string, known []keys.Key) ([]keys.Key, string, error) {
	words, err := s.ask(ctx, mark, nil)
	if err == nil && words[0] == "" && len(known) > 0 { // it has lost them
		words, err = s.ask(ctx, mark, known)
	}
	if err != nil {
		return nil, "", err
	}
	if words[0] == mark && len(words) == 1 {
		return nil, mark, nil
	}
	list := []keys.Key{}
	for i := 2; i < len(words); i += 2 {
		_, text, _ := strings.Cut(words[i], " ")
		var k keys.Key
		if json.Unmarshal([]byte(text), &k) != nil || k.Spec.Name != words[i-1] {
			return nil, "", fmt.Errorf("rediskeys: the key %.64q is in no form of ours", words[i-1])
		}
		list = append(list, k)
	}
	return list, words[0], nil
}

// Restore implements keys.Store.
func (s *Store) Restore(ctx context.Context, known []keys.Key) error {
	_, err := s.ask(ctx, "", known)
	return err
}

// ask runs load.lua.
func (s *Store) ask(ctx context.Context, mark string, known []keys.Key) ([]string, error) {
	args := []any{mark, life.Milliseconds(), rand.Text(), longest}
	for _, k := range known {
		data, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		args = append(args, k.Spec.Name, k.Version, data)
	}
	reply, err := s.run(ctx, s.load, args...)
	if err != nil {
		return nil, err
	}
	words, err := reply.StringSlice()
	if err != nil || len(words) == 0 {
		return nil, errors.Join(errors.New("rediskeys: an answer that is none of the script's"), err)
	}
	return words, nil
}

// Put implements keys.Store.
func (s *Store) Put(ctx context.Context, k keys.Key, e api.AuditEntry) error {
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return s.write(ctx, k, data, e)
}

// Drop implements keys.Store.
func (s *Store) Drop(ctx context.Context, k keys.Key) error {
	k.Version++
	return s.write(ctx, k, nil, api.AuditEntry{})
}

// Note implements keys.Store.
func (s *Store) Note(ctx context.Context, e api.AuditEntry) error {
	return s.write(ctx, keys.Key{Version: 1}, nil, e)
}

func (s *Store) write(ctx context.Context, k keys.Key, data []byte, e api.AuditEntry) error {
	entry, err := json.Marshal(e)
	if err != nil {
		return err
	}
	reply, err := s.run(ctx, s.put, k.Spec.Name, k.Version-1, k.Version, data, e.ID, entry, life.Milliseconds(), rand.Text(), mostEntries)
	if err != nil {
		return err
	}
	if done, err := reply.Int(); err != nil || done != 1 {
		return keys.ErrConflict
	}
	return nil
}

// Entries implements keys.Store.
func (s *Store) Entries(ctx context.Context, most int) ([]api.AuditEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	replies, err := s.conn.Run(ctx, s.entries, redisconn.Call{Keys: s.keys()[1:], Args: []any{longest}})
	if err != nil {
		return nil, fmt.Errorf("rediskeys: %w", err)
	}
	all, err := replies[0].StringSlice()
	if err != nil {
		return nil, fmt.Errorf("rediskeys: %w", err)
	}
	out := make([]api.AuditEntry, 0, len(all))
	for _, text := range all {
		var e api.AuditEntry
		if json.Unmarshal([]byte(text), &e) == nil {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b api.AuditEntry) int { return strings.Compare(b.ID, a.ID) })
	return out[:min(len(out), most)], nil
}
