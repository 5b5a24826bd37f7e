package config_test

import (
	"fmt"

	"github.com/pacer-dev/pacer/config"
)

func ExampleParse() {
	cfg, err := config.Parse("pacer.yaml", []byte(`
backends:
  - { name: gpu, url: "http://10.0.0.11:8000/v1", api_key: "${KEY}" }
routes:
  - model: chat
    targets: [ { backend: gpu } ]
    slo: { min_tps: 30 }
`), func(string) (string, bool) { return "s3cret", true })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Routes[0].Models, cfg.Routes[0].SLO.MinTPS, "tokens/s,", cfg.Backends[0].APIKey)
	// Output: [chat] 30 tokens/s, ***
}

func ExampleParse_problems() {
	_, err := config.Parse("pacer.yaml", []byte(`
backends:
  - { name: gpu, url: "10.0.0.11:8000" }
routes:
  - model: chat
    targets: [ { backend: gpv } ]
    slo: { min_tsp: 30 }
`), func(string) (string, bool) { return "", false })
	fmt.Println(err)
	// Output:
	// pacer.yaml:3:23: the url cannot be read; write one such as http://10.0.0.11:8000/v1
	// pacer.yaml:6:27: unknown backend "gpv"; did you mean "gpu"?
	// pacer.yaml:7:12: unknown field "min_tsp"; did you mean "min_tps"?
}
