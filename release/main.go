// Command release makes everything that a release of Pacer consists of, without a
// network: programs for each platform, archives, .deb and .rpm, an image, a wheel and
// npm packages that carry the program, a formula, a bill of materials, provenance, and
// checksums that are signed where there is a key. What is left to do is to publish it.
//
// The same commit gives the same bytes: times are those of the commit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aead.dev/minisign"
)

// release is one run: what is built, of what, and what came of it.
type release struct {
	source  string    // the repository
	out     string    // where everything goes
	version string    // semantic, without a v
	commit  string    // "" = unknown
	date    time.Time // of the commit
	targets []target
	home    string               // where the archives will be published, for the formula
	key     *minisign.PrivateKey // nil = unsigned

	programs  map[target]string // built
	artifacts []string          // files in out, by name
}

// target is a platform as Go names it.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// file is the name of the program there.
func (t target) file() string {
	if t.os == "windows" {
		return "pacer.exe"
	}
	return "pacer"
}

// all are the platforms of a release.
var all = []target{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"windows", "amd64"},
	{"windows", "arm64"},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := release{programs: map[target]string{}}
	var version, date, targets, key string
	flag.StringVar(&r.source, "source", "..", "the repository")
	flag.StringVar(&r.out, "out", "../dist", "directory for what is made; what is in it is removed")
	flag.StringVar(&version, "version", "", "such as v1.2.3; anything else is a build of no release")
	flag.StringVar(&r.commit, "commit", "", "the commit")
	flag.StringVar(&date, "date", "", "of the commit, as git log -1 --format=%cI prints it")
	flag.StringVar(&targets, "targets", "", "platforms such as linux/amd64,darwin/arm64 (default: all)")
	flag.StringVar(&r.home, "url", "https://github.com/pacer-dev/pacer/releases/download", "where releases are published, for the formula")
	flag.StringVar(&key, "key", os.Getenv("RELEASE_KEY"), "file of the minisign key that signs the checksums; its password is in RELEASE_PASSWORD")
	flag.Parse()
	err := r.prepare(version, date, targets, key)
	if err == nil {
		err = r.make(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// prepare reads the flags that are no plain text.
func (r *release) prepare(version, date, targets, key string) (err error) {
	if key != "" {
		opened, err := minisign.PrivateKeyFromFile(os.Getenv("RELEASE_PASSWORD"), key)
		if err != nil {
			return fmt.Errorf("-key %s: %w", key, err)
		}
		r.key = &opened
	}
	r.version = semantic(version, r.commit)
	if r.date, err = time.Parse(time.RFC3339, date); err != nil {
		return fmt.Errorf("-date %q is no time; write what git log -1 --format=%%cI prints", date)
	}
	r.targets = all
	if targets != "" {
		r.targets = nil
		for name := range strings.SplitSeq(targets, ",") {
			i := slices.IndexFunc(all, func(t target) bool { return t.String() == name })
			if i < 0 {
				return fmt.Errorf("-targets: %q is none of %v", name, all)
			}
			r.targets = append(r.targets, all[i])
		}
	}
	if r.source, err = filepath.Abs(r.source); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(r.source, "cmd", "pacer")); err != nil {
		return fmt.Errorf("-source: %w", err)
	}
	return r.mayBeEmptied()
}

// mayBeEmptied refuses a directory for what is made that holds something else.
func (r *release) mayBeEmptied() error {
	entries, err := os.ReadDir(r.out)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	for _, made := range []string{"SHA256SUMS", "programs"} {
		if _, err := os.Stat(filepath.Join(r.out, made)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("-out %s would be emptied, and holds what is no release; name another directory", r.out)
}

// make makes everything, in order of what needs what.
func (r *release) make(ctx context.Context) error {
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"programs", r.build},
		{"bill of materials", r.sbom},
		{"archives", r.archives},
		{"packages for Debian and RPM", r.packages},
		{"image", r.image},
		{"wheels", r.wheels},
		{"npm packages", r.npm},
		{"formula", r.formula},
		{"provenance", r.provenance},
		{"checksums", r.sums},
	} {
		fmt.Println(step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return os.RemoveAll(filepath.Join(r.out, "programs"))
}

// write puts an artifact into out.
func (r *release) write(name string, data []byte) error {
	r.artifacts = append(r.artifacts, name)
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// read returns a file of the repository.
func (r *release) read(path string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.source, filepath.FromSlash(path)))
}
