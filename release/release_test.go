package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	testVersion = "1.2.3"
	testCommit  = "0123456789abcdef0123456789abcdef01234567"
	testDate    = "2026-03-01T12:00:00Z"
)

// dist is a release for this machine, made once.
var dist string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pacer-release-")
	if err != nil {
		panic(err)
	}
	dist = filepath.Join(dir, "dist")
	code := 1
	if err := releaseTo(dist, ""); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

func releaseTo(out, key string) error {
	r := release{source: "..", out: out, commit: testCommit, home: "https://example.invalid", programs: map[target]string{}}
	if err := r.prepare("v"+testVersion, testDate, here().String(), key); err != nil {
		return err
	}
	return r.make(context.Background())
}

func here() target { return target{runtime.GOOS, runtime.GOARCH} }

// command runs a program that must succeed, and returns what it said.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// artifact is the one file of dist that fits.
func artifact(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

// says demands that a program is the one that was released.
func says(t *testing.T, out string) {
	t.Helper()
	if !strings.HasPrefix(out, "pacer v"+testVersion+" "+testCommit+" "+testDate) {
		t.Errorf("it says %q", out)
	}
}

// do ends the test where something fails that it is not about.
func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// get is do of a call that gives a value: data := get(os.ReadFile(path))(t).
func get[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		do(t, err)
		return value
	}
}

func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("no %s here; make packages installs it, on Debian as root", p)
		}
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("a directory can be entered as a system of its own (chroot) by root on Linux alone")
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string][2]string{
		"v1.2.3":              {"1.2.3", "1.2.3"},
		"1.2.3-rc.1":          {"1.2.3-rc.1", "1.2.3rc1"},
		"v1.2.3-14-gabcdef0":  {"0.0.0-dev.g0123456", "0.0.0.dev0+g0123456"},
		"v1.2.3-dirty":        {"0.0.0-dev.g0123456", "0.0.0.dev0+g0123456"},
		"":                    {"0.0.0-dev.g0123456", "0.0.0.dev0+g0123456"},
		"v1.2.3-preview_one!": {"0.0.0-dev.g0123456", "0.0.0.dev0+g0123456"},
	} {
		if got := semantic(version, testCommit); got != want[0] || python(got) != want[1] {
			t.Errorf("%q is %s and %s, want %s and %s", version, got, python(got), want[0], want[1])
		}
	}
}

// The checksums are of what is there, the same commit gives the same bytes, and a key
// signs them.
func TestChecksums(t *testing.T) {
	need(t, "sha256sum")
	command(t, dist, "sha256sum", "--check", "--strict", "SHA256SUMS")
	sums := get(os.ReadFile(filepath.Join(dist, "SHA256SUMS")))(t)
	entries, err := os.ReadDir(dist)
	if err != nil || strings.Count(string(sums), "\n") != len(entries)-1 {
		t.Errorf("%d files, %v, and these sums:\n%s", len(entries), err, sums)
	}

	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text := get(minisign.EncryptKey("secret", private))(t)
	key := filepath.Join(t.TempDir(), "key")
	do(t, os.WriteFile(key, text, 0o600))
	again := filepath.Join(t.TempDir(), "dist")
	t.Setenv("RELEASE_PASSWORD", "wrong")
	if err := releaseTo(again, key); err == nil {
		t.Error("a key was opened with a wrong password")
	}
	t.Setenv("RELEASE_PASSWORD", "secret")
	do(t, releaseTo(again, key))
	other, err := os.ReadFile(filepath.Join(again, "SHA256SUMS"))
	if err != nil || !bytes.Equal(other, sums) {
		t.Errorf("the same commit gave other bytes: %v\n%s\n%s", err, sums, other)
	}
	signature, err := os.ReadFile(filepath.Join(again, "SHA256SUMS.minisig"))
	if err != nil || !minisign.Verify(public, other, signature) {
		t.Errorf("the signature is not that of the key: %v", err)
	}
	if minisign.Verify(public, append(other, 'x'), signature) {
		t.Error("the signature holds for other sums")
	}
}

func TestTheArchiveRuns(t *testing.T) {
	need(t, "tar")
	dir := t.TempDir()
	command(t, dir, "tar", "-xzf", artifact(t, "pacer_*_"+here().os+"_"+here().arch+".tar.gz"))
	says(t, command(t, dir, "./pacer", "version"))
	if out := command(t, dir, "./pacer", "check", "pacer.yaml"); out == "" {
		t.Error("check of the configuration that is shipped says nothing")
	}
}

// The program for another processor checks a configuration and plays the demo under an
// emulator. Its build takes a minute or two.
func TestAnotherProcessorRuns(t *testing.T) {
	other := target{"linux", "arm64"}
	if here() == other {
		other.arch = "amd64"
	}
	emulator := map[string]string{"arm64": "qemu-aarch64", "amd64": "qemu-x86_64"}[other.arch]
	need(t, emulator)
	r := release{source: "..", out: t.TempDir(), commit: testCommit, programs: map[target]string{}}
	do(t, r.prepare("v"+testVersion, testDate, other.String(), ""))
	do(t, r.build(t.Context()))
	program := r.programs[other]
	says(t, command(t, r.out, emulator, program, "version"))
	config := get(filepath.Abs("pacer.yaml"))(t)
	if out := command(t, r.out, emulator, program, "check", config); out == "" {
		t.Error("check of the configuration that is shipped says nothing")
	}
	out := command(t, r.out, emulator, program, "demo", "--duration", "10s")
	t.Log(out)
	if !strings.Contains(out, "learned against true curve") {
		t.Error("the demo does not say what it has learned")
	}
}

func TestTheWheelRuns(t *testing.T) {
	need(t, "python3")
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "python3", "-m", "venv", dir).CombinedOutput(); err != nil {
		t.Skipf("no venv of Python here: %s", out)
	}
	pip := filepath.Join(dir, "bin", "pip")
	command(t, dir, pip, "install", "--no-index", artifact(t, "*.whl"))
	says(t, command(t, dir, filepath.Join(dir, "bin", "pacer"), "version"))
	if out := command(t, dir, pip, "show", "--files", "pacer-gateway"); !strings.Contains(out, "bin/pacer") {
		t.Errorf("pip does not know the program:\n%s", out)
	}
	command(t, dir, pip, "uninstall", "--yes", "pacer-gateway")
	if _, err := os.Stat(filepath.Join(dir, "bin", "pacer")); err == nil {
		t.Error("the program stays when the package goes")
	}
}

func TestTheNpmPackageRuns(t *testing.T) {
	need(t, "node", "npm")
	dir := t.TempDir()
	do(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte("{}"), 0o644))
	command(t, dir, "npm", "install", "--offline", "--no-audit", "--no-fund", "--install-strategy=hoisted",
		artifact(t, "pacer-gateway-"+testVersion+".tgz"), artifact(t, "pacer-gateway-"+npmNames[here().os]+"-*.tgz"))
	says(t, command(t, dir, "node_modules/.bin/pacer", "version"))
	cmd := exec.CommandContext(t.Context(), "node_modules/.bin/pacer", "no-such-command")
	cmd.Dir = dir
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("bad usage ends with %d, want 2 as the program has it", cmd.ProcessState.ExitCode())
	}
	do(t, os.RemoveAll(filepath.Join(dir, "node_modules", "pacer-gateway-"+npmNames[here().os]+"-"+npmNames[here().arch])))
	cmd = exec.CommandContext(t.Context(), "node_modules/.bin/pacer", "version")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "install pacer-gateway again") {
		t.Errorf("without the program it says %q, %v", out, err)
	}
}

// The .deb in a Debian that has nothing else: it installs, checks its configuration,
// serves, keeps a changed configuration, and goes.
func TestTheDebianPackageRuns(t *testing.T) {
	needRoot(t)
	need(t, "debootstrap", "dpkg-deb")
	root := t.TempDir()
	command(t, root, "debootstrap", "--variant=minbase", "stable", root)
	deb := artifact(t, "*.deb")
	data := get(os.ReadFile(deb))(t)
	do(t, os.WriteFile(filepath.Join(root, "pacer.deb"), data, 0o644))
	in := func(args ...string) string { return command(t, root, "chroot", append([]string{root}, args...)...) }
	in("dpkg", "--install", "/pacer.deb")
	says(t, in("pacer", "version"))
	in("pacer", "check", "/etc/pacer/pacer.yaml")
	config := filepath.Join(root, "etc", "pacer", "pacer.yaml")
	changed := "# changed\n" + serving
	do(t, os.WriteFile(config, []byte(changed), 0o644))
	serves(t, "chroot", root, "pacer", "serve", "-c", "/etc/pacer/pacer.yaml")
	in("dpkg", "--install", "/pacer.deb")
	if now, err := os.ReadFile(config); err != nil || string(now) != changed {
		t.Errorf("a new installation changed the configuration: %v", err)
	}
	if unit := in("cat", "/usr/lib/systemd/system/pacer.service"); !strings.Contains(unit, "ExecStart=/usr/bin/pacer serve") {
		t.Errorf("the unit:\n%s", unit)
	}
	in("dpkg", "--remove", "pacer")
	if _, err := os.Stat(filepath.Join(root, "usr", "bin", "pacer")); err == nil {
		t.Error("the program stays when the package goes")
	}
	in("dpkg", "--purge", "pacer")
	if _, err := os.Stat(config); err == nil {
		t.Error("the configuration stays when the package is purged")
	}
}

func TestTheRPMInstalls(t *testing.T) {
	needRoot(t)
	need(t, "rpm")
	root := t.TempDir()
	// Without /bin/sh in there its scripts cannot run, and none of its files needs them.
	command(t, root, "rpm", "--root", root, "--install", "--nodeps", "--noscripts", artifact(t, "*.rpm"))
	says(t, command(t, root, "chroot", root, "/usr/bin/pacer", "version"))
	command(t, root, "chroot", root, "/usr/bin/pacer", "check", "/etc/pacer/pacer.yaml")
	if out := command(t, root, "rpm", "-qp", "--configfiles", artifact(t, "*.rpm")); !strings.Contains(out, "/etc/pacer/pacer.yaml") {
		t.Errorf("configuration files: %s", out)
	}
}

// serving is a configuration without engines that answer.
const serving = `listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends: [ { name: a, url: "http://127.0.0.1:1/v1" } ]
routes: [ { model: chat, targets: [ { backend: a, model: m } ] } ]
`

// serves starts a gateway, asks whether it lives, and ends it.
func serves(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	said := get(cmd.StderrPipe())(t)
	do(t, cmd.Start())
	var log bytes.Buffer
	ready := regexp.MustCompile(`data=(http://\S+)`)
	var url string
	for buf := make([]byte, 4096); url == ""; {
		n, err := said.Read(buf)
		log.Write(buf[:n])
		if m := ready.FindStringSubmatch(log.String()); m != nil {
			url = m[1]
		} else if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, log.String())
		}
	}
	go io.Copy(io.Discard, said)
	resp, err := http.Get(url + "/healthz")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("healthz: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	do(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// The image, layer on layer, as nobody and with nothing to write to.
func TestTheImageRuns(t *testing.T) {
	needRoot(t)
	layout, root := t.TempDir(), t.TempDir()
	command(t, layout, "tar", "-xf", artifact(t, "*_image.tar"))
	blob := func(digest string) []byte {
		data := get(os.ReadFile(filepath.Join(layout, "blobs", strings.Replace(digest, ":", "/", 1))))(t)
		return data
	}
	type descriptor struct {
		Digest   string                        `json:"digest"`
		Platform struct{ Architecture string } `json:"platform"`
	}
	var index struct{ Manifests []descriptor }
	read(t, filepath.Join(layout, "index.json"), &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("the index: %+v", index)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, blob(index.Manifests[0].Digest), &manifest)
	for _, l := range manifest.Layers {
		layer := filepath.Join(t.TempDir(), "layer")
		do(t, os.WriteFile(layer, blob(l.Digest), 0o644))
		command(t, root, "tar", "-xzf", layer)
	}
	var config struct {
		Config struct {
			User            string
			Entrypoint, Cmd []string
			Labels          map[string]string
		}
	}
	decode(t, blob(manifest.Config.Digest), &config)
	if c := config.Config; c.User != "65532:65532" || len(c.Entrypoint) != 1 || c.Labels["org.opencontainers.image.version"] != testVersion {
		t.Errorf("%+v", c)
	}
	says(t, command(t, root, "chroot", "--userspec="+config.Config.User, root, config.Config.Entrypoint[0], "version"))
	if info, err := os.Stat(filepath.Join(root, authorities)); err != nil || info.Size() < 1000 {
		t.Errorf("authorities: %v", err)
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	data := get(os.ReadFile(path))(t)
	decode(t, data, into)
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	do(t, json.Unmarshal(data, into))
}

// What is said of the artifacts is of all of them.
func TestProvenanceAndMaterials(t *testing.T) {
	var statement struct {
		Subject []struct {
			Name   string
			Digest struct{ SHA256 string }
		}
	}
	read(t, artifact(t, "*.intoto.json"), &statement)
	sums := get(os.ReadFile(filepath.Join(dist, "SHA256SUMS")))(t)
	if len(statement.Subject) < 8 {
		t.Errorf("%d artifacts have a provenance", len(statement.Subject))
	}
	for _, s := range statement.Subject {
		if !strings.Contains(string(sums), s.Digest.SHA256+"  "+s.Name+"\n") {
			t.Errorf("%s has another sum", s.Name)
		}
	}
	var materials struct {
		BomFormat  string
		Components []struct{ Name string }
	}
	read(t, artifact(t, "*.cdx.json"), &materials)
	if materials.BomFormat != "CycloneDX" || len(materials.Components) < 10 {
		t.Errorf("%s of %d components", materials.BomFormat, len(materials.Components))
	}
	if formula, err := os.ReadFile(artifact(t, "pacer.rb")); err != nil || here().os != "windows" && !strings.Contains(string(formula), "example.invalid/v"+testVersion) {
		t.Errorf("the formula: %v\n%s", err, formula)
	}
}

// No file of an archive is written outside, and the program can be run.
func TestModesInTheArchive(t *testing.T) {
	need(t, "gzip")
	plain := command(t, dist, "gzip", "-dc", artifact(t, "pacer_*_"+here().os+"_"+here().arch+".tar.gz"))
	r := tar.NewReader(strings.NewReader(plain))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int64{true: 0o755, false: 0o644}[h.Name == "pacer"]; h.Mode != want || strings.Contains(h.Name, "/") || !h.ModTime.Equal(get(time.Parse(time.RFC3339, testDate))(t)) {
			t.Errorf("%+v", h)
		}
	}
}

// What npm's packages run can be run, also where they are unpacked by something else:
// npm itself gives the mode to what bin names.
func TestModesInNpmPackages(t *testing.T) {
	need(t, "gzip")
	for name, run := range map[string]string{
		"pacer-gateway-" + testVersion + ".tgz":                "package/pacer.js",
		"pacer-gateway-" + npmNames[here().os] + "-*" + ".tgz": "package/bin/" + here().file(),
	} {
		r := tar.NewReader(strings.NewReader(command(t, dist, "gzip", "-dc", artifact(t, name))))
		modes := map[string]fs.FileMode{}
		for h, err := r.Next(); err != io.EOF; h, err = r.Next() {
			do(t, err)
			modes[h.Name] = h.FileInfo().Mode()
		}
		if modes[run] != 0o755 || modes["package/package.json"] != 0o644 || modes["package/LICENSE"] != 0o644 {
			t.Errorf("%s has the modes %v", name, modes)
		}
	}
}

// go install of a version, as the proxies of Go serve it: from a zip of the module.
func TestGoInstall(t *testing.T) {
	need(t, "git")
	proxy := t.TempDir()
	// A version of its own for each run: what an earlier one left in the cache is another.
	v := module.Version{Path: "github.com/pacer-dev/pacer", Version: fmt.Sprintf("v%s-test.%d", testVersion, time.Now().UnixNano())}
	at := filepath.Join(proxy, v.Path, "@v")
	do(t, os.MkdirAll(at, 0o755))
	file := get(os.Create(filepath.Join(at, v.Version+".zip")))(t)
	clone := filepath.Join(t.TempDir(), "clone") // the zip is made where .git is a folder, which it is not in a work tree
	command(t, "..", "git", "clone", "--quiet", "--shared", "--no-checkout", ".", clone)
	do(t, zip.CreateFromVCS(file, v, clone, "HEAD", ""))
	file.Close()
	mod := command(t, "..", "git", "show", "HEAD:go.mod")
	for name, text := range map[string]string{v.Version + ".mod": mod, v.Version + ".info": `{"Version":"` + v.Version + `"}`, "list": v.Version + "\n"} {
		do(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o644))
	}
	bin := t.TempDir()
	usual := strings.TrimSpace(command(t, "..", "go", "env", "GOPROXY"))
	cmd := exec.CommandContext(t.Context(), "go", "install", v.Path+"/cmd/pacer@"+v.Version)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOPROXY=file://"+proxy+","+usual, "GONOSUMDB="+v.Path, "GOFLAGS=-mod=mod -modcacherw", "GOMODCACHE="+modCache(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out := command(t, bin, "./pacer", "version"); !strings.HasPrefix(out, "pacer "+v.Version+" ") {
		t.Errorf("it says %q", out)
	}
}

// modCache is the cache of modules as it is, without this module in it afterwards.
func modCache(t *testing.T) string {
	t.Helper()
	cache := strings.TrimSpace(command(t, "..", "go", "env", "GOMODCACHE"))
	t.Cleanup(func() {
		for _, path := range []string{"cache/download/github.com/pacer-dev", "github.com/pacer-dev"} {
			_ = filepath.WalkDir(filepath.Join(cache, path), func(p string, _ os.DirEntry, err error) error {
				if err == nil {
					_ = os.Chmod(p, 0o755)
				}
				return nil
			})
			os.RemoveAll(filepath.Join(cache, path))
		}
	})
	return cache
}

// The unit is one that systemd takes, and its score is what docs/OPERATIONS.md says.
func TestTheUnit(t *testing.T) {
	need(t, "systemd-analyze", "dpkg-deb")
	root := t.TempDir()
	command(t, root, "dpkg-deb", "--extract", artifact(t, "*.deb"), root)
	out := command(t, root, "systemd-analyze", "security", "--offline=true", "--root="+root, "--threshold=20", "pacer.service")
	if !strings.Contains(out, "Overall exposure level") {
		t.Errorf("%s", out)
	}
	t.Log(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:])
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--root="+root, "pacer.service")
	said, _ := cmd.CombinedOutput() // there are no units but this one: the lines tell, not the status
	for line := range strings.Lines(string(said)) {
		alone := strings.Contains(line, "sysinit.target not found")
		old := strings.Contains(line, "ignoring: notify-reload") // systemd before 253
		if strings.Contains(line, "pacer.service") && !alone && !old {
			t.Error(line)
		}
	}
}
