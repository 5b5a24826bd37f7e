// Package relayloop passes streams on from sockets to sockets without a goroutine
// for each: a few loops over epoll, one for each processor, each with one buffer.
//
// # Who owns a descriptor
//
// A socket has one owner at a time, and its owner alone reads, writes or closes it.
//
//	net.Conn ──Take──▶ Socket ──Relay──▶ loop ──Left──▶ Socket ──Conn──▶ net.Conn
//	                          ──Wait──▶ loop ──then──▶
//
// Take duplicates the descriptor, so that closing the net.Conn takes it out of the
// runtime's poller, which would else wake a thread for every byte that comes. From
// Relay on both sockets of a Stream are the loop's, until Left says that they are
// the handler's again: exactly once, whatever happened. Nobody else touches a
// stream that is in a loop. Who wants its end says Cancel, which is a message.
//
// # What a loop does
//
// It waits for events, reads once from each backend that has sent something, into
// the one buffer that it has, has the handler look at that (Arrived), and writes
// what goes on. A client that does not take all at once is parked: the rest is
// kept, the backend is not read from, and no neighbour waits. That bounds what a
// stream holds by what is read at once, and a stream that waits holds nothing. One
// that stays parked for longer than its limit leaves.
//
// A chunk is framed where it lies: the buffer has room around what is read.
//
// # What such loops get wrong
//
//   - An event for a descriptor that was closed in the same batch, and is another
//     one's by then: an event names a slot and its generation, never a descriptor.
//   - An end that overtakes bytes: whatever an event says of a backend, it is read
//     from until reading says so. Events are edges: an end is told once, though its
//     stream be parked, and what was told meanwhile is made up for by a read.
//   - An end within a chunk: one that is cancelled while its client has a part of a
//     chunk stays for a second at most, until the client has the rest. What is written
//     behind is then no part of that chunk.
//   - A client that sends ahead: its bytes stay in its socket, and it is not watched
//     any more, until the stream is over. A client that has closed is gone.
//   - One slow call in the loop: handlers may take leaf locks and no more. The end of
//     a stream, with all that has to be settled, is for a goroutine of the handler's.
//   - One panic in the loop: it ends its stream alone.
//
// # TLS
//
// crypto/tls encrypts and decrypts, over a wire that never waits: what is not there
// to read yet is an error that passes, and what is written is kept until all of a
// chunk is encrypted. Then it is written as plain bytes are. While a loop has a
// socket nothing that its client sends is decrypted. See crypt.
//
// The loops know neither HTTP nor tokens. Where there is no epoll, New says so, and
// everything stays with goroutines.
package relayloop
