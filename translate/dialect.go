package translate

// Name is one of the dialects.
type Name uint8

// The zero value is none.
const (
	None Name = iota
	Chat
	Messages
	Gemini
	Converse
	Responses
	Cohere
)

// String returns the word for it.
func (n Name) String() string {
	return [...]string{"none", "chat", "messages", "gemini", "converse", "responses", "cohere"}[n]
}

// dialect is all that differs between them. What a dialect lacks it is not
// translated from, or not into.
type dialect struct {
	read   map[string]field                // the fields of a request
	camel  bool                            // their names may have underscores in place of capitals
	turns  string                          // the field that holds the conversation
	again  []Param                         // fields that an answer says again, and what it says where the request has none
	done   func(in *reader)                // what is left when all fields are read; nil = nothing
	write  func(w *requestWriter) string   // a request; it returns its path
	frames func() framing                  // of its streams
	hear   func() hearing                  // its answers
	stream func(o Reply) voice             // answers as a stream
	whole  func(o Reply, a *answer) []byte // answers as one document
}

var table = [...]dialect{
	Chat: {
		read: chatFields, turns: "messages", write: writeChat, frames: newEventStream, hear: hearChat, stream: chatStream, whole: chatWhole,
	},
	Messages: {
		read: messagesFields, turns: "messages", write: writeMessages, frames: newEventStream, hear: hearMessages, stream: messagesStream, whole: messagesWhole,
	},
	Gemini: {
		read: geminiFields, camel: true, turns: "contents", done: allowSome, write: writeGemini, frames: newEventStream, hear: hearGemini,
		stream: geminiStream, whole: geminiWhole,
	},
	Converse: {write: writeConverse, frames: newMessageStream, hear: hearConverse},
	Cohere: {
		read: cohereFields, turns: "messages", done: strictTools, write: writeCohere, frames: newEventStream, hear: hearCohere,
		stream: cohereStream, whole: cohereWhole,
	},
	Responses: {read: responsesFields, turns: "input", again: responseAgain, stream: responsesStream, whole: responsesWhole},
}

// StreamType is the Content-Type of a stream in n.
func (n Name) StreamType() string {
	if n == Converse {
		return "application/vnd.amazon.eventstream"
	}
	return "text/event-stream"
}
