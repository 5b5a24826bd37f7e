package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// What docker-compose.yml puts together, as far as it can be tried without Docker:
// the gateways' own configuration is served, and answers /metrics to the names under
// which the Prometheus beside them asks. Prometheus, dashboards and rules are read by
// their own tools in deploy/. e2e/compose has Compose's own library read the file.
func TestComposeGatewaysAreScraped(t *testing.T) {
	t.Parallel()
	read := func(path ...string) string {
		t.Helper()
		text := must.Get(os.ReadFile(filepath.Join(append([]string{".."}, path...)...)))(t)
		return string(text)
	}
	var compose struct {
		Services map[string]struct{ Volumes []string }
	}
	var prometheus struct {
		ScrapeConfigs []struct {
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	for _, x := range []struct {
		text string
		into any
	}{{read("docker-compose.yml"), &compose}, {read("deploy", "compose", "prometheus.yaml"), &prometheus}} {
		must.Do(t, yaml.Unmarshal([]byte(x.text), x.into))
	}
	targets := prometheus.ScrapeConfigs[0].StaticConfigs[0].Targets
	if len(targets) != 2 {
		t.Fatalf("Prometheus asks %q, want two gateways", targets)
	}
	conf := read("deploy", "compose", "pacer.yaml")
	if !strings.Contains(conf, "admin: { listen: 0.0.0.0:9090 }") {
		t.Error("the admin port of the gateways is not 9090 for all in their network")
	}
	// Their ports are taken here, and their Valkey is a name of their network.
	conf = regexp.MustCompile(`0\.0\.0\.0:\d+`).ReplaceAllString(conf, "0.0.0.0:0")
	conf = regexp.MustCompile(`(?m)^store:.*$`).ReplaceAllString(conf, "store: memory")
	gateway := proctest.Start(t, nil, "serve", "-c", proctest.Write(t, conf))
	_, port, _ := strings.Cut(strings.TrimPrefix(gateway.Ready["admin"], "http://"), ":")
	port = port[strings.LastIndex(port, ":")+1:]
	scrape := func(host string) (int, string) {
		t.Helper()
		r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/metrics", nil))(t)
		r.Host = host
		resp := must.Get(http.DefaultClient.Do(r))(t)
		defer resp.Body.Close()
		body := must.Get(io.ReadAll(resp.Body))(t)
		return resp.StatusCode, string(body)
	}
	for _, target := range targets {
		name, at, _ := strings.Cut(target, ":")
		mounts := compose.Services[name].Volumes
		if at != "9090" || !slices.Contains(mounts, "./deploy/compose/pacer.yaml:/etc/pacer/pacer.yaml:ro") {
			t.Errorf("Prometheus asks %s; the service mounts %q", target, mounts)
		}
		if status, body := scrape(target); status != http.StatusOK || !strings.Contains(body, "pacer_build_info") {
			t.Errorf("asked as %s it answers %d: %.200s", target, status, body)
		}
	}
	// A page of the Internet whose name was made to point here gets nothing.
	if status, _ := scrape("gateway-a.example.com:9090"); status != http.StatusForbidden {
		t.Errorf("asked by a name of the public DNS it answers %d, want 403", status)
	}
}
