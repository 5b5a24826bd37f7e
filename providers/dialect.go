package providers

import (
	"fmt"
	"strings"

	"github.com/pacer-dev/pacer/internal/openai"
)

// dialect is how an endpoint answers.
type dialect uint8

const (
	chat          dialect = iota // chat.completions and completions: chunks with choices, [DONE]
	responses                    // typed events, the last of which is response.completed or the like
	messages                     // typed events up to message_stop
	transcription                // typed events up to transcript.text.done, or chunks; a document may be plain text
	speech                       // sound, or typed events up to speech.audio.done
	images                       // typed events; one or several are completed
	documents                    // embeddings, rerank, moderations and whatever else: one JSON document
)

// dialectOf knows the endpoints by their path below the base URL.
func dialectOf(path string) dialect {
	path, _, _ = strings.Cut(path, "?")
	switch path {
	case "/chat/completions", "/completions":
		return chat
	case "/responses":
		return responses
	case "/messages":
		return messages
	case "/audio/transcriptions", "/audio/translations":
		return transcription
	case "/audio/speech":
		return speech
	case "/images/generations", "/images/edits", "/images/variations":
		return images
	}
	return documents
}

// ErrorEvent is the event that tells the client of a stream from path, none of
// whose events it has seen, that the backend died. A Meter knows the one that
// follows on those that went by.
func ErrorEvent(path, message string) []byte { return dialectOf(path).errorEvent(message, 0) }

// Code and type of an error event of ours.
const (
	upstreamError        = "upstream_error"
	upstreamDisconnected = "upstream_disconnected"
)

// errorEvent is the event for an error, as the SDKs of the dialect raise it.
// sequence is the number that a Responses event has next.
//
// The specification of Responses has the fields of its error event at the top,
// the service itself sends them within error, and the SDKs raise only the
// latter: both are there. Messages' SDKs go by the event's name, and take the
// error for one of the API.
func (d dialect) errorEvent(message string, sequence int64) []byte {
	body := openai.ErrorBody(message, upstreamError, "", upstreamDisconnected)
	switch d {
	case responses:
		inner := body[1 : len(body)-1] // "error":{…}
		return fmt.Appendf(nil, "event: error\ndata: {\"type\":\"error\",\"code\":%q,\"message\":%s,\"param\":null,\"sequence_number\":%d,%s}\n\n",
			upstreamDisconnected, openai.Quote(message), sequence, inner)
	case messages:
		return fmt.Appendf(nil, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":%s}}\n\n", openai.Quote(message))
	case transcription, speech, images:
		return fmt.Appendf(nil, "event: error\ndata: {\"type\":\"error\",%s}\n\n", body[1:len(body)-1])
	}
	return fmt.Appendf(nil, "data: %s\n\n", body)
}
