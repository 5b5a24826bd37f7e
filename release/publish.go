package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"aead.dev/minisign"
)

// digest is the SHA-256 of an artifact.
func (r *release) digest(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(r.out, name))
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}

// formula writes one for Homebrew: the archives for macOS and Linux.
func (r *release) formula(context.Context) error {
	var b strings.Builder
	fmt.Fprintf(&b, `class Pacer < Formula
  desc "Gateway that keeps a tokens-per-second floor over inference backends"
  homepage "https://github.com/pacer-dev/pacer"
  version %q
  license "Apache-2.0"

`, r.version)
	some := false
	for _, system := range []struct{ name, os string }{{"macos", "darwin"}, {"linux", "linux"}} {
		for _, cpu := range []struct{ name, arch string }{{"arm", "arm64"}, {"intel", "amd64"}} {
			t := target{system.os, cpu.arch}
			if !slices.Contains(r.targets, t) {
				continue
			}
			some = true
			sum, err := r.digest(r.archive(t))
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "  on_%s do\n    on_%s do\n      url \"%s/v%s/%s\"\n      sha256 %q\n    end\n  end\n\n", system.name, cpu.name, r.home, r.version, r.archive(t), sum)
		}
	}
	if !some {
		return nil
	}
	b.WriteString("  def install\n    bin.install \"pacer\"\n  end\n\n  test do\n    assert_match version.to_s, shell_output(\"#{bin}/pacer version\")\n  end\nend\n")
	return r.write("pacer.rb", []byte(b.String()))
}

// provenance says what the artifacts were made of, as an in-toto statement with SLSA's
// predicate. The signature of the checksums covers it.
func (r *release) provenance(context.Context) error {
	type object = map[string]any
	var subjects []object
	for _, name := range r.artifacts {
		sum, err := r.digest(name)
		if err != nil {
			return err
		}
		subjects = append(subjects, object{"name": name, "digest": object{"sha256": sum}})
	}
	text, err := json.MarshalIndent(object{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":          "https://github.com/pacer-dev/pacer/tree/main/release",
				"externalParameters": object{"version": r.version, "targets": fmt.Sprint(r.targets)},
				"resolvedDependencies": []object{
					{"uri": "git+https://github.com/pacer-dev/pacer", "digest": object{"gitCommit": r.commit}},
					{"name": "go", "uri": "https://go.dev/dl/", "annotations": object{"version": runtime.Version()}},
				},
			},
			"runDetails": object{"builder": object{"id": "https://github.com/pacer-dev/pacer/tree/main/release"}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("pacer_%s.intoto.json", r.version), append(text, '\n'))
}

// sums writes SHA256SUMS, and its signature where there is a key.
func (r *release) sums(context.Context) error {
	slices.Sort(r.artifacts)
	var b strings.Builder
	for _, name := range r.artifacts {
		sum, err := r.digest(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	if r.key == nil {
		fmt.Println("SHA256SUMS is not signed: there is no -key")
		return nil
	}
	trusted := fmt.Sprintf("pacer %s commit:%s", r.version, r.commit)
	signed := minisign.SignWithComments(*r.key, []byte(b.String()), trusted, "signature of SHA256SUMS")
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS.minisig"), signed, 0o644)
}
