// Package continuation has a stream of a chat or a completion, whose engine died,
// go on at another one, so that its client sees one stream.
//
// Read says whether the answer to a request may be continued at all: not where
// what was said is more than its text (calls of tools, logprobs, several choices),
// where the engine enforces a form, or where a seed promises sameness. A field that
// is not known here could be any of these.
//
// A Thread follows the stream. It keeps the text, up to a bound, and passes whole
// events alone, so that another stream can follow at any time. Request.Edits are
// then what the same request says to the next engine: go on behind this text, with
// so many tokens fewer. What that one answers is written as the first one's stream
// would have gone on: its id, no second role, one usage.
//
// Nothing here does I/O or knows of backends. A Thread and its meters belong to the
// goroutine that relays the stream.
package continuation
