package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), args, &out, &errOut)
	return code, out.String(), errOut.String()
}

// mistake is what may not stand on a command line, and how the answer begins.
type mistake struct {
	args []string
	told string
}

// answered checks that no mistake behind words is more than answered: no output, no
// secret said again.
func answered(t *testing.T, mistakes []mistake, words ...string) {
	t.Helper()
	for _, m := range mistakes {
		line := slices.Concat(words, m.args)
		code, stdout, stderr := command(t, line...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, m.told) || strings.Contains(stderr, "s3cret") {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%swant 2, nothing, and\n%s", line, code, stdout, stderr, m.told)
		}
	}
}

// Who mistypes reads what was likely meant, else what there is.
func TestMistypedWordsAreAnswered(t *testing.T) {
	answered(t, []mistake{
		{[]string{"srve"}, "pacer: unknown command \"srve\"; did you mean \"serve\"?\n"},
		{[]string{"cruves"}, "pacer: unknown command \"cruves\"; did you mean \"curves\"?\n"},
		{[]string{"xyzzy"}, "pacer: unknown command \"xyzzy\"; known are bench, check, "},
		{[]string{"serve", "--lisen", ":0"}, "pacer: unknown flag: --lisen; did you mean --listen?\n"},
		{[]string{"slo", "exprt"}, "pacer: unknown command \"exprt\"; did you mean \"export\"?\n"},
		{[]string{"keys", "creat"}, "pacer: unknown command \"creat\"; did you mean \"create\"?\n"},
		{[]string{"doctor", "pacer.yaml"}, "pacer: doctor takes no argument \"pacer.yaml\"; write pacer doctor -c pacer.yaml\n"},
		{[]string{"slo", "export", "pacer.yaml"}, "pacer: export takes no argument \"pacer.yaml\"; write pacer slo export -c pacer.yaml\n"},
		{[]string{"keys", "create"}, "pacer: create: want one NAME, got 0; write pacer keys create NAME\n"},
		{[]string{"import", "litellm"}, "pacer: litellm: want one FILE, got 0; write pacer import litellm FILE\n"},
		{[]string{"store", "import", "a", "b"}, "pacer: import: want one FILE, got 2; write pacer store import FILE\n"},
		{[]string{"health", "a", "b"}, "pacer: health: want one argument at most, got 2; leave out \"b\"\n"},
		{[]string{"top", "chat"}, "pacer: top takes no argument \"chat\"; leave it out, or see pacer top --help\n"},
		{[]string{"serve", "--xyzzy"}, "pacer: unknown flag: --xyzzy\n"},
		{[]string{"explain", "--last", "abc"}, "pacer: --last: \"abc\" is not a whole number\n"},
		{[]string{"demo", "--duration", "5"}, "pacer: --duration: \"5\" is not a duration such as 30s or 5m\n"},
		{[]string{"serve", "-c", "nope.yaml"}, "pacer: config: open nope.yaml: no such file or directory; write it, or name a file that is there\n"},
		{[]string{"serve", "-c", "."}, "pacer: config: read .: is a directory; name a file in it\n"},
	})
}

func TestVersionFlag(t *testing.T) {
	_, want, _ := command(t, "version")
	code, got, stderr := command(t, "--version")
	if code != 0 || got != want || want == "" || stderr != "" {
		t.Errorf("pacer --version: exit code %d, %q, %q; want 0 and what pacer version prints, %q", code, got, stderr, want)
	}
}

// So do those that look at what serve would read.
func TestDoctorAndSLOReadTheUsualFile(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	must.Do(t, os.WriteFile("pacer.yaml", []byte("listen: nowhere\n"), 0o600))
	const want = "pacer.yaml:1:9: listen \"nowhere\" is no address"
	if code, stdout, _ := command(t, "doctor"); code != 1 || !strings.Contains(stdout, want) {
		t.Errorf("doctor: exit code %d, %q; want the problems of the file", code, stdout)
	}
	if code, _, stderr := command(t, "slo", "export"); code != 2 || !strings.Contains(stderr, want) {
		t.Errorf("slo export: exit code %d, %q; want the problems of the file", code, stderr)
	}
}

// Without -c serve reads pacer.yaml where there is one, right or wrong, before
// it asks the environment.
func TestServeReadsTheUsualFile(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("OPENAI_BASE_URL", "nowhere")
	code, _, stderr := command(t, "serve")
	if code != 2 || !strings.HasPrefix(stderr, "environment: OPENAI_BASE_URL") {
		t.Errorf("without a file: exit code %d, %q; want the environment to be read", code, stderr)
	}
	must.Do(t, os.WriteFile("pacer.yaml", []byte("listen: nowhere\n"), 0o600))
	code, _, stderr = command(t, "serve")
	if code != 2 || !strings.Contains(stderr, "pacer.yaml:1:9: listen \"nowhere\" is no address") {
		t.Errorf("with a file: exit code %d, %q; want its problems", code, stderr)
	}
	must.Do(t, os.Remove("pacer.yaml"))
	must.Do(t, os.Symlink(filepath.Join(t.TempDir(), "gone"), "pacer.yaml"))
	if code, _, stderr = command(t, "serve"); code != 2 || !strings.Contains(stderr, "pacer.yaml: no such file") {
		t.Errorf("with a link to nothing: exit code %d, %q; want that it cannot be read", code, stderr)
	}
}
