// Package openai is the slice of the OpenAI wire format that Pacer must
// understand: the top level of a request body, edits of it by splicing bytes,
// what a chunk of an answer holds, and the error body. Everything else is
// checked to be JSON and passed through unread.
//
// All of it works on offsets into the bytes as they came: numbers keep their
// digits, fields their order, escapes their spelling. A body that two parsers
// could read in two ways is refused, since Pacer would decide by the one
// reading and the backend answer the other.
//
// Units: sizes are bytes, and bytes of content are counted as the client will
// see them, after the escapes of JSON are undone.
package openai
