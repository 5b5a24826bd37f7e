package sim

// voice writes one answer in the dialect of its endpoint. What it writes of a
// token depends only on which choice and which token it is, so nothing is kept
// for a client that reads slowly. It belongs to one handler.
type voice interface {
	// open appends what comes before the first token of a choice, which may
	// be nothing.
	open(b []byte, choice int) []byte
	// token appends the event of the choice's t-th token, counted from 0.
	token(b []byte, choice, t int) []byte
	// finish appends what says that a choice has ended.
	finish(b []byte, choice int) []byte
	// end appends the last events of a stream whose choices have all ended.
	end(b []byte) []byte
	// body is the whole answer, for those who do not stream.
	body() any
}

// garbage is the voice of an engine that has gone mad.
type garbage struct{}

// nonsense is no JSON, and no text.
const nonsense = "{\"choices\":[\xff\x00<html>"

func (garbage) open(b []byte, _ int) []byte     { return b }
func (garbage) token(b []byte, _, _ int) []byte { return append(b, "data: "+nonsense+"\n\n"...) }
func (garbage) finish(b []byte, _ int) []byte   { return b }
func (garbage) end(b []byte) []byte             { return b }
func (garbage) body() any                       { return rawText(nonsense) }

// rawText is a body that goes out as it is.
type rawText string
