package config

import (
	"errors"
	"os"

	"go.yaml.in/yaml/v4"
)

// ParseStore reads a store as store: has it as text: memory, or a redis:// or
// rediss:// URL. The error never shows the text, which may hold a password.
func ParseStore(text string) (Store, error) {
	r := &reader{getenv: os.LookupEnv}
	s, ok := r.storeURL(value{node: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, name: "store"})
	if !ok {
		return Store{}, errors.New(r.problems[0].Message)
	}
	return s, nil
}
