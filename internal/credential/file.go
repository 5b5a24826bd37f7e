package credential

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/internal/readfile"
)

// lookEvery is how often a file is looked at, at most.
const lookEvery = time.Second

// file is a secret in a file, which is read again when it has changed.
type file struct {
	path string

	mu     sync.Mutex // guards what follows
	looked time.Time
	stamp  os.FileInfo // of what was read
	value  Value
	before Value // the one before: answers to it may still come
	err    error // of the last look; value is what was read before
}

// File returns a source of the secret in a file: its text without the blanks and
// line breaks around it. It is read when it is first asked for and again when it
// has changed; while it cannot be read the last one stays.
func File(path string) Source { return &file{path: path} }

// Get implements Source.
func (f *file) Get(context.Context) (Value, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); f.looked.IsZero() || now.Sub(f.looked) >= lookEvery || now.Before(f.looked) {
		f.looked = now
		f.look()
	}
	if f.value.Secret == "" {
		return Value{}, f.err
	}
	return f.value, nil
}

// look reads the file if it is another one than was read. mu is held.
func (f *file) look() {
	info, err := os.Stat(f.path)
	if err == nil && f.stamp != nil && os.SameFile(info, f.stamp) && info.ModTime().Equal(f.stamp.ModTime()) && info.Size() == f.stamp.Size() {
		return
	}
	secret := ""
	if err == nil {
		secret, err = ReadFile(f.path)
	}
	if f.err = err; err == nil {
		if f.stamp = info; secret != f.value.Secret {
			f.value, f.before = Value{Secret: secret}, f.value
		}
	}
}

// ReadFile returns the secret in a file.
func ReadFile(path string) (string, error) {
	text, err := readfile.Regular(path, 2*secretMost)
	secret := strings.TrimSpace(string(text))
	if err == nil {
		err = usable(secret)
	}
	if err != nil {
		return "", fmt.Errorf("the file %s: %s", path, readfile.Reason(err))
	}
	return secret, nil
}

// Refused implements Source.
func (f *file) Refused(v Value) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	return f.value.Secret != v.Secret
}

// Secrets implements Source.
func (f *file) Secrets() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append(secretsOf(f.value), secretsOf(f.before)...)
}
