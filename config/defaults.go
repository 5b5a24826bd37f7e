package config

import (
	"time"

	"github.com/pacer-dev/pacer/internal/upstream"
)

// defaults is what a file may leave out.
func defaults() *Config {
	return &Config{
		Listen:   "127.0.0.1:8080",
		Admin:    Admin{Listen: "127.0.0.1:9090"},
		Store:    defaultStore(),
		Replicas: 1,
		Log:      Log{Level: "info", Format: "json"},
		CORS:     CORS{MaxAge: 10 * time.Minute},
		Timeouts: Timeouts{
			Connect:   5 * time.Second,
			FirstByte: 120 * time.Second,
			Silence:   60 * time.Second,
			Total:     30 * time.Minute,
			Write:     30 * time.Second,
			Drain:     30 * time.Second,
			Linger:    3 * time.Second,
		},
		Limits: Limits{
			Body:     32 << 20,
			Header:   64 << 10,
			Streams:  20000,
			Queue:    1000,
			Buffered: 1 << 30,
		},
	}
}

func defaultStore() Store { return Store{Memory: true, Prefix: "pacer"} }

func defaultBackend() Backend {
	return Backend{Kind: upstream.Default, Models: modelsShared, Usage: usageInject}
}

func defaultRoute() Route {
	return Route{
		Class:   classInteractive,
		SLO:     SLO{Attainment: 0.99, Grace: time.Second},
		Prefer:  "headroom",
		Reserve: 1,

		BatchShare: 0.02,
	}
}

// defaultSteps is what a class does when no target is feasible.
func defaultSteps(class string) []Step {
	wait := 2 * time.Second
	if class == classBatch {
		wait = time.Minute
	}
	return []Step{{Queue: wait}, {Shed: true}}
}
