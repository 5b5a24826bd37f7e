package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// A line of ours is the line that slog writes, whatever it holds.
func TestJSONLinesAreSlogs(t *testing.T) {
	texts := []string{"", "request", "/v1/chat/completions", "a b", "ä", "a\"b", `a\b`, "a\nb", "<&>", "\x7f", "\xff", "\u2028", "\u009b", strings.Repeat("l", 300)}
	floats := []float64{0, math.Copysign(0, -1), 1, -1.5, 0.1, 12.345, 1e-7, 1e-6, 1e20, 1e21, -1e22, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.NaN(), 1234567.891}
	zones := []*time.Location{time.UTC, time.FixedZone("x", 5400)}
	own := 0
	for seed := range 20_000 {
		r := rand.New(rand.NewPCG(uint64(seed), 15))
		pick := func() string {
			if r.IntN(4) > 0 {
				return texts[1+r.IntN(3)]
			}
			return texts[r.IntN(len(texts))]
		}
		at := time.Unix(r.Int64N(4e9), r.Int64N(1e9)).In(zones[r.IntN(2)])
		switch r.IntN(20) {
		case 0:
			at = time.Time{}
		case 1:
			at = time.Now()
		case 2:
			at = at.Truncate(time.Second)
		}
		record := slog.NewRecord(at, []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError, slog.LevelInfo + 1}[r.IntN(4)], pick(), 0)
		for range r.IntN(8) {
			key := pick()
			switch r.IntN(12) {
			case 0:
				record.AddAttrs(slog.Duration(key, time.Second))
			case 1:
				record.AddAttrs(slog.Any(key, []any{nil, errors.New(pick()), []int{1}, slog.IntValue(3)}[r.IntN(4)]))
			case 2, 3:
				record.AddAttrs(slog.Int64(key, r.Int64()-math.MaxInt64/2))
			case 4, 5:
				record.AddAttrs(slog.Bool(key, r.IntN(2) == 0))
			case 6, 7, 8:
				record.AddAttrs(slog.Float64(key, floats[r.IntN(len(floats))]))
			default:
				record.AddAttrs(slog.String(key, pick()))
			}
		}
		var want, got bytes.Buffer
		slogs := bounded{slog.NewJSONHandler(&want, nil), ofRequest, nil}
		must.Do(t, slogs.Handle(context.Background(), record))
		h := jsonLines{Handler: bounded{slog.NewJSONHandler(&got, nil), ofRequest, nil}, to: &got, most: ofRequest}
		must.Do(t, h.Handle(context.Background(), record))
		if !bytes.Equal(want.Bytes(), got.Bytes()) {
			t.Fatalf("seed %d: %q, slog writes %q", seed, got.String(), want.String())
		}
		if _, ok := h.line(nil, &record); ok {
			own++
		}
	}
	if own < 2000 {
		t.Errorf("%d lines of 20,000 were our own, want more", own)
	}
}

// The line of a request: budget 1 µs. slog takes more than twice as long.
func BenchmarkLine(b *testing.B) {
	record := slog.NewRecord(time.Now(), slog.LevelInfo, "request", 0)
	record.AddAttrs(
		slog.String("request", "req-ABCDEFGHIJKLMNOPQRSTUVWXYZ"), slog.String("client", "127.0.0.1"), slog.String("method", "POST"), slog.String("path", "/v1/chat/completions"),
		slog.String("tenant", "default"), slog.String("route", "chat"), slog.String("class", "interactive"), slog.String("backend", "gpu"), slog.Int("status", 200), slog.String("outcome", "ok"),
		slog.Bool("stream", true), slog.Float64("waited_ms", 0), slog.Float64("duration_ms", 12.345), slog.Int64("bytes", 12345), slog.Float64("ttft_ms", 1.234), slog.Float64("tps", 20.1),
		slog.Float64("tokens", 500), slog.String("source", "usage"), slog.Float64("bytes_per_token", 4.25), slog.Int("prompt_tokens", 100), slog.Int("cached_tokens", 0), slog.Int("attempts", 1), slog.Int("n", 12), slog.Int("m", 13),
	)
	slogs := bounded{slog.NewJSONHandler(io.Discard, nil), ofRequest, nil}
	for name, h := range map[string]slog.Handler{"own": jsonLines{Handler: slogs, to: io.Discard, most: ofRequest}, "slog": slogs} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, h.Handle(context.Background(), record))
			}
		})
	}
}
