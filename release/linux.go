package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers itself
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packages makes a .deb and a .rpm for each Linux. The service is installed and not
// started: it has nothing to do until somebody has named the engines.
func (r *release) packages(context.Context) error {
	dir := filepath.Join(r.out, "programs", "linux")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unit, err := r.read("deploy/pacer.service")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"pacer.service": unitOf(string(unit)),
		"postinstall":   "#!/bin/sh\nset -e\nif [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n",
		"preremove": "#!/bin/sh\nset -e\n# $1 is remove or 0 when the package goes, and upgrade or 1 when a newer one comes.\n" +
			"if [ \"$1\" = remove ] || [ \"$1\" = 0 ]; then\n\tif [ -d /run/systemd/system ]; then systemctl disable --now pacer || true; fi\nfi\n",
		"copyright": copyright,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(format, t, dir); err != nil {
				return fmt.Errorf("%s for %s: %w", format, t, err)
			}
		}
	}
	return nil
}

// unitOf is the unit with the program where a package has it, without the lines that
// say how to install it by hand.
func unitOf(text string) string {
	_, rest, _ := strings.Cut(text, "[Unit]")
	return strings.ReplaceAll("[Unit]"+rest, "/usr/local/bin/pacer", "/usr/bin/pacer")
}

// copyright names the terms as Debian wants them.
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: pacer
Source: https://github.com/pacer-dev/pacer

Files: *
Copyright: The Pacer authors
License: Apache-2.0
 On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0. The terms
 of all modules in the program are in /usr/share/doc/pacer/licenses.txt.
`

func (r *release) pack(format string, t target, dir string) error {
	var contents files.Contents
	add := func(from, to, kind string, mode os.FileMode) {
		contents = append(contents, &files.Content{
			Source: from, Destination: to, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.date},
		})
	}
	of := func(path ...string) string { return filepath.Join(append([]string{r.source}, path...)...) }
	add(r.programs[t], "/usr/bin/pacer", files.TypeFile, 0o755)
	add(filepath.Join(dir, "pacer.service"), "/usr/lib/systemd/system/pacer.service", files.TypeFile, 0o644)
	add(of("release", "pacer.yaml"), "/etc/pacer/pacer.yaml", files.TypeConfigNoReplace, 0o644)
	add(of("LICENSE"), "/usr/share/doc/pacer/LICENSE", files.TypeFile, 0o644)
	add(of("NOTICE"), "/usr/share/doc/pacer/NOTICE", files.TypeFile, 0o644)
	add(of("cmd", "pacer", "licenses.txt"), "/usr/share/doc/pacer/licenses.txt", files.TypeFile, 0o644)
	if format == "deb" {
		add(filepath.Join(dir, "copyright"), "/usr/share/doc/pacer/copyright", files.TypeFile, 0o644)
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "pacer", Arch: t.arch, Platform: "linux", Version: r.version, VersionSchema: "semver",
		Section: "net", Priority: "optional", Maintainer: "The Pacer authors <pacer@pacer.invalid>",
		Description: "gateway that keeps a tokens-per-second floor over inference backends\n" +
			"Pacer relays OpenAI-compatible requests to several inference backends, learns how\n" +
			"fast each of them is under load, and keeps a floor for each user.",
		Homepage: "https://github.com/pacer-dev/pacer", License: "Apache-2.0", MTime: r.date,
		Overridables: nfpm.Overridables{
			Contents:   contents,
			Recommends: []string{"ca-certificates"},
			Scripts:    nfpm.Scripts{PostInstall: filepath.Join(dir, "postinstall"), PreRemove: filepath.Join(dir, "preremove")},
			RPM:        nfpm.RPM{BuildHost: "pacer"}, // not that of this machine
		},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := packager.Package(info, &b); err != nil {
		return err
	}
	return r.write(packager.ConventionalFileName(info), b.Bytes())
}
