package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/internal/spelling"
)

// value is one node of the file, and what messages call it.
type value struct {
	node *yaml.Node
	name string
	key  place  // of its key or list, for a node that has no text of its own
	path string // see reader.noted
}

// place is where the value starts.
func (v value) place() place {
	switch {
	case v.has():
		return place{v.node.Line, v.node.Column}
	case v.key == (place{}):
		return place{1, 1}
	}
	return v.key
}

// has tells whether there is a value.
func (v value) has() bool { return v.node != nil && v.node.ShortTag() != nullTag }

// is tells whether the value is of a kind.
func (v value) is(kind yaml.Kind) bool { return v.has() && v.node.Kind == kind }

// The tags that YAML gives to what is not in quotes, and no text.
const (
	nullTag  = "!!null"
	intTag   = "!!int"
	floatTag = "!!float"
	boolTag  = "!!bool"
)

// quoted tells whether a scalar is text whatever it looks like.
func quoted(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// scalar is a value without parts.
type scalar struct {
	raw    string // as the file has it, variables unexpanded: safe to show unless the field is a secret
	text   string // variables expanded
	plain  bool   // not quoted
	string bool   // text by YAML's rules, rather than a number, a truth value
	filled bool   // by a variable
}

// typed tells whether the text may stand for a number or a truth value: quoted
// text may not, unless a variable had to be put in.
func (s scalar) typed() bool { return s.plain || s.filled }

// scalar reads a value without parts. want says what the field takes.
func (r *reader) scalar(v value, want string) (scalar, bool) {
	if !v.is(yaml.ScalarNode) {
		r.mismatch(v, want)
		return scalar{}, false
	}
	s := scalar{raw: v.node.Value, plain: !quoted(v.node)}
	switch v.node.ShortTag() {
	case intTag, boolTag:
	case floatTag:
		// One without a point is text where text is wanted: a key of digits with
		// an e among them, or too many for a number.
		s.string = !strings.Contains(s.raw, ".")
	default:
		s.string = true
	}
	s.raw = unmask(s.raw)
	r.note(v, s.raw)
	var ok bool
	s.text, s.filled, ok = r.expand(v.place(), s.raw)
	return s, ok
}

// mismatch says that a value is of another type. It never shows the value,
// which may be a secret in the wrong place.
func (r *reader) mismatch(v value, want string) {
	switch {
	case !v.has():
		r.problem(v.place(), "%s has no value; write %s, or leave the field out", v.name, want)
	case v.is(yaml.MappingNode):
		r.problem(v.place(), "%s is a mapping; it must be %s", v.name, want)
	case v.is(yaml.SequenceNode):
		r.problem(v.place(), "%s is a list; it must be %s", v.name, want)
	default:
		r.problem(v.place(), "%s has the wrong type; it must be %s", v.name, want)
	}
}

// text reads text. A bare number is none: 0644 and 1_000 would not mean what
// they say.
func (r *reader) text(v value) (scalar, bool) {
	s, ok := r.scalar(v, "text")
	if ok && !s.string {
		r.problem(v.place(), "%s must be text; put it in quotes", v.name)
		return scalar{}, false
	}
	return s, ok
}

// textInto reads text that has no rules of its own.
func (r *reader) textInto(v value, to *string) {
	if s, ok := r.text(v); ok {
		*to = s.text
	}
}

// truth reads true or false.
func (r *reader) truth(v value, to *bool) {
	s, ok := r.scalar(v, "true or false")
	if !ok {
		return
	}
	word := strings.ToLower(s.text)
	if !s.typed() || word != "true" && word != "false" {
		r.problem(v.place(), "%s is no truth value; write true or false, without quotes", v.name)
		return
	}
	*to = word == "true"
}

// whole reads a whole number of at least low. Only decimal digits: 010 is 8
// to some readers of YAML and 10 to others.
func (r *reader) whole(v value, to *int, low int) {
	const most = 1 << 40 // far above every use, far below where sums overflow
	s, ok := r.scalar(v, "a whole number")
	if !ok {
		return
	}
	n, err := strconv.ParseInt(s.text, 10, 64)
	switch {
	case !s.typed() || err != nil || len(s.text) > 1 && s.text[0] == '0' || s.text[0] == '+':
		r.problem(v.place(), "%s is no whole number; write one such as %d, without quotes", v.name, max(low, 1))
	case n < int64(low):
		r.problem(v.place(), "%s is too small; write %d or more", v.name, low)
	case n > most:
		r.problem(v.place(), "%s is too large; write a number below 10^12", v.name)
	default:
		*to = int(n)
	}
}

// share reads a number within bounds: "" = from 0 on.
func (r *reader) share(v value, to *float64, bounds, example string) {
	x, ok := r.number(v, example)
	switch {
	case !ok:
	case bounds == "(0,1)" && (x <= 0 || x >= 1):
		r.problem(v.place(), "%s must be between 0 and 1, both excluded; write a share such as %s", v.name, example)
	case bounds == "[0,1]" && x > 1:
		r.problem(v.place(), "%s must be from 0 to 1; write a share such as %s", v.name, example)
	default:
		*to = x
	}
}

// number reads a finite number ≥ 0, such as example.
func (r *reader) number(v value, example string) (float64, bool) {
	s, ok := r.scalar(v, "a number")
	if !ok {
		return 0, false
	}
	x, err := strconv.ParseFloat(s.text, 64)
	switch {
	case s.typed() && isNonFinite(s.text, x):
		r.problem(v.place(), "%s is not finite; write a number such as %s", v.name, example)
	case !s.typed() || err != nil || strings.ContainsAny(s.text, "xXpP_"):
		r.problem(v.place(), "%s is no number; write one such as %s, without quotes", v.name, example)
	case x < 0:
		r.problem(v.place(), "%s is negative; write a number such as %s", v.name, example)
	default:
		return x, true
	}
	return 0, false
}

// isNonFinite tells whether text means NaN or an infinity, also as YAML
// writes them, or a number too large for a float64.
func isNonFinite(text string, x float64) bool {
	switch strings.ToLower(strings.TrimLeft(text, "+-")) {
	case ".nan", ".inf", "nan", "inf", "infinity":
		return true
	}
	return math.IsInf(x, 0)
}

// duration reads a time with its unit, from 0 on or above it.
func (r *reader) duration(v value, to *time.Duration, above bool) {
	const most = 365 * 24 * time.Hour
	s, ok := r.scalar(v, "a duration such as 2s")
	if !ok {
		return
	}
	d, err := time.ParseDuration(s.text)
	switch {
	case err != nil || s.text == "0": // the one duration that Go takes without a unit
		r.problem(v.place(), "%s is no duration; write one with its unit, such as 500ms, 2s or 10m", v.name)
	case d <= 0 && above:
		r.problem(v.place(), "%s is not above 0; write a duration such as 500ms, 2s or 10m", v.name)
	case d < 0:
		r.problem(v.place(), "%s is negative; write a duration such as 500ms or 2s, or 0s", v.name)
	case d > most:
		r.problem(v.place(), "%s is longer than a year; write less", v.name)
	default:
		*to = d
	}
}

// units of sizes, in bytes.
var units = map[string]int64{
	"": 1, "B": 1,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

// maxSize is far above every use, far below where sums overflow.
const maxSize = 1 << 50

// size reads bytes, with a unit or without, above 0.
func (r *reader) size(v value, to *int64) {
	s, ok := r.scalar(v, "a size such as 32MiB")
	if !ok {
		return
	}
	n, ok := size(s.text)
	switch {
	case !ok:
		r.problem(v.place(), "%s is no size; write one such as 64KiB, 32MiB or 1GiB", v.name)
	case n == 0:
		r.problem(v.place(), "%s is 0; write a size such as 64KiB, 32MiB or 1GiB", v.name)
	case n > maxSize:
		r.problem(v.place(), "%s is too large; write a size such as 1GiB", v.name)
	default:
		*to = n
	}
}

// size returns how many bytes text is, at most a little more than maxSize.
func size(text string) (int64, bool) {
	digits := strings.TrimRight(text, "KMGTkiB ")
	unit, known := units[strings.TrimSpace(text[len(digits):])]
	n, err := strconv.ParseUint(digits, 10, 40)
	if err != nil || !known || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	if int64(n) > maxSize/unit {
		return maxSize + 1, true
	}
	return int64(n) * unit, true
}

// oneOf reads one of some words. unsupported has a message for words that
// have a meaning, but not here.
func (r *reader) oneOf(v value, to *string, words []string, unsupported map[string]string) {
	s, ok := r.scalar(v, "one of "+strings.Join(words, ", "))
	if !ok {
		return
	}
	switch message, known := unsupported[s.text]; {
	case slices.Contains(words, s.text):
		*to = s.text
	case known:
		r.problem(v.place(), "%s: %s %s", v.name, s.raw, message)
	default:
		r.problem(v.place(), "unknown %s %s; %s", v.name, quote(s.raw), spelling.Meant(s.raw, words))
	}
}
