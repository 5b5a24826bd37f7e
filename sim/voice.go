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
