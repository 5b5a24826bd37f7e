package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
)

// fromRoot reads a file of the repository.
func fromRoot(t *testing.T, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("..", "..", name)))(t)
	return string(text)
}

// sh runs a line of shell in the root of the repository.
func sh(t *testing.T, line string, env ...string) string {
	t.Helper()
	c := exec.Command("sh", "-c", line)
	c.Dir, c.Env = filepath.Join("..", ".."), append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// mostBytes is how large the program may be. It grows by a quarter where something, such
// as a library for templates, looks methods up by name: the linker then keeps all methods.
const mostBytes = 36 << 20

// Each way to build stamps the version into the program: make does, and the image
// is built by the same command. What the Go tool notes by itself is for
// TestThePlainBuildKnowsItsCommit.
func TestEveryBuildIsStamped(t *testing.T) {
	if racetest.On {
		t.Skip("a build, of which the race detector sees nothing: make numbers runs it")
	}
	const stamp = "VERSION=v9.8.7 REVISION=0123abc DATE=2026-01-02T03:04:05Z"
	m := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*)$`).FindStringSubmatch(fromRoot(t, "Dockerfile"))
	if m == nil {
		t.Fatal("no line in the Dockerfile that builds the program")
	}
	image := regexp.MustCompile(`\$\{(\w+)\}`).ReplaceAllStringFunc(m[1], func(arg string) string {
		_, value, ok := strings.Cut(stamp+" ", strings.Trim(arg, "${}")+"=")
		if !ok {
			t.Errorf("the Dockerfile stamps %s, which make does not", arg)
		}
		value, _, _ = strings.Cut(value, " ")
		return value
	})
	if made := strings.TrimSpace(sh(t, "MAKEFLAGS= make --no-print-directory -n build BIN=/pacer "+stamp)); image != made {
		t.Errorf("the image is built by\n%s, make builds by\n%s", image, made)
	}
	out := filepath.Join(t.TempDir(), "pacer")
	sh(t, `MAKEFLAGS= make --no-print-directory -s build BIN="$OUT" `+stamp, "OUT="+out)
	if program, err := os.Stat(out); err != nil || program.Size() > mostBytes {
		t.Errorf("the program has %d bytes, at most %d are allowed (%v): does something look methods up by name again?", program.Size(), mostBytes, err)
	}
	if got := sh(t, out+" version"); !strings.HasPrefix(got, "pacer v9.8.7 0123abc 2026-01-02T03:04:05Z go1.") {
		t.Errorf("%q, want version, commit, date and Go", got)
	}
	var b build
	if err := json.Unmarshal([]byte(sh(t, out+" version --json")), &b); err != nil || b.Version != "v9.8.7" || b.Revision != "0123abc" || b.Date != "2026-01-02T03:04:05Z" || b.Platform == "" {
		t.Errorf("%+v, %v", b, err)
	}
	if got := sh(t, out+" version --licenses"); got != licenses {
		t.Errorf("the licenses are %d bytes, want the %d of licenses.txt", len(got), len(licenses))
	}
	checkSBOM(t, sh(t, out+" version --sbom"))
}

// checkSBOM checks text against what CycloneDX 1.6 asks for, and that it has
// each module of the program.
func checkSBOM(t *testing.T, text string) {
	t.Helper()
	var list sbom
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	must.Do(t, d.Decode(&list))
	if list.Format != "CycloneDX" || list.SpecVersion != "1.6" || list.Version != 1 || list.Metadata.Timestamp != "2026-01-02T03:04:05Z" {
		t.Errorf("head %+v", list)
	}
	purl := regexp.MustCompile(`^pkg:golang/[A-Za-z0-9./_~%-]+@[A-Za-z0-9.%+-]+$`)
	refs := map[string]bool{}
	have := map[string]bool{}
	for _, c := range append(list.Components, list.Metadata.Component) {
		if c.Name == "" || c.Version == "" || !purl.MatchString(c.PURL) || refs[c.Ref] {
			t.Errorf("component %+v: want a name, a version, a package URL, and a ref of its own", c)
		}
		refs[c.Ref], have[c.Name+" "+c.Version] = true, true
	}
	if self := list.Metadata.Component; self.Type != "application" || self.Name != "pacer" || self.Version != "v9.8.7" {
		t.Errorf("the program is %+v", self)
	}
	out := must.Get(exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", ".").Output())(t)
	modules := slices.Compact(slices.Sorted(slices.Values(strings.Split(strings.TrimSpace(string(out)), "\n"))))
	for _, m := range modules {
		if m != "" && !have[m] {
			t.Errorf("%s is in the program and not in its bill", m)
		}
	}
	for _, d := range list.Dependencies {
		for _, ref := range append(d.DependsOn, d.Ref) {
			if !refs[ref] {
				t.Errorf("a dependency on %s, which is no component", ref)
			}
		}
	}
}

// The image is built from images that are named by digest, runs as nobody, asks
// itself for its health, and has the terms of all that is in it.
func TestDockerfile(t *testing.T) {
	text := fromRoot(t, "Dockerfile")
	from := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(text, -1)
	if len(from) != 2 {
		t.Fatalf("%d stages, want 2", len(from))
	}
	for _, f := range from {
		if f[1] != "scratch" && !regexp.MustCompile(`@sha256:[0-9a-f]{64}$`).MatchString(f[1]) {
			t.Errorf("FROM %s: want a digest", f[1])
		}
	}
	_, final, _ := strings.Cut(text, "\nFROM scratch\n")
	for _, line := range []string{
		"USER 65532:65532\n", `CMD ["/pacer", "health"]`, "COPY LICENSE NOTICE cmd/pacer/licenses.txt /\n", "ENTRYPOINT [\"/pacer\"]\n",
		`org.opencontainers.image.version="${VERSION}"`, `org.opencontainers.image.revision="${REVISION}"`,
	} {
		if !strings.Contains(final, line) {
			t.Errorf("the final image has no %q", line)
		}
	}
	ignored := strings.Fields(fromRoot(t, ".dockerignore"))
	for _, m := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(text, -1) {
		for _, name := range strings.Fields(m[1]) {
			if _, err := os.Stat(filepath.Join("..", "..", name)); err != nil || slices.Contains(ignored, strings.Split(name, "/")[0]) {
				t.Errorf("COPY %s: %v, or ignored", name, err)
			}
		}
	}
}

// Every service of the compose file is bound: nothing to write to, no
// capability, no way to get one, a health check, an image by digest or built
// here with its version, and ports on loopback alone.
func TestCompose(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Build *struct {
				Context string
				Args    map[string]string
			}
			Image       string
			ReadOnly    bool     `yaml:"read_only"`
			CapDrop     []string `yaml:"cap_drop"`
			SecurityOpt []string `yaml:"security_opt"`
			Ports       []string
			Healthcheck struct{ Test []string }
		}
	}
	must.Do(t, yaml.Unmarshal([]byte(fromRoot(t, "docker-compose.yml")), &file))
	if len(file.Services) != 8 {
		t.Fatalf("%d services, want 8", len(file.Services))
	}
	for name, s := range file.Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s: read_only %v, cap_drop %v, security_opt %v", name, s.ReadOnly, s.CapDrop, s.SecurityOpt)
		}
		if len(s.Healthcheck.Test) < 2 {
			t.Errorf("%s has no health check", name)
		}
		switch {
		case s.Build != nil:
			for _, arg := range []string{"VERSION", "REVISION", "DATE"} {
				if !strings.Contains(s.Build.Args[arg], arg) {
					t.Errorf("%s is built without %s", name, arg)
				}
			}
		case !regexp.MustCompile(`@sha256:[0-9a-f]{64}$`).MatchString(s.Image):
			t.Errorf("%s: image %q has no digest", name, s.Image)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s to everybody", name, p)
			}
		}
	}
}

// pacer health says by its exit code what /healthz says.
func TestHealthCommand(t *testing.T) {
	status := http.StatusOK
	asked := ""
	answer := func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}
	plain, secure := httptest.NewServer(http.HandlerFunc(answer)), httptest.NewTLSServer(http.HandlerFunc(answer))
	defer plain.Close()
	defer secure.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct {
		status int
		args   []string
		path   string
		code   int
	}{
		{200, []string{plain.URL}, "/healthz", 0},
		{200, []string{plain.URL + "/readyz"}, "/readyz", 0},
		{503, []string{plain.URL + "/readyz"}, "/readyz", 1},
		{302, []string{plain.URL}, "/healthz", 1},
		{200, []string{secure.URL}, "", 1}, // nobody signed for it
		{200, []string{secure.URL, "--insecure"}, "/healthz", 0},
		{200, []string{gone.URL}, "", 1},
		{200, []string{"127.0.0.1:8080"}, "", 2},
		{200, []string{"file:///etc/passwd"}, "", 2},
	} {
		status, asked = c.status, ""
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"health"}, c.args...), &out, &errs)
		if code != c.code || asked != c.path {
			t.Errorf("health %v of one that says %d: exit %d after asking %q, want %d after %q (%s)", c.args, c.status, code, asked, c.code, c.path, errs.String())
		}
		if signed := !slices.Contains(c.args, secure.URL) || len(c.args) > 1; strings.Contains(errs.String(), "--insecure") == signed {
			t.Errorf("health %v: %s; want advice on the certificate where that is wrong, and nowhere else", c.args, errs.String())
		}
	}
}
