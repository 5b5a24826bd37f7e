package endpoint

// Dialect is the form in which an endpoint answers.
type Dialect uint8

// The zero value is what everything is that is not generated piece by piece.
const (
	Documents     Dialect = iota // embeddings, rerank, moderations and whatever else: one JSON document
	Chat                         // chunks with choices that hold messages, [DONE]
	Completions                  // chunks with choices that hold text, [DONE]
	Responses                    // typed events, the last of which is response.completed or the like
	Messages                     // typed events up to message_stop
	Transcription                // typed events up to transcript.text.done, or chunks; a document may be plain text
	Speech                       // sound, or typed events up to speech.audio.done
	Images                       // typed events; one or several are completed
	Generate                     // Google's: chunks with candidates, as events or as one array
	CohereChat                   // Cohere's: typed events up to message-end
)

// Chunks reports whether answers are made of choices, which are asked for their
// usage with stream_options.
func (d Dialect) Chunks() bool { return d == Chat || d == Completions }
