// Package h1client is an HTTP/1.1 client for one server: what a gateway needs of
// net/http's Transport, at a third of its price.
//
// A request is written by the goroutine that asks, its answer read by the same
// one, straight from the socket into the reader's own room: no goroutine hops,
// no buffer is held while nothing comes, and a chunk costs no copy. Of a large
// body a goroutine of its own writes what the socket does not take, since a
// server may answer before it has read all.
//
// A connection belongs to one request at a time, or to the pool. It goes back
// when the answer was read to its end, nothing came behind that, and the request
// was written whole. Before it is used again it is looked at: one that the
// server has closed, or said something on, is thrown away.
//
// Of TLS as many records are taken at once as are there: see wire.
//
// Ending the context closes the connection at once, whatever waits on it.
//
// The answers that it takes are those that net/http takes, less what no server
// of good faith sends: folded lines, a length beside chunks that contradicts
// itself. A test holds the two against each other.
package h1client
