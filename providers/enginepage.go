package providers

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"strconv"
	"strings"

	"github.com/pacer-dev/pacer/internal/upstream"
)

// gaugesOf returns the names to look for at a backend of a kind: those of its
// engine, or all when the kind tells no engine.
func gaugesOf(kind *upstream.Kind) (all []*upstream.Gauges) {
	if kind.Gauges != nil {
		return []*upstream.Gauges{kind.Gauges}
	}
	for _, k := range upstream.All() {
		if k.Gauges != nil {
			all = append(all, k.Gauges)
		}
	}
	return all
}

const (
	// mostSequences is more than any engine runs.
	mostSequences = 1_000_000

	// mostGroups bounds the series of one gauge that are told apart.
	mostGroups = 4096
)

// enginePage is what one page of metrics says of an engine.
type enginePage struct {
	running, waiting int
	// print changes whenever anything changes that the engine exports under
	// its prefix, which a working engine does with every step or log line.
	print uint64
}

// pageReader reads pages in the Prometheus text format. It looks at the lines
// of engines alone, whatever else stands on the page, and keeps its memory
// from page to page. It is not safe for concurrent use.
type pageReader struct {
	engines []*upstream.Gauges
	hash    maphash.Hash
	seen    []engineLines // by engine
}

// engineLines is what a page holds of one engine.
type engineLines struct {
	print            maphash.Hash
	running, waiting gauge
}

func newPageReader(kind *upstream.Kind) *pageReader {
	r := &pageReader{engines: gaugesOf(kind)}
	r.seen = make([]engineLines, len(r.engines))
	for i := range r.seen {
		r.seen[i].print.SetSeed(r.hash.Seed())
	}
	return r
}

// read returns what page says of the first engine of which it holds the
// running sequences.
func (r *pageReader) read(page []byte) (enginePage, error) {
	for i := range r.seen {
		l := &r.seen[i]
		l.print.Reset()
		l.running, l.waiting = gauge{groups: l.running.groups[:0]}, gauge{groups: l.waiting.groups[:0]}
	}
	for len(page) > 0 {
		line := page
		if end := bytes.IndexByte(page, '\n'); end >= 0 {
			line, page = page[:end], page[end+1:]
		} else {
			page = nil
		}
		if err := r.line(bytes.TrimSpace(line)); err != nil {
			return enginePage{}, err
		}
	}
	for i := range r.engines {
		if l := &r.seen[i]; len(l.running.groups) > 0 {
			running, err := l.running.count(r.engines[i].Running)
			if err != nil {
				return enginePage{}, err
			}
			waiting, err := l.waiting.count(r.engines[i].Waiting)
			if err != nil {
				return enginePage{}, err
			}
			return enginePage{running: running, waiting: waiting, print: l.print.Sum64()}, nil
		}
	}
	return enginePage{}, r.missing()
}

// missing says what a page without the load of an engine should have held.
func (r *pageReader) missing() error {
	names := make([]string, len(r.engines))
	for i, e := range r.engines {
		names[i] = e.Running
	}
	return fmt.Errorf("the page has no %s", strings.Join(names, " or "))
}

// line reads one line, if it is one of an engine.
func (r *pageReader) line(line []byte) error {
	for i := range r.engines {
		e := r.engines[i]
		if !bytes.HasPrefix(line, []byte(e.Prefix)) {
			continue
		}
		l := &r.seen[i]
		l.print.Write(line)
		l.print.WriteByte('\n')
		if rest, ok := ofSeries(line, e.Running); ok {
			return l.running.add(&r.hash, e.Running, rest)
		}
		if rest, ok := ofSeries(line, e.Waiting); ok {
			return l.waiting.add(&r.hash, e.Waiting, rest)
		}
		return nil
	}
	return nil
}

// ofSeries returns what follows name, if line is a series of exactly that name.
func ofSeries(line []byte, name string) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, []byte(name))
	if !ok || len(rest) == 0 || rest[0] != '{' && rest[0] != ' ' && rest[0] != '\t' {
		return nil, false
	}
	return rest, true
}

// gauge adds up the series of one gauge. They are the engines, replicas and
// models of one server, whose loads add up; but the ranks that share the work
// on one batch each report all of it, so of them the greatest counts once.
type gauge struct{ groups []rankGroup }

// rankGroup is one sequence count, told by one or more ranks.
type rankGroup struct {
	labels uint64 // hash of all labels but the rank's
	value  float64
}

// sharing are the labels by which ranks differ that run the same sequences.
// dp_rank and engine are none of them: those run others.
func sharing(label []byte) bool {
	switch string(label) {
	case "tp_rank", "pp_rank", "moe_ep_rank":
		return true
	}
	return false
}

// add reads the labels and the value of a series.
func (g *gauge) add(h *maphash.Hash, name string, rest []byte) error {
	var labels uint64
	part := false
	if rest[0] == '{' {
		rest = rest[1:]
		for {
			label, value, after, err := nextLabel(rest)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			rest = after
			if label == nil {
				break
			}
			// With priorities SGLang exports each of them beside their sum,
			// whose label is empty.
			part = part || string(label) == "priority" && len(value) > 0
			if len(value) == 0 || sharing(label) {
				continue // an empty label is none
			}
			h.Reset()
			h.Write(label)
			h.WriteByte(0)
			h.Write(value)
			labels += h.Sum64() // in whatever order they stand
		}
	}
	value, err := seriesValue(rest)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if part {
		return nil
	}
	for i := range g.groups {
		if g.groups[i].labels == labels {
			g.groups[i].value = max(g.groups[i].value, value)
			return nil
		}
	}
	if len(g.groups) == mostGroups {
		return fmt.Errorf("%s has more than %d series", name, mostGroups)
	}
	g.groups = append(g.groups, rankGroup{labels, value})
	return nil
}

// count adds up. A gauge without a series counts nothing.
func (g *gauge) count(name string) (int, error) {
	sum := 0.0
	for _, r := range g.groups {
		sum += r.value
	}
	if sum > mostSequences {
		return 0, fmt.Errorf("%s is %g, more than any engine runs", name, sum)
	}
	return int(math.Round(sum)), nil
}

var errSeries = errors.New("a series that cannot be read")

// nextLabel reads label="value" and the comma behind it, or, with label nil,
// the closing brace. value is as it stands on the page.
func nextLabel(s []byte) (label, value, rest []byte, err error) {
	s = bytes.TrimLeft(s, " \t")
	if len(s) > 0 && s[0] == '}' {
		return nil, nil, s[1:], nil
	}
	equals := bytes.IndexByte(s, '=')
	if equals <= 0 {
		return nil, nil, nil, errSeries
	}
	label = bytes.TrimRight(s[:equals], " \t")
	s = bytes.TrimLeft(s[equals+1:], " \t")
	if len(label) == 0 || len(s) == 0 || s[0] != '"' {
		return nil, nil, nil, errSeries
	}
	s = s[1:]
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			value, s = s[:i], bytes.TrimLeft(s[i+1:], " \t")
			switch {
			case len(s) > 0 && s[0] == ',':
				return label, value, s[1:], nil
			case len(s) > 0 && s[0] == '}':
				return label, value, s, nil
			}
			return nil, nil, nil, errSeries
		}
	}
	return nil, nil, nil, errSeries
}

// seriesValue reads the value of a series, which a time may follow.
func seriesValue(s []byte) (float64, error) {
	fields := bytes.TrimLeft(s, " \t")
	if end := bytes.IndexAny(fields, " \t"); end >= 0 {
		fields = fields[:end]
	}
	x, err := strconv.ParseFloat(string(fields), 64)
	switch {
	case err != nil:
		return 0, errSeries
	case !(x >= 0 && x <= mostSequences):
		return 0, fmt.Errorf("%g is no number of sequences", x)
	}
	return x, nil
}
