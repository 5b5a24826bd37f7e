package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

// What clients and backends say is bounded in the log, and cannot make a line of
// its own.
func TestTextsInTheLogAreBounded(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			var out bytes.Buffer
			logs := newLogs(config.Log{Level: "info", Format: format}, &out)
			go logs.lines.Run()
			long := strings.Repeat("ä", 10_000)
			logs.access.Info("request", "path", long, "error", errors.New(long))
			logs.access.Info("request", "path", "/v1\nlevel=ERROR msg=forged\r\n{\"level\":\"ERROR\"}\x1b[2J\u009b2J\u0085")
			logs.log.Warn("backend", "error", errors.New(long))
			logs.log.Error("panic", "stack", long)
			logs.lines.Close(flushTimeout)
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) != 4 {
				t.Fatalf("got %d lines, want 4:\n%s", len(lines), out.String())
			}
			for i, most := range []int{2*ofRequest + 200, 400, ofOthers + 200} {
				if len(lines[i]) > most || !utf8.ValidString(lines[i]) {
					t.Errorf("line %d has %d bytes, want %d at most: %s", i, len(lines[i]), most, lines[i])
				}
			}
			if !strings.Contains(lines[0], "ä…") {
				t.Errorf("what is cut does not end in a whole character and …: %s", lines[0])
			}
			if !strings.Contains(lines[3], long) {
				t.Error("the stack of a panic is cut")
			}
			if strings.ContainsAny(out.String(), "\r\x1b\u009b\u0085") {
				t.Errorf("a control character is in the log: %q", lines[1])
			}
			if format == "json" {
				var line struct{ Level, Path string }
				if err := json.Unmarshal([]byte(lines[1]), &line); err != nil || line.Level != "INFO" || !strings.HasPrefix(line.Path, "/v1\n") {
					t.Errorf("%v in %s", err, lines[1])
				}
			}
		})
	}
}

// The log says what is served, and that variables which would name a backend do not.
func TestTheLogSaysWhatIsServed(t *testing.T) {
	for _, c := range []struct {
		source config.Source
		want   string
	}{
		{config.Source{}, ""},
		{config.Source{File: "/etc/pacer.yaml"}, "INFO serving the configuration of a file file=/etc/pacer.yaml\n"},
		{config.Source{Variables: []string{"OPENAI_BASE_URL"}}, "INFO serving the backend that environment variables name: there is no -c, and no pacer.yaml in this folder variables=OPENAI_BASE_URL\n"},
		{
			config.Source{File: "/p/pacer.yaml", Ignored: []string{"OPENAI_BASE_URL", "OPENAI_API_KEY"}},
			"INFO serving the configuration of a file file=/p/pacer.yaml\n" +
				"WARN environment variables are set and not used: they name a backend only where there is no -c and no pacer.yaml in the folder; start in another folder, or unset them" +
				" variables=OPENAI_BASE_URL, OPENAI_API_KEY file=/p/pacer.yaml\n",
		},
	} {
		var out bytes.Buffer
		saySource(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})), c.source)
		got := strings.NewReplacer("level=", "", "msg=", "", `"`, "").Replace(out.String())
		if got != c.want {
			t.Errorf("of %+v the log says\n%s, want\n%s", c.source, got, c.want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 4, "abcd"},
		{"abcdef", 5, "ab…"},
		{"aäö", 5, "aäö"},
		{"aäöü", 6, "aä…"},
		{"aäöü", 5, "a…"}, // not half of ä
		{"\x80\x80\x80\x80", 3, "…"},
		{"a\u009bb\x7f", 10, "a?b?"},
		{"a\u202eb\u2066", 10, "a?b?"}, // the text behind it would be turned around
	} {
		if got := clip(c.text, c.most); got != c.want {
			t.Errorf("clip(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// The line of a request as it was written at once, and as a gateway writes it.
// Budget: as much time, and no allocation more than for the numbers in it.
func BenchmarkAccessLine(b *testing.B) {
	null := must.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(b)
	defer null.Close()
	run := func(b *testing.B, log *slog.Logger) {
		b.ReportAllocs()
		for b.Loop() {
			log.LogAttrs(b.Context(), slog.LevelInfo, "request",
				slog.String("request", "req-ABCDEFGHIJKLMNOPQRSTUVWXYZ"), slog.String("method", "POST"), slog.String("path", "/v1/chat/completions"),
				slog.String("tenant", "mobile"), slog.String("route", "chat"), slog.String("class", "interactive"), slog.String("backend", "h200-a"),
				slog.Int("status", 200), slog.String("outcome", "ok"), slog.Bool("stream", true), slog.Float64("waited_ms", 0), slog.Float64("duration_ms", 1234.5))
		}
	}
	b.Run("at-once", func(b *testing.B) { run(b, slog.New(slog.NewJSONHandler(null, nil))) })
	b.Run("queued", func(b *testing.B) {
		logs := newLogs(config.Log{Level: "info", Format: "json"}, null)
		go logs.lines.Run()
		run(b, logs.access)
		logs.lines.Close(flushTimeout)
	})
	b.Run("nobody-reads", func(b *testing.B) {
		_, w, err := os.Pipe()
		must.Do(b, err)
		logs := newLogs(config.Log{Level: "info", Format: "json"}, io.Writer(w))
		go logs.lines.Run()
		run(b, logs.access)
		w.Close()
		logs.lines.Close(flushTimeout)
	})
}

// Where no format is configured a terminal gets text, and whatever else JSON.
func TestLogFormatFollowsTheReader(t *testing.T) {
	formatOf := func(w io.Writer) string {
		h := newLogs(config.Log{Level: "info"}, w).log.Handler()
		if own, ok := h.(jsonLines); ok {
			h = own.Handler
		}
		switch h := h.(bounded).Handler.(type) {
		case *slog.TextHandler:
			return "text"
		case *slog.JSONHandler:
			return "json"
		default:
			return fmt.Sprintf("%T", h)
		}
	}
	if got := formatOf(&bytes.Buffer{}); got != "json" {
		t.Errorf("elsewhere: %s, want json", got)
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("this machine gives no terminal: %v", err)
	}
	defer terminal.Close()
	if got := formatOf(terminal); got != "text" {
		t.Errorf("on a terminal: %s, want text", got)
	}
}
