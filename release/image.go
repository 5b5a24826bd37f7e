package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// authorities are the CAs of this machine, which the image carries.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

// image makes one image for all Linuxes, as an OCI layout in a tar: crane push, skopeo
// copy and podman load take it. It holds the program, the CAs and the terms; it runs as
// nobody in particular, and needs no file that it could write.
func (r *release) image(context.Context) error {
	index := v1.ImageIndex(mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	some := false
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		some = true
		image, err := r.imageOf(t)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.os, Architecture: t.arch}},
		})
	}
	if !some {
		return nil
	}
	dir := filepath.Join(r.out, "programs", "image")
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	data, err := tarOf(dir, r.date)
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("pacer_%s_image.tar", r.version), data)
}

func (r *release) imageOf(t target) (v1.Image, error) {
	cas, err := os.ReadFile(authorities)
	if err != nil {
		return nil, fmt.Errorf("%w; on Debian: apt-get install ca-certificates", err)
	}
	program, err := os.ReadFile(r.programs[t])
	if err != nil {
		return nil, err
	}
	base, err := r.texts(map[string]string{"LICENSE": "LICENSE", "NOTICE": "NOTICE", "licenses.txt": "cmd/pacer/licenses.txt"})
	if err != nil {
		return nil, err
	}
	base = sorted(append(base, entry{authorities[1:], 0o644, cas}))
	// What changes less often is a layer of its own.
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	for _, files := range [][]entry{base, {{"pacer", 0o755, program}}} {
		packed, err := packed(files, r.date)
		if err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "release"}}); err != nil {
			return nil, err
		}
	}
	labels := map[string]string{
		"org.opencontainers.image.title": "pacer", "org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source":  "https://github.com/pacer-dev/pacer",
		"org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit,
	}
	return mutate.ConfigFile(image, mustConfig(image, func(c *v1.ConfigFile) {
		c.OS, c.Architecture, c.Created = t.os, t.arch, v1.Time{Time: r.date}
		c.Config = v1.Config{
			User: "65532:65532", Entrypoint: []string{"/pacer"}, Cmd: []string{"serve", "-c", "/etc/pacer/pacer.yaml"},
			ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9090/tcp": {}}, Labels: labels, WorkingDir: "/",
			Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/pacer", "health"}, Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 10 * time.Second},
		}
	}))
}

// mustConfig is the configuration of an image that was made in memory, changed.
func mustConfig(image v1.Image, change func(*v1.ConfigFile)) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic(err) // it is read from memory
	}
	c = c.DeepCopy()
	change(c)
	return c
}

// packed is a tar of files and the directories above them.
func packed(files []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{".": true}
	for _, f := range files {
		var above []string
		for dir := filepath.Dir(f.name); !made[dir]; dir = filepath.Dir(dir) {
			made[dir] = true
			above = append(above, dir)
		}
		for _, dir := range slices.Backward(above) {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: at.UTC()}); err != nil {
				return nil, err
			}
		}
		if err := f.into(w, at); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// tarOf is a tar of the files below dir.
func tarOf(dir string, at time.Time) ([]byte, error) {
	var files []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, entry{filepath.ToSlash(name), 0o644, data})
		return err
	})
	if err != nil {
		return nil, err
	}
	return packed(files, at)
}
