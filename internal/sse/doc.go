// Package sse finds the events in a stream of server-sent events that arrives
// in pieces, and says which bytes each of them is made of, so that a caller can
// pass the stream on untouched and still hold back or cut out one event.
//
// A Scanner follows the event stream format of the HTML standard: lines end in
// LF, CR or CRLF, several data lines join with LF, comments begin with a colon,
// a byte order mark may come first. Pieces may be cut anywhere, inside a CRLF
// too. Nothing is decoded: U+2028 and its like within a line end no line.
//
// Positions are byte offsets from the beginning of the stream. An event that
// needs more than the limit is reported without its text; the ones behind it
// are found as ever.
package sse
