package config

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Bounds on the shape of a file; a fleet of 1000 backends and 1000 keys stays
// below both.
const (
	maxNodes = 100_000
	maxDepth = 64
)

const nestedTooDeep = "this is nested too deep; a configuration needs no more than 8 levels"

// tree parses the text into its one document. A syntax error comes alone: what
// follows it is guesswork.
func tree(data []byte) (root *yaml.Node, p *Problem) {
	// A parser that breaks on a file must not take a running gateway with it.
	defer func() {
		if recover() != nil {
			root, p = nil, &Problem{Message: "the file cannot be read as YAML; look for unusual punctuation, and quote values that hold it"}
		}
	}()
	if len(data) > maxFile {
		return nil, &Problem{Message: "the file is larger than 1 MiB; split the fleet over several gateways"}
	}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	if p := foreign(text); p != nil {
		return nil, p
	}
	docs, p := documents(text)
	switch {
	case p != nil:
		return nil, p
	case len(docs) == 0:
		return nil, &Problem{Line: 1, Col: 1, Message: "the file is empty; write at least backends: and routes:"}
	case len(docs) > 1:
		return nil, at(docs[1], "a second document starts here; write one document, without --- between")
	}
	w := walk{}
	w.over(docs[0])
	if w.problem == nil && w.nodes > maxNodes {
		w.problem = &Problem{Message: fmt.Sprintf("the file has more than %d words; split the fleet over several gateways", maxNodes)}
	}
	return docs[0], w.problem
}

// documents returns the first two documents that are not empty.
func documents(text string) (docs []*yaml.Node, p *Problem) {
	loader, err := yaml.NewLoader(strings.NewReader(mask(text)), yaml.WithUniqueKeys(false), yaml.WithPlugin(shallow{}))
	for err == nil && len(docs) < 2 {
		var doc yaml.Node
		if err = loader.Load(&doc); err == nil && len(doc.Content) > 0 && doc.Content[0].ShortTag() != nullTag {
			docs = append(docs, doc.Content[0])
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, syntaxProblem(err, text)
	}
	return docs, nil
}

// shallow keeps the parser, which is recursive, from what is nested deep. No
// alias is followed here, so none is counted.
type shallow struct{}

func (shallow) CheckDepth(depth int, _ *yaml.DepthContext) error {
	if depth > maxDepth {
		return errors.New(nestedTooDeep)
	}
	return nil
}

func (shallow) CheckAlias(int, int) error { return nil }

// walk looks for what a configuration does not need: anchors and aliases, whose
// expansion would have to be bounded, tags, and merge keys.
type walk struct {
	nodes   int
	problem *Problem // the first one
}

func (w *walk) over(n *yaml.Node) {
	w.nodes++
	switch {
	case w.problem != nil:
		return
	case n.Kind == yaml.AliasNode:
		w.problem = at(n, noAlias)
	case n.Anchor != "":
		w.problem = at(n, "an anchor (&name) is not supported; write the value out, or quote it if a & is meant")
	case n.Style&yaml.TaggedStyle != 0:
		w.problem = at(n, "a tag (!name) is not supported; leave it out, or quote the value if a ! is meant")
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Value == "<<" && !quoted(c) && w.problem == nil {
			w.problem = at(c, "a merge key (<<) is not supported; write the fields out")
		}
		w.over(c)
	}
}

const noAlias = `an alias (*name) is not supported; write the value out, or quote it: "*"`

// foreign finds what no YAML file may hold, and the characters that mask
// needs for itself.
func foreign(text string) *Problem {
	line, col := 1, 0
	for i, c := range text {
		col++
		switch {
		case c == '\n':
			line, col = line+1, 0
		case c == utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return &Problem{Line: line, Col: col, Message: "this is not UTF-8; save the file as UTF-8"}
			}
		case c < ' ' && c != '\t' && c != '\r', c == 0x7f, breaks(c), c >= masked && c < masked+utf8.RuneSelf:
			return &Problem{Line: line, Col: col, Message: fmt.Sprintf("the character %U is not allowed; take it out", c)}
		case c == '%' && directive.MatchString(text[i:]) && col == 1:
			return &Problem{Line: line, Col: col, Message: "a %YAML or %TAG directive is not supported; leave it out"}
		}
	}
	return nil
}

// breaks tells whether c ends a line for the parser and no editor.
func breaks(c rune) bool { return c == '\u0085' || c == '\u2028' || c == '\u2029' }

var directive = regexp.MustCompile(`^%(YAML|TAG)\b`)

// at is a problem at a node.
func at(n *yaml.Node, message string) *Problem {
	return &Problem{Line: n.Line, Col: n.Column, Message: message}
}

// syntaxHints say what to write instead, for what the parser complains about
// most.
var syntaxHints = map[string]string{
	"mapping values are not allowed in this context":         "a field starts here where none may; indent it like its neighbours, and quote a value that holds \": \"",
	"block sequence entries are not allowed in this context": "an entry starts here where none may; indent it like its neighbours",
	"did not find expected ',' or '}'":                       "this { … } is broken; separate its fields by commas and close it with }",
	"did not find expected ',' or ']'":                       "this [ … ] is broken; separate its entries by commas and close it with ]",
	"did not find expected node content":                     "a value is missing here; write one, or take out a comma or a bracket too many",
	"could not find expected ':'":                            "this is no field; write name: value, indented like its neighbours",
	"did not find expected key":                              "this is no field; write name: value, indented like its neighbours",
	"did not find expected '-' indicator":                    "this is no entry of the list; begin it with - , indented like its neighbours",
	"did not find expected comment or line break":            "nothing may stand here; write text after | or > on the lines below it, or quote the value",
	"found unexpected end of stream":                         "this quoted text has no end; close it with the quote that it begins with",
	"found unexpected document indicator":                    "this quoted text has no end; close it with the quote that it begins with",
	"found unknown escape character":                         `a \ in double quotes begins an escape that YAML does not know; write \\, or use single quotes`,
	"while scanning an alias":                                noAlias,
}

// openedBy is about brackets that are open at the end of the file.
var openedBy = map[string]string{
	"while parsing a flow sequence": "this [ is never closed; add ]",
	"while parsing a flow mapping":  "this { is never closed; add }",
}

// syntaxProblem turns the parser's error into a problem. Its own text may
// repeat what is in the file, and so maybe a secret: that part is left out.
func syntaxProblem(err error, text string) *Problem {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return &Problem{Message: "the file cannot be read as YAML; look for unusual punctuation, and quote values that hold it"}
	}
	mark, message := e.Mark, e.Message
	if strings.HasPrefix(e.ContextMsg, "while scanning a") && e.ContextMark.Line > 0 { // where what is broken begins
		mark = e.ContextMark
	}
	p := &Problem{Line: mark.Line, Col: mark.Column}
	next := charAt(text, p.Line, p.Col)
	hint, ok := syntaxHints[message]
	if !ok {
		hint, ok = syntaxHints[e.ContextMsg]
	}
	switch {
	case message == nestedTooDeep:
		p.Message = nestedTooDeep
	case indentedByTab(text, p.Line):
		p.Message = "a tab indents this line; write spaces"
	case next == 0 && openedBy[e.ContextMsg] != "" && e.ContextMark.Line > 0 && ends(text, p.Line):
		p.Line, p.Col = e.ContextMark.Line, e.ContextMark.Column
		p.Message = openedBy[e.ContextMsg]
	case strings.HasPrefix(message, "unknown anchor"):
		p.Message = noAlias
	case ok:
		p.Message = hint
		if next == ':' && p.Col > 1 {
			p.Col-- // the name before it
		}
	default:
		if message == "found character that cannot start any token" && next != 0 {
			message = fmt.Sprintf("%q is a reserved character", next)
		} else {
			message, _, _ = strings.Cut(message, "'") // the rest may repeat the file
			message, _, _ = strings.Cut(message, `"`)
		}
		p.Message = "not valid YAML: " + strings.TrimRight(unmask(message), " :") + "; quote the value, or indent the line like its neighbours"
	}
	if p.Line == 0 || p.Col == 0 {
		p.Line, p.Col = 0, 0
	}
	return p
}

// ends tells whether nothing follows a line.
func ends(text string, line int) bool {
	return line > strings.Count(strings.TrimRight(text, "\r\n"), "\n")+1
}

// lineOf is a line of the text, with what ends it; "" where there is none.
func lineOf(text string, line int) string {
	for l := range strings.Lines(text) {
		if line--; line == 0 {
			return l
		}
	}
	return ""
}

// charAt returns the character at a place, 0 where there is none.
func charAt(text string, line, col int) rune {
	if r := []rune(lineOf(text, line)); col >= 1 && col <= len(r) {
		return r[col-1]
	}
	return 0
}

func indentedByTab(text string, line int) bool {
	l := lineOf(text, line)
	return strings.Contains(l[:len(l)-len(strings.TrimLeft(l, " \t"))], "\t")
}
