package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// Budget: 50 ms for 100 backends and 30 routes on all of them, once a second.
func BenchmarkSnapshot(b *testing.B) {
	var yaml, targets strings.Builder
	yaml.WriteString("backends:\n")
	for i := range 100 {
		fmt.Fprintf(&yaml, "  - { name: b%d, url: \"http://b%d.test/v1\", prior: llama-3.1-70b/h200/vllm }\n", i, i)
		fmt.Fprintf(&targets, "{ backend: b%d, model: m }, ", i)
	}
	yaml.WriteString("routes:\n")
	for i := range 30 {
		fmt.Fprintf(&yaml, "  - { model: r%d, slo: { min_tps: %d }, targets: [ %s ] }\n", i, 20+i, targets.String())
	}
	cfg := parsed(b, yaml.String())
	p := must.Get(wire(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)), options{}))(b)
	b.Run("router", func(b *testing.B) {
		for b.Loop() {
			p.router.Routes(time.Now())
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			now := time.Now()
			p.watch.Tick(now, p.snapshot(now))
		}
	})
}
