package config

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// Bounds on the shape of a file. The parser is recursive, and its time grows
// with the square of the fields of one block; a fleet of 1000 backends and
// 1000 keys stays below all of them.
const (
	maxTokens = 100_000
	maxDepth  = 64
	maxFields = 1000 // of one mapping
)

// tree parses the text into its one document. A syntax error comes alone: what
// follows it is guesswork.
func tree(data []byte) (root ast.Node, p *Problem) {
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
	text = mask(text)
	if p := tooDeep(text); p != nil {
		return nil, p
	}
	tokens, p := tokenize(text)
	if p != nil {
		return nil, p
	}
	return document(tokens, text)
}

// document builds the tree of the only document.
func document(tokens token.Tokens, text string) (ast.Node, *Problem) {
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxProblem(err, text)
	}
	var docs []*ast.DocumentNode
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if d.Body.Type() == ast.DirectiveType {
			return nil, at(d.Body.GetToken(), "a %%YAML or %%TAG directive is not supported; leave it out")
		}
		docs = append(docs, d)
	}
	switch len(docs) {
	case 0:
		return nil, &Problem{Line: 1, Col: 1, Message: "the file is empty; write at least backends: and routes:"}
	case 1:
		return docs[0].Body, nil
	}
	return nil, at(first(docs[1].Body), "a second document starts here; write one document, without --- between")
}

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
		case c < ' ' && c != '\t' && c != '\r', c == 0x7f, c >= masked && c < masked+utf8.RuneSelf:
			return &Problem{Line: line, Col: col, Message: fmt.Sprintf("the character %U is not allowed; take it out", c)}
		}
	}
	return nil
}

// entries is a run of block entries on one line, each nested in the one
// before.
var entries = regexp.MustCompile(`(?:[-?:][ \t]+){64}`)

// tooDeep finds nesting that the recursive parser should not see. It knows no
// strings: 64 brackets that one of them opens and never closes are too many,
// too.
func tooDeep(text string) *Problem {
	const message = "this is nested too deep; a configuration needs no more than 8 levels"
	if i := entries.FindStringIndex(text); i != nil {
		before := text[:i[0]]
		line := before[strings.LastIndexByte(before, '\n')+1:]
		return &Problem{Line: 1 + strings.Count(before, "\n"), Col: 1 + utf8.RuneCountInString(line), Message: message}
	}
	depth, line, col := 0, 1, 0
	for _, c := range text {
		col++
		switch c {
		case '\n':
			line, col = line+1, 0
		case '[', '{':
			if depth++; depth > maxDepth {
				return &Problem{Line: line, Col: col, Message: message}
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return nil
}

// tokenize splits the text, and refuses what a configuration does not need:
// anchors and aliases, whose expansion would have to be bounded, tags, and
// merge keys.
func tokenize(text string) (token.Tokens, *Problem) {
	var s scanner.Scanner
	s.Init(text)
	var tokens token.Tokens
	for {
		some, err := s.Scan()
		if errors.Is(err, io.EOF) {
			break
		}
		tokens.Add(some...)
		if len(tokens) > maxTokens {
			return nil, &Problem{Message: fmt.Sprintf("the file has more than %d words; split the fleet over several gateways", maxTokens)}
		}
	}
	for _, t := range tokens {
		switch t.Type {
		case token.AnchorType:
			return nil, at(t, "an anchor (&name) is not supported; write the value out, or quote it if a & is meant")
		case token.AliasType:
			return nil, at(t, `an alias (*name) is not supported; write the value out, or quote it: "*"`)
		case token.TagType:
			return nil, at(t, "a tag (!name) is not supported; leave it out, or quote the value if a ! is meant")
		case token.MergeKeyType:
			return nil, at(t, "a merge key (<<) is not supported; write the fields out")
		}
	}
	if p := tooWide(tokens); p != nil {
		return nil, p
	}
	return tokens, nil
}

// tooWide finds a block mapping with more fields than the parser takes in
// reasonable time.
func tooWide(tokens token.Tokens) *Problem {
	type block struct{ col, lines int }
	var open []block // by column, outermost first
	line := 0
	for _, t := range tokens {
		if t.Position.Line == line {
			continue
		}
		line = t.Position.Line
		col := t.Position.Column
		for len(open) > 0 && open[len(open)-1].col > col {
			open = open[:len(open)-1]
		}
		if t.Type == token.SequenceEntryType || t.Type == token.CommentType {
			continue
		}
		if len(open) == 0 || open[len(open)-1].col < col {
			open = append(open, block{col: col})
		}
		last := &open[len(open)-1]
		if last.lines++; last.lines > maxFields {
			return at(t, "more than %d fields in one mapping; no part of a configuration needs so many", maxFields)
		}
	}
	return nil
}

// at is a problem at a token.
func at(t *token.Token, format string, args ...any) *Problem {
	p := &Problem{Message: fmt.Sprintf(format, args...)}
	if t != nil && t.Position != nil {
		p.Line, p.Col = t.Position.Line, t.Position.Column
	}
	return p
}

// syntaxHints say what to write instead, for what the parser complains about
// most.
var syntaxHints = map[string]string{
	"mapping value is not allowed in this context": "a field starts here where none may; indent it like its neighbours, and quote a value that holds \": \"",
	"',' or '}' must be specified":                 "this { … } is broken; separate its fields by commas and close it with }",
	"',' or ']' must be specified":                 "this [ … ] is broken; separate its entries by commas and close it with ]",
	"sequence end token ']' not found":             "this [ is never closed; add ]",
	"could not find flow mapping end token '}'":    "this { is never closed; add }",
	"unexpected key name":                          "this is no field; write name: value, indented like its neighbours",
	"non-map value is specified":                   "this is no field; write name: value",
}

// syntaxProblem turns the parser's error into a problem. Its own text would
// repeat lines of the file, and so maybe secrets: only its message is used.
func syntaxProblem(err error, text string) *Problem {
	var e yaml.Error
	if !errors.As(err, &e) {
		return &Problem{Message: "the file cannot be read as YAML"}
	}
	p := at(e.GetToken(), "")
	message := unmask(e.GetMessage())
	if before, _, quoted := strings.Cut(message, `"`); quoted {
		message = strings.TrimRight(before, " :") // the rest repeats the file
	}
	hint, ok := syntaxHints[message]
	switch {
	case indentedByTab(text, p.Line):
		p.Message = "a tab indents this line; write spaces"
	case ok:
		p.Message = hint
	default:
		p.Message = "not valid YAML: " + message + "; quote the value, or indent the line like its neighbours"
	}
	return p
}

func indentedByTab(text string, line int) bool {
	for i, l := range strings.Split(text, "\n") {
		if i+1 == line {
			blank := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
			return strings.Contains(blank, "\t")
		}
	}
	return false
}
