// Package filekeys keeps keys and the audit log of a gateway without Redis in its
// state_dir: keys.json, written whole or not at all, and audit.jsonl, a line for
// each change.
package filekeys

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/atomicfile"
	"github.com/pacer-dev/pacer/keys"
)

// mostAudit is the size at which audit.jsonl becomes audit.jsonl.1, in bytes.
const mostAudit = 16 << 20

// Store is the files of one directory.
type Store struct {
	dir string

	mu   sync.Mutex // guards the files and what follows
	keys map[string]keys.Key
	rev  int
}

// ErrDirectory reports a directory that is not there, and cannot be made.
var ErrDirectory = errors.New("filekeys: no directory")

// Open reads what is kept in dir.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	s := &Store{dir: dir, keys: map[string]keys.Key{}, rev: 1}
	data, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	var list []keys.Key
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		// To begin anew would forget who was revoked.
		return nil, fmt.Errorf("filekeys: %s cannot be read: %w; mend it, or move it away to begin without keys", s.file(), err)
	}
	for _, k := range list {
		s.keys[k.Spec.Name] = k
	}
	return s, nil
}

func (s *Store) file() string  { return filepath.Join(s.dir, "keys.json") }
func (s *Store) audit() string { return filepath.Join(s.dir, "audit.jsonl") }

// Load implements keys.Store.
func (s *Store) Load(_ context.Context, mark string, _ []keys.Key) ([]keys.Key, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := strconv.Itoa(s.rev)
	if mark == next {
		return nil, mark, nil
	}
	return keys.Sorted(s.keys), next, nil
}

// Put implements keys.Store. The entry is written first: a change without one is
// worse than an entry whose change was lost.
func (s *Store) Put(_ context.Context, k keys.Key, e api.AuditEntry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[k.Spec.Name].Version+1 != k.Version {
		return keys.ErrConflict
	}
	if err := s.note(e); err != nil {
		return err
	}
	return s.replace(k.Spec.Name, &k)
}

// Drop implements keys.Store.
func (s *Store) Drop(_ context.Context, k keys.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replace(k.Spec.Name, nil)
}

// replace writes the keys with another one under name; nil = none. mu is held.
func (s *Store) replace(name string, k *keys.Key) error {
	next := maps.Clone(s.keys)
	if delete(next, name); k != nil {
		next[name] = *k
	}
	data, err := json.Marshal(keys.Sorted(next))
	if err != nil {
		return err
	}
	if err := atomicfile.Write(s.file(), data); err != nil {
		return fmt.Errorf("filekeys: %w", err)
	}
	s.keys, s.rev = next, s.rev+1
	return nil
}

// Restore implements keys.Store: a file forgets nothing.
func (s *Store) Restore(context.Context, []keys.Key) error { return nil }

// Note implements keys.Store.
func (s *Store) Note(_ context.Context, e api.AuditEntry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note(e)
}

// note appends e. mu is held.
func (s *Store) note(e api.AuditEntry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if info, err := os.Stat(s.audit()); err == nil && info.Size() > mostAudit {
		if err := os.Rename(s.audit(), s.audit()+".1"); err != nil {
			return fmt.Errorf("filekeys: %w", err)
		}
	}
	f, err := os.OpenFile(s.audit(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("filekeys: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("filekeys: %w", err)
	}
	return nil
}

// Entries implements keys.Store.
func (s *Store) Entries(_ context.Context, most int) ([]api.AuditEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []api.AuditEntry
	for _, name := range []string{s.audit() + ".1", s.audit()} {
		data, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("filekeys: %w", err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
			var e api.AuditEntry
			if json.Unmarshal(lines.Bytes(), &e) == nil { // the last one may be cut by a crash
				out = append(out, e)
			}
		}
	}
	slices.Reverse(out)
	return out[:min(len(out), most)], nil
}
