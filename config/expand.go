package config

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxExpanded bounds what variables may put into one configuration, in bytes.
const maxExpanded = 1 << 20

// masked is where references are moved while the text is parsed: character c
// of a reference stands as masked+c, in Unicode's private area.
const masked = 0xE000

var (
	// reference is what mask hides. One with quotes or backslashes is left to
	// YAML, whose quoting it may be part of.
	reference = regexp.MustCompile(`\$\{[^}\n"'\\]*\}`)
	variable  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// mask hides the braces of ${VAR} from YAML, in which they would end a plain
// value within { … }. It keeps the number of characters, so places stay true.
// Nothing is expanded here: that happens in the parsed value, where what a
// variable holds cannot become structure.
func mask(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		return strings.Map(func(c rune) rune {
			if c < utf8.RuneSelf {
				return masked + c
			}
			return c
		}, ref)
	})
}

// unmask undoes mask.
func unmask(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= masked && c < masked+utf8.RuneSelf {
			return c - masked
		}
		return c
	}, text)
}

// expand puts the variables into a value: ${VAR}, which has to be set, and
// ${VAR:-default}, which stands for default if VAR is unset or empty; $${ is a
// literal ${. What a variable holds is not expanded again.
func (r *reader) expand(at place, raw string) (text string, expanded, ok bool) {
	if !strings.Contains(raw, "${") {
		return raw, false, true
	}
	var b strings.Builder
	for rest := raw; ; {
		i := strings.Index(rest, "${")
		if i < 0 {
			b.WriteString(rest)
			return b.String(), expanded, true
		}
		if i > 0 && rest[i-1] == '$' {
			b.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		b.WriteString(rest[:i])
		inner, after, closed := strings.Cut(rest[i+2:], "}")
		name, fallback, hasFallback := strings.Cut(inner, ":-")
		if !closed || !variable.MatchString(name) || strings.Contains(fallback, "${") {
			r.problem(at, "a ${ here is no reference to a variable; write ${NAME}, ${NAME:-default}, or $${ for a literal ${")
			return "", false, false
		}
		found, set := r.getenv(name)
		switch {
		case hasFallback && (!set || found == ""):
			found = fallback
		case !set:
			r.problem(at, "the variable %s is not set; set it, or write ${%s:-default}", quote(name), name)
			return "", false, false
		}
		if r.expanded += len(found); r.expanded > maxExpanded {
			r.problem(at, "the variables of this file put in more than 1 MiB; name files instead")
			return "", false, false
		}
		b.WriteString(found)
		rest, expanded = after, true
	}
}
