package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
)

// npmNames are the words that npm has for a platform.
var npmNames = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32", "amd64": "x64", "arm64": "arm64"}

// npm makes pacer-gateway for npx: a launcher, and a package with the program for each
// platform, of which npm installs the one that fits. Nothing is fetched at installation.
func (r *release) npm(context.Context) error {
	license, err := r.texts(map[string]string{"package/LICENSE": "LICENSE"})
	if err != nil {
		return err
	}
	launcher, err := r.texts(map[string]string{"package/LICENSE": "LICENSE", "package/README.md": "release/README.pip.md"})
	if err != nil {
		return err
	}
	script, err := r.read("release/launcher.js")
	if err != nil {
		return err
	}
	launcher = sorted(append(launcher, entry{"package/pacer.js", 0o755, script})) // as npm pack does with what bin names
	common := map[string]any{
		"version": r.version, "license": "Apache-2.0", "description": "A gateway that keeps a tokens-per-second floor over inference backends",
		"repository": map[string]string{"type": "git", "url": "git+https://github.com/pacer-dev/pacer.git"},
	}
	programs := map[string]string{}
	for _, t := range r.targets {
		program, err := os.ReadFile(r.programs[t])
		if err != nil {
			return err
		}
		system, cpu := npmNames[t.os], npmNames[t.arch]
		name := fmt.Sprintf("pacer-gateway-%s-%s", system, cpu)
		programs[name] = r.version
		about := map[string]any{"name": name, "os": []string{system}, "cpu": []string{cpu}, "preferUnplugged": true}
		if err := r.npmPackage(name, with(common, about), append([]entry{{"package/bin/" + t.file(), 0o755, program}}, license...)); err != nil {
			return err
		}
	}
	return r.npmPackage("pacer-gateway", with(common, map[string]any{
		"name": "pacer-gateway", "bin": map[string]string{"pacer": "pacer.js", "pacer-gateway": "pacer.js"},
		"engines": map[string]string{"node": ">=18"}, "optionalDependencies": programs,
	}), launcher)
}

func (r *release) npmPackage(name string, about map[string]any, files []entry) error {
	text, err := json.MarshalIndent(about, "", "  ") // with sorted keys
	if err != nil {
		return err
	}
	data, err := tarGz(append([]entry{{"package/package.json", 0o644, text}}, files...), r.date)
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("%s-%s.tgz", name, r.version), data)
}

// with is all of both; b wins.
func with(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
