package sdk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// doorwayFile is what the clients sent: the gateway's own tests send it again.
var doorwayFile = filepath.Join("..", "..", "gateway", "testdata", "doorway.json")

// sent is a request as an API was sent it, and its answer. Bodies are base64.
type sent struct {
	Client     string `json:"client"`
	Method     string `json:"method"`
	Path       string `json:"path"`
	Type       string `json:"type"`
	Accept     string `json:"accept"`
	Agent      string `json:"agent,omitempty"`
	Key        string `json:"key,omitempty"`
	Body       []byte `json:"body"`
	Status     int    `json:"status"`
	AnswerType string `json:"answer_type"`
	Answer     []byte `json:"answer"`
}

// attempted is one call of a client: what it made of the answer, and what the API was sent.
type attempted struct {
	Result json.RawMessage `json:"result"`
	Sent   []sent          `json:"sent"`
}

// OpenAI's, Anthropic's, Cohere's and vLLM's clients ask each endpoint of an API itself,
// and through the gateway. The API reads the same bytes, and the clients make the same of
// the answers.
func TestDoorway(t *testing.T) {
	t.Parallel() // it mostly waits for pip
	w := world{}
	venv := scratch(t, "doorway")
	python := filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(python); err != nil {
		w.install(t, ".", "python3", "-m", "venv", venv)
	}
	w.install(t, "doorway", python, "-m", "pip", "install", "-q", "-r", "requirements.txt")

	cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", "calls.py")
	var problems bytes.Buffer
	cmd.Dir, cmd.Stderr = "doorway", &problems
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	lines := bufio.NewReader(out)
	url, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the API does not start: %v\n%s", err, problems.String())
	}
	gateway := proctest.Gateway(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends: [ { name: api, url: %s/v1, kind: openai, api_key: sk-up, health_url: off } ]
routes: [ { model: "*", targets: [ { backend: api } ] } ]
keys: [ { name: full, key_sha256: %s, allow: { account: true } } ]
`, strings.TrimSpace(url), hash(fullKey)))
	must.Get(fmt.Fprintln(in, gateway.Ready["data"], fullKey))(t)
	var record []sent
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var call struct {
			Name            string
			Direct, Through attempted
		}
		if err := json.Unmarshal(line, &call); err != nil {
			t.Fatalf("%v: %.200s", err, line)
		}
		compare(t, call.Name, call.Direct, call.Through)
		for _, s := range call.Direct.Sent {
			s.Client, s.Agent, s.Key = call.Name, "", ""
			record = append(record, s)
		}
	}
	if err := cmd.Wait(); err != nil || len(record) < 50 {
		t.Fatalf("%d calls, %v\n%s\n%s", len(record), err, problems.String(), gateway.Log())
	}
	if *update {
		text, err := json.MarshalIndent(record, "", " ")
		if err == nil {
			err = os.WriteFile(doorwayFile, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func compare(t *testing.T, name string, direct, through attempted) {
	t.Helper()
	if !bytes.Equal(direct.Result, through.Result) {
		t.Errorf("%s: direct %.300s\nthrough Pacer %.300s", name, direct.Result, through.Result)
	}
	if len(direct.Sent) != 1 || len(through.Sent) != 1 {
		t.Errorf("%s: the API was asked %d times direct and %d through Pacer, want once", name, len(direct.Sent), len(through.Sent))
		return
	}
	a, b := direct.Sent[0], through.Sent[0]
	if a.Status != 200 {
		t.Errorf("%s: the API answers %d", name, a.Status)
	}
	if strings.HasSuffix(name, "without a model") { // which the gateway names
		b.Body = bytes.Replace(b.Body, []byte(`"model":"omni-moderation-latest",`), nil, 1)
	}
	if a.Method != b.Method || a.Path != b.Path || a.Type != b.Type && !form(a, b) || a.Accept != b.Accept || a.Agent != b.Agent {
		t.Errorf("%s: direct %s %s (%s, %s, %s), through Pacer %s %s (%s, %s, %s)", name, a.Method, a.Path, a.Type, a.Accept, a.Agent, b.Method, b.Path, b.Type, b.Accept, b.Agent)
	}
	if !bytes.Equal(a.Body, b.Body) && !form(a, b) {
		t.Errorf("%s: direct %.200q, through Pacer %.200q", name, a.Body, b.Body)
	}
	if strings.Contains(b.Key, fullKey) || !strings.Contains(b.Key, "sk-up") {
		t.Errorf("%s: the key %q went up", name, b.Key)
	}
}

// form reports whether two forms differ in nothing but the boundary that their client drew.
func form(a, b sent) bool {
	const begin = "multipart/form-data; boundary="
	x, first := strings.CutPrefix(a.Type, begin)
	y, second := strings.CutPrefix(b.Type, begin)
	return first && second && bytes.Equal(bytes.ReplaceAll(a.Body, []byte(x), []byte(y)), b.Body)
}
