package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/promtest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

func TestMain(m *testing.M) { proctest.Main(m) }

const root = "../.."

// project is docker-compose.yml as Compose reads it: held against its schema, with
// anchors and variables resolved, and consistent in itself.
func project(t *testing.T) *types.Project {
	t.Helper()
	o := must.Get(cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")},
		cli.WithName("pacer"), cli.WithEnv([]string{"VERSION=v1.2.3"})))(t)
	p := must.Get(o.LoadProject(t.Context()))(t)
	return p
}

// Compose takes the file, and all that it names is there.
func TestComposeTakesTheFile(t *testing.T) {
	p := project(t)
	if len(p.Services) != 8 {
		t.Fatalf("%d services, want 8", len(p.Services))
	}
	published := map[string]string{}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if _, err := os.Stat(v.Source); v.Type != types.VolumeTypeBind || !v.ReadOnly || err != nil {
				t.Errorf("%s: %s at %s is of type %s, read only: %v (%v)", name, v.Source, v.Target, v.Type, v.ReadOnly, err)
			}
		}
		for _, port := range s.Ports {
			at := port.HostIP + ":" + port.Published
			if other := published[at]; other != "" || port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s, as %q does", name, at, other)
			}
			published[at] = name
		}
		if s.Build != nil && *s.Build.Args["VERSION"] != "v1.2.3" {
			t.Errorf("%s is built with %v", name, s.Build.Args)
		}
		if s.HealthCheck == nil || len(s.HealthCheck.Test) < 2 {
			t.Errorf("%s has no health check", name)
		}
	}
}

// A file that Compose would refuse is refused here.
func TestComposeRefusesWhatIsWrong(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join(root, "docker-compose.yml")))(t)
	for from, to := range map[string]string{
		"depends_on: [ prometheus ]": "depends_on: [ nobody ]",
		"restart: unless-stopped":    "restrat: unless-stopped",
		"interval: 10s":              "interval: often",
	} {
		file := filepath.Join(t.TempDir(), "docker-compose.yml")
		must.Do(t, os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
		o := must.Get(cli.NewProjectOptions([]string{file}, cli.WithName("pacer")))(t)
		if _, err := o.LoadProject(context.Background()); err == nil {
			t.Errorf("with %q it is taken", to)
		}
	}
}

// mounted is the text of the file that a service has at a path.
func mounted(t *testing.T, s types.ServiceConfig, path string) string {
	t.Helper()
	for _, v := range s.Volumes {
		if rest, ok := strings.CutPrefix(path, v.Target); ok {
			text := must.Get(os.ReadFile(v.Source + rest))(t)
			return string(text)
		}
	}
	t.Fatalf("%s mounts nothing at %s", s.Name, path)
	return ""
}

// The services run together: engines, Redis by the command of its service, both
// gateways with the mounted configuration, and Prometheus with its command and its
// mounted files. Only addresses and intervals are others: there is no network with names.
// A request through one gateway is counted by Prometheus, which has read all rules.
func TestTheServicesRunTogether(t *testing.T) {
	p := project(t)
	addresses := []string{}
	for _, name := range []string{"glm", "deepseek", "llama"} {
		command := slices.Clone([]string(p.Services[name].Command))
		at := slices.Index(command, "--listen")
		if at < 0 || command[at+1] != "0.0.0.0:9101" {
			t.Fatalf("%s: %q does not listen where the gateways look", name, command)
		}
		command[at+1] = "127.0.0.1:0"
		engine := proctest.Start(t, nil, command...)
		addresses = append(addresses, "http://"+name+":9101", engine.Ready["url"])
	}
	port := freePort(t)
	redistest.Start(t, append(p.Services["valkey"].Command[1:], "--bind", "127.0.0.1", "--port", port)...)
	addresses = append(addresses, "redis://valkey:6379", "redis://127.0.0.1:"+port, "0.0.0.0:8080", "127.0.0.1:0", "0.0.0.0:9090", "127.0.0.1:0")

	var scraped []string
	var data string
	for _, name := range []string{"gateway-a", "gateway-b"} {
		// The image's own command: see the Dockerfile.
		conf := mounted(t, p.Services[name], "/etc/pacer/pacer.yaml")
		gateway := proctest.Start(t, nil, "serve", "-c", proctest.Write(t, strings.NewReplacer(addresses...).Replace(conf)))
		data = gateway.Ready["data"]
		scraped = append(scraped, name+":9090", strings.TrimPrefix(gateway.Ready["admin"], "http://"))
	}
	client := loadgen.Client{BaseURL: data + "/v1", HTTP: http.DefaultClient}
	if r := client.Stream(t.Context(), loadgen.Request{Model: "chat", PromptTokens: 50, MaxTokens: 20}); r.Outcome != loadgen.Done {
		t.Fatalf("a stream: %v (%v)", r.Outcome, r.Err)
	}

	service := p.Services["prometheus"]
	dir := t.TempDir()
	flags := []string{"--web.listen-address=127.0.0.1:0"}
	for _, flag := range service.Command {
		switch name, value, _ := strings.Cut(flag, "="); name {
		case "--config.file":
			conf := strings.NewReplacer(append(scraped, "interval: 15s", "interval: 1s")...).Replace(mounted(t, service, value))
			for _, rules := range []string{"rules.yaml", "alerts.yaml"} {
				at := "/etc/prometheus/rules/" + rules
				if !strings.Contains(conf, at) {
					t.Fatalf("Prometheus does not read %s", at)
				}
				file := filepath.Join(dir, rules)
				text := strings.NewReplacer("interval: 30s", "interval: 1s", "interval: 5m", "interval: 1s").Replace(mounted(t, service, at))
				must.Do(t, os.WriteFile(file, []byte(text), 0o600))
				conf = strings.Replace(conf, at, file, 1)
			}
			file := filepath.Join(dir, "prometheus.yaml")
			must.Do(t, os.WriteFile(file, []byte(conf), 0o600))
			flag = name + "=" + file
		case "--storage.tsdb.path":
			flag = name + "=" + filepath.Join(dir, "data")
		}
		flags = append(flags, flag)
	}
	prometheus := promtest.Start(t, flags...)
	prometheus.Query("query", url.Values{"query": {`sum(pacer_slo_total{route="chat"}) > 0 and sum(up{job="pacer"}) == 2`}}, func(data json.RawMessage) bool {
		var answer struct{ Result []json.RawMessage }
		return json.Unmarshal(data, &answer) == nil && len(answer.Result) == 1
	})
	prometheus.Query("rules", url.Values{}, func(data json.RawMessage) bool {
		var answer struct {
			Groups []struct {
				Name  string
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return false
		}
		ok, all := 0, 0
		for _, g := range answer.Groups {
			for _, r := range g.Rules {
				all++
				if r.Health == "err" {
					t.Errorf("%s: %s: %s", g.Name, r.Name, r.LastError)
				}
				if r.Health == "ok" {
					ok++
				}
			}
		}
		return ok == all && all >= 30
	})
}

func freePort(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}
