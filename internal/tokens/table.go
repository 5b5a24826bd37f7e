package tokens

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"errors"
	"io"
	"path"
)

// table is the vocabulary of o200k_base by rank, each token as its length in one
// byte and its bytes, deflated: a sixth of its text form. go test -update writes it.
//
//go:embed o200k_base.deflate
var table []byte

// offline reads the tables that are part of the program, where the tokenizer's own
// loader, which holds for the whole process, would fetch them from the network.
type offline struct{}

func (offline) LoadTiktokenBpe(file string) (map[string]int, error) {
	if path.Base(file) != "o200k_base.tiktoken" {
		return nil, errors.New("tokens: no table of " + path.Base(file))
	}
	all, err := io.ReadAll(flate.NewReader(bytes.NewReader(table)))
	if err != nil {
		return nil, err
	}
	ranks := make(map[string]int, 200_000)
	for text := string(all); text != ""; {
		end := 1 + int(text[0])
		if end > len(text) {
			return nil, io.ErrUnexpectedEOF
		}
		ranks[text[1:end]] = len(ranks)
		text = text[end:]
	}
	return ranks, nil
}
