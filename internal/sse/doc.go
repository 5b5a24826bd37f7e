// Package sse finds the events in a stream of server-sent events without
// touching the bytes. Line ends may be LF, CRLF or CR; events may be cut
// anywhere by reads; an event longer than the limit is skipped, not an error.
package sse
