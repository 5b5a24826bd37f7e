package providers

import (
	"fmt"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
)

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
func errorEvent(d endpoint.Dialect, message string, sequence int64) []byte {
	body := openai.ErrorBody(message, upstreamError, "", upstreamDisconnected)
	switch d {
	case endpoint.Responses:
		inner := body[1 : len(body)-1] // "error":{…}
		return fmt.Appendf(nil, "event: error\ndata: {\"type\":\"error\",\"code\":%q,\"message\":%s,\"param\":null,\"sequence_number\":%d,%s}\n\n",
			upstreamDisconnected, openai.Quote(message), sequence, inner)
	case endpoint.Messages:
		return fmt.Appendf(nil, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":%s}}\n\n", openai.Quote(message))
	case endpoint.CohereChat:
		return fmt.Appendf(nil, "event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"error\":%s,\"finish_reason\":\"ERROR\"}}\n\n", openai.Quote(message))
	case endpoint.Transcription, endpoint.Speech, endpoint.Images:
		return fmt.Appendf(nil, "event: error\ndata: {\"type\":\"error\",%s}\n\n", body[1:len(body)-1])
	}
	return fmt.Appendf(nil, "data: %s\n\n", body)
}
