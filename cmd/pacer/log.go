package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/logqueue"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/internal/tracing"
)

const (
	// ofRequest and ofOthers bound a text in a log line, in bytes. In the line of
	// a request a client has its say: its path, its id, what was wrong with it.
	ofRequest = 256
	ofOthers  = 1024

	// flushTimeout is how long the last lines have to be written at the end.
	flushTimeout = 2 * time.Second
)

// logs is everything that a running gateway writes to stderr. All of it goes
// through one queue, so that nobody waits for whoever reads it.
type logs struct {
	lines  *logqueue.Queue
	log    *slog.Logger
	access *slog.Logger // the line of each request
	level  *slog.LevelVar
}

// newLogs returns logs that are written to stderr while lines.Run runs. Where no
// format is configured, people at a terminal get text.
func newLogs(cfg config.Log, stderr io.Writer) *logs {
	l := &logs{level: &slog.LevelVar{}}
	l.level.Set(levelOf(cfg))
	format := cmp.Or(cfg.Format, "json")
	if cfg.Format == "" && report.Terminal(stderr) != nil {
		format = "text"
	}
	l.lines = logqueue.New(stderr, logqueue.Options{Lost: func(lines uint64) []byte {
		var line bytes.Buffer
		slog.New(handler(format, &line, nil, ofOthers)).Warn("log lines were lost: their reader did not take them in time", "lines", lines)
		return line.Bytes()
	}})
	l.log = slog.New(handler(format, l.lines, l.level, ofOthers))
	l.access = slog.New(handler(format, l.lines.Requests(), l.level, ofRequest))
	return l
}

// alsoTo makes all lines go to a collector too, where there is one, and returns the log.
func (l *logs) alsoTo(c *tracing.Logs) *slog.Logger {
	if c != nil {
		l.log = slog.New(slog.NewMultiHandler(l.log.Handler(), bounded{c.Handler(), ofOthers, l.level}))
		l.access = slog.New(slog.NewMultiHandler(l.access.Handler(), bounded{c.Handler(), ofRequest, l.level}))
	}
	return l.log
}

// handler writes lines in which no text has more than most bytes, but for the
// message and the stack of a panic, which are ours.
func handler(format string, w io.Writer, level slog.Leveler, most int) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	if format == "text" {
		return bounded{slog.NewTextHandler(w, o), most, nil}
	}
	return jsonLines{Handler: bounded{slog.NewJSONHandler(w, o), most, nil}, to: w, most: most}
}

// bounded shortens what a line holds. ReplaceAttr would do so too; it costs 2 µs
// a line, of which nearly all need nothing.
type bounded struct {
	slog.Handler
	most  int          // bytes of one text
	level slog.Leveler // of what it takes, at least; nil = as the handler itself says
}

// Enabled implements slog.Handler.
func (h bounded) Enabled(ctx context.Context, l slog.Level) bool {
	return (h.level == nil || l >= h.level.Level()) && h.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h bounded) Handle(ctx context.Context, r slog.Record) error {
	fit := true
	r.Attrs(func(a slog.Attr) bool {
		_, fit = h.bound(a)
		return fit
	})
	if fit {
		return h.Handler.Handle(ctx, r)
	}
	short := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		a, _ = h.bound(a)
		short.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, short)
}

// WithAttrs implements slog.Handler.
func (h bounded) WithAttrs(attrs []slog.Attr) slog.Handler {
	attrs = slices.Clone(attrs)
	for i := range attrs {
		attrs[i], _ = h.bound(attrs[i])
	}
	return bounded{h.Handler.WithAttrs(attrs), h.most, h.level}
}

// WithGroup implements slog.Handler.
func (h bounded) WithGroup(name string) slog.Handler {
	return bounded{h.Handler.WithGroup(name), h.most, h.level}
}

// bound returns a with a text that fits, and whether it was that already.
func (h bounded) bound(a slog.Attr) (slog.Attr, bool) {
	text := ""
	switch a.Value.Kind() {
	case slog.KindString:
		text = a.Value.String()
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			text = err.Error()
		}
	}
	if a.Key == "stack" || fits(text, h.most) {
		return a, true
	}
	return slog.String(a.Key, clip(text, h.most)), false
}

// fits reports whether text is short and, whatever it says, harmless: the
// handlers escape the control characters of ASCII, and not all others.
func fits(text string, most int) bool {
	return len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x7f })
}

// clip returns text without the characters that terminals obey and JSON does
// not escape, cut to most bytes between two characters.
func clip(text string, most int) string {
	const mark = "…"
	if len(text) > most {
		end := most - len(mark)
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + mark
	}
	return strings.Map(func(c rune) rune {
		if c >= 0x7f && report.Obeyed(c) {
			return '?'
		}
		return c
	}, text)
}
