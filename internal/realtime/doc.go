// Package realtime passes a WebSocket on between a client and a backend: byte for
// byte, since who changed a frame would have to know what it means.
//
// It looks at the heads of frames alone. So it knows where a message begins and
// ends, bounds it, and can say why it ends a session between two frames, as
// RFC 6455 has it. Events of the backend, which are text, are shown to whoever asks
// for them. Extensions are not understood: who negotiates the handshake leaves
// them out.
//
// A session is bounded in its memory (two buffers, and one event), in the size of
// a message, and in the time without a byte from either side.
package realtime
