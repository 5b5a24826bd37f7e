// Package openai is the slice of the OpenAI wire format that Pacer must
// understand: the top level of a request body, edits of it by splicing bytes,
// and the error body. Everything else in a body is passed through unread.
package openai
