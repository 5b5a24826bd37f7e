package sim

import (
	"encoding/json"
	"slices"
	"strings"
)

// filled is a JSON object as an answer: all members but one stand in the first
// token, that one is a text which the words of the answer fill.
type filled struct {
	open, close string
	text        bool // between them stand words, else blanks
}

// schema is the part of a JSON schema that filled understands.
type schema struct {
	Type       any               `json:"type"` // a name or a list of them
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Enum       []json.RawMessage `json:"enum"`
}

// fill makes an object that s allows: its required members, or all that it
// names, or an "answer" if it names none.
func (s schema) fill() filled {
	names := slices.Clone(s.Required)
	if len(names) == 0 {
		for name := range s.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	if len(names) == 0 {
		return filled{open: `{"answer":"`, close: `"}`, text: true}
	}
	var b strings.Builder
	b.WriteByte('{')
	last := ""
	for _, name := range names {
		p := s.Properties[name]
		if last == "" && len(p.Enum) == 0 && p.typeName() == "string" {
			last = name
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(quote(name) + ":" + p.value())
	}
	if last == "" {
		return filled{open: b.String() + "}", close: " "}
	}
	if b.Len() > 1 {
		b.WriteByte(',')
	}
	return filled{open: b.String() + quote(last) + `:"`, close: `"}`, text: true}
}

// typeName is the first type that s allows.
func (s schema) typeName() string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		if len(t) > 0 {
			name, _ := t[0].(string)
			return name
		}
	}
	return "string"
}

// value is some value that s allows.
func (s schema) value() string {
	if len(s.Enum) > 0 {
		return string(s.Enum[0])
	}
	switch s.typeName() {
	case "integer", "number":
		return "7"
	case "boolean":
		return "true"
	case "array":
		return "[]"
	case "null":
		return "null"
	case "object":
		f := s.fill()
		return f.open + f.close
	}
	return `"a word"`
}

// piece is the t-th of the answer's tokens.
func (f filled) piece(choice, t, tokens int) string {
	switch {
	case tokens == 1:
		return f.open + f.close
	case t == 0:
		return f.open
	case t == tokens-1:
		return f.close
	case f.text:
		return word(choice, t)
	}
	return " "
}

// piece is the t-th token of a choice: of object, or a word where that is zero.
func (a *answer) piece(object filled, choice, t int) string {
	if object == (filled{}) {
		return word(choice, t)
	}
	return object.piece(choice, t, a.g.maxTokens)
}

func quote(s string) string { return string(marshal(s)) }
