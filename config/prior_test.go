package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// priorFiles are results of vllm bench serve, and one that is none.
var priorFiles = map[string]string{
	"c1.json":  `{"model_id":"m","max_concurrency":1,"mean_tpot_ms":20,"mean_ttft_ms":50}`,
	"c8.json":  `{"model_id":"m","max_concurrency":8,"mean_tpot_ms":25,"mean_ttft_ms":90}`,
	"all.json": "\n{\"max_concurrency\":64,\"mean_tpot_ms\":40}\n{\"max_concurrency\":256,\"mean_tpot_ms\":50,\"mean_ttft_ms\":9000}\n",
	"bad.csv":  "n,tps\n1,52\nx,40\n",
}

// loadPrior loads a configuration whose backend has the given prior.
func loadPrior(t *testing.T, prior string) (*Config, error) {
	t.Helper()
	files := map[string]string{"pacer.yaml": "backends:\n  - name: gpu\n    url: http://gpu:8000/v1\n    prior: " + prior + "\nroutes: [ { model: m, targets: [ { backend: gpu } ] } ]\n"}
	for name, text := range priorFiles {
		files[name] = text
	}
	return Load(filepath.Join(folder(t, files), "pacer.yaml"))
}

func TestPriorFromFiles(t *testing.T) {
	t.Setenv("BENCH", "c1.json")
	for _, tt := range []struct {
		prior   string
		want    map[int]float64
		warning string
	}{
		{"{ file: c8.json }", map[int]float64{8: 40}, ""},
		{"{ file: [ \"${BENCH}\", c8.json ] }", map[int]float64{1: 50, 8: 40}, ""},
		{
			"{ file: [ c8.json, all.json ] }",
			map[int]float64{8: 40, 64: 25},
			"pacer.yaml:4:20: the prior: all.json:3: n = 256 left out: the first token took 9.0 s on average, so the engine was full and fewer than 256 were decoding",
		},
		{
			"{ 1: 50, 8192: 20, 9000: 18, 20000: 5 }",
			map[int]float64{1: 50, 8192: 20, 9000: 18, 20000: 5},
			"pacer.yaml:4:12: the prior: curves end at 8192 streams; of its points from 9000 on what they say of that end is used, and no more",
		},
		{
			"{ 1: 50, 8: 20000000, 64: 0.0000001 }",
			map[int]float64{1: 50, 8: 2e7, 64: 1e-7},
			"pacer.yaml:4:12: the prior: its point at 8 is ignored, since no stream has so many or so few tokens per second; 2 such in all",
		},
	} {
		cfg, err := loadPrior(t, tt.prior)
		if err != nil {
			t.Errorf("%s: %v", tt.prior, err)
			continue
		}
		same(t, tt.prior, Prior{Points: tt.want}, cfg.Backends[0].Prior)
		switch {
		case tt.warning == "" && len(cfg.Source().Warnings) > 0:
			t.Errorf("%s: warnings %q, want none", tt.prior, cfg.Source().Warnings)
		case tt.warning != "" && (len(cfg.Source().Warnings) != 1 || !strings.HasSuffix(cfg.Source().Warnings[0], tt.warning)):
			t.Errorf("%s: warnings %q, want …%s", tt.prior, cfg.Source().Warnings, tt.warning)
		}
	}
}

func TestPriorFilesThatAreWrong(t *testing.T) {
	t.Setenv("BENCH", "zq9-hidden.json")
	for _, tt := range []struct{ prior, want string }{
		{"{ file: bad.csv }", `pacer.yaml:4:20: bad.csv:3: n is "x"; expected a whole number from 1`},
		{"{ file: [ c1.json, bad.csv ] }", `pacer.yaml:4:20: bad.csv:3: n is "x"; expected`},
		{"{ file: nothing.json }", "pacer.yaml:4:20: nothing.json: no such file or directory; expected a file with"},
		{"{ file: \"${BENCH}\" }", "pacer.yaml:4:20: ${BENCH}: no such file or directory; expected a file with"},
		{"{ file: . }", "pacer.yaml:4:20: .: not a regular file; expected"},
	} {
		_, err := loadPrior(t, tt.prior)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v\nwant …%s", tt.prior, err, tt.want)
		}
	}
}
