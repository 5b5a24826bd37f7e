package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// build builds the program for each platform: static, without paths of this machine.
func (r *release) build(ctx context.Context) error {
	stamp := fmt.Sprintf("-s -w -X main.version=v%s -X main.revision=%s -X main.date=%s", r.version, r.commit, r.date.UTC().Format(time.RFC3339))
	for _, t := range r.targets {
		program := filepath.Join(r.out, "programs", t.os+"_"+t.arch, t.file())
		cmd := exec.CommandContext(ctx, "go", "build", "-tags", "grpcnotrace", "-trimpath", "-buildvcs=false", "-ldflags", stamp, "-o", program, "./cmd/pacer")
		cmd.Dir = r.source
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		r.programs[t] = program
	}
	return nil
}

// sbom asks a program of this machine what is in it. The modules are the same on all
// platforms.
func (r *release) sbom(ctx context.Context) error {
	program, ok := r.programs[target{runtime.GOOS, runtime.GOARCH}]
	if !ok {
		program = filepath.Join(r.out, "programs", "here")
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./cmd/pacer")
		cmd.Dir = r.source
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	text, err := exec.CommandContext(ctx, program, "version", "--sbom").Output()
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("pacer_%s.cdx.json", r.version), text)
}

// entry is a file of an archive.
type entry struct {
	name string
	mode fs.FileMode
	data []byte
}

// shipped are the files that go with each program.
func (r *release) shipped(t target) ([]entry, error) {
	program, err := os.ReadFile(r.programs[t])
	if err != nil {
		return nil, err
	}
	all, err := r.texts(map[string]string{
		"LICENSE": "LICENSE", "NOTICE": "NOTICE", "licenses.txt": "cmd/pacer/licenses.txt",
		"pacer.yaml": "release/pacer.yaml", "README.md": "README.md",
	})
	return sorted(append(all, entry{t.file(), 0o755, program})), err
}

// texts are files of the repository under other names, by those.
func (r *release) texts(paths map[string]string) (all []entry, err error) {
	for name, path := range paths {
		data, err := r.read(path)
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name, 0o644, data})
	}
	return sorted(all), nil
}

func sorted(all []entry) []entry {
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return all
}

// archives packs each program: .tar.gz, and .zip for Windows.
func (r *release) archives(context.Context) error {
	for _, t := range r.targets {
		files, err := r.shipped(t)
		if err != nil {
			return err
		}
		name := r.archive(t)
		pack := tarGz
		if t.os == "windows" {
			pack = zipped
		}
		data, err := pack(files, r.date)
		if err == nil {
			err = r.write(name, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// archive is the name of that of t.
func (r *release) archive(t target) string {
	end := ".tar.gz"
	if t.os == "windows" {
		end = ".zip"
	}
	return fmt.Sprintf("pacer_%s_%s_%s%s", r.version, t.os, t.arch, end)
}

func tarGz(files []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range files {
		if err := f.into(w, at); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// into writes f as a plain file of that time.
func (f entry) into(w *tar.Writer, at time.Time) error {
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: at.UTC()})
	if err == nil {
		_, err = w.Write(f.data)
	}
	return err
}

func zipped(files []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(f.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
