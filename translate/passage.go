package translate

import (
	"cmp"

	"github.com/tidwall/gjson"
)

// passage is the part of an answer that a hearing is in: a text, a thought or a call
// of a tool. The zero value is between two parts.
type passage struct {
	open bool
	kind PartKind
}

// used is that of the dialects in which no usage stands beside a text.
func (p *passage) used(gjson.Result, heard) {}

// begin ends what is open, and begins a block.
func (p *passage) begin(kind PartKind, id, name []byte, to heard) {
	p.close(to)
	p.open, p.kind = true, kind
	to.emit(Event{Kind: BlockBegin, Block: kind, ID: id, Name: name})
}

// piece adds text to the block of a kind, which needs no announcement.
func (p *passage) piece(kind PartKind, v gjson.Result, to heard) {
	if v.Type != gjson.String || len(v.Raw) <= 2 {
		return
	}
	if !p.open || p.kind != kind {
		p.begin(kind, nil, nil, to)
	}
	to.emit(Event{Kind: BlockDelta, Block: kind, Text: raw(v)})
}

func (p *passage) close(to heard) {
	if p.open {
		p.open = false
		to.emit(Event{Kind: BlockEnd, Block: p.kind})
	}
}

// finished is what a dialect's word for the end of an answer means: a word that is
// not among words is that of an answer which said all.
func finished(words map[string]Finish, word string) Finish { return max(FinishStop, words[word]) }

// reasons are a dialect's words for the end of an answer.
type reasons [FinishFilter + 1]string

// of returns the word for f: a dialect that has none says that of FinishStop.
func (r *reasons) of(f Finish) string { return cmp.Or(r[f], r[FinishStop]) }
