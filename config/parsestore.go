package config

import (
	"errors"
	"os"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// ParseStore reads a store as store: has it as text: memory, or a redis:// or
// rediss:// URL. The error never shows the text, which may hold a password.
func ParseStore(text string) (Store, error) {
	r := &reader{getenv: os.LookupEnv}
	s, ok := r.storeURL(value{node: ast.String(token.New(text, text, nil)), name: "store"})
	if !ok {
		return Store{}, errors.New(r.problems[0].Message)
	}
	return s, nil
}
